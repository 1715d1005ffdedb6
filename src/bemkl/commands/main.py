"""The way into the command line: quick, and quiet when somebody interrupts it."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT
"""The exit code of a command that was interrupted, which is what shells use."""


def main() -> None:
    """Run the command line, and end the process."""
    # A shell starts background processes with interrupts ignored: that stays.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from bemkl.commands.program import program

        program.main(prog_name="bemkl")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, _leave)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt the work; while something is imported there is none yet, and imports would show or hide the error."""
    outer = frame
    while outer is not None:
        if outer.f_globals.get("__name__") == "importlib._bootstrap":
            _leave(number, frame)
        outer = outer.f_back
    raise KeyboardInterrupt


def _leave(number: int, frame: FrameType | None) -> None:
    """End the process at once, without a word."""
    os._exit(INTERRUPTED)
