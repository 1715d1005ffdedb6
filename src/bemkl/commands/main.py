"""The way into the command line: quick, and quiet when somebody interrupts it."""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # typing takes longer to import than all else that comes before interrupts are taken care of
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 128 + signal.SIGINT
"""The exit code of a command that was interrupted, which is what shells use."""

_IMPORTS = ("_frozen_importlib", "importlib._bootstrap")
"""What the module that imports others is called, before and after `importlib` itself was imported."""


def main() -> None:
    """Run the command line, and end the process."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _leave):
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
        if outer.f_globals.get("__name__") in _IMPORTS:
            _leave(number, frame)
        outer = outer.f_back
    raise KeyboardInterrupt


def _leave(number: int, frame: FrameType | None) -> None:
    """End the process at once, without a word."""
    os._exit(INTERRUPTED)


def _watch() -> None:
    """
    Leave without a word when the program is interrupted before it has begun; a program that imports this does not.

    A shell starts background processes with interrupts ignored: that stays.
    """
    program = os.path.basename(sys.argv[0] if sys.argv else "")
    if program.split(".")[0] == "bemkl" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


_watch()
