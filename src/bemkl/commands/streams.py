"""The standard output, which is for results, and the standard error, which is for everything else."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import TextIO

from bemkl.visible import visible


def write_result(text: str) -> None:
    """Write a result to the standard output, all of it at once."""
    # Python has no stream where a shell closed it, and would drop the result without a word.
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    encoding = sys.stdout.encoding
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def write_data(text: str) -> None:
    """Write a result whose values come from files: as they are, or made visible where a terminal shows them."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    write_result(visible(text, keep="\n\t") if on_terminal else text)


def speaks_unicode() -> bool:
    """Tell whether the standard output takes all characters."""
    return sys.stdout is None or sys.stdout.encoding.lower().startswith("utf")


def say(*sentences: str) -> None:
    """Tell the user something that is not the result; what cannot be told is no reason to stop."""
    try:
        if sys.stderr is not None:
            sys.stderr.writelines(f"{visible(sentence)}\n" for sentence in sentences)
            sys.stderr.flush()
    except OSError:
        _give_up(sys.stderr)


def flush_result() -> None:
    """Write what is left of the result, so that an error comes now and not when Python ends."""
    if sys.stdout is not None:
        sys.stdout.flush()


def end_result() -> None:
    """Write what is left of a result after an error; if that fails, let it go, or Python would try again at its end."""
    try:
        flush_result()
    except OSError:
        _give_up(sys.stdout)


def _give_up(stream: TextIO) -> None:
    # Streams without a descriptor, as in tests, have nothing that Python writes at its end.
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
