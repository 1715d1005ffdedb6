"""What ends a command early, as two lines for people and an exit code for scripts."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import Any

import click

from bemkl.visible import shortened, visible

_LONGEST = 1000
_REFUSED, _FAILED = 2, 1
_CLOSED_PIPE = 141  # 128 and the number of the signal that ends other tools then
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ADVICE = {
    errno.ENOENT: "Check the path.",
    errno.ENOTDIR: "Check the path: a part of it is a file, not a folder.",
    errno.EISDIR: "Name a file, not a folder.",
    errno.ELOOP: "Its links lead in a circle: name the file itself.",
    errno.ENAMETOOLONG: "Use a shorter path.",
    errno.EACCES: "Ask for the permission, or name another file.",
    errno.EPERM: "Ask for the permission, or name another file.",
} | dict.fromkeys(_NO_ROOM, "Make room, or write to another place.")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a command ended early."""

    what: str  # what is wrong; nothing if there is nothing to say
    advice: str  # the way out
    exit_code: int  # what scripts see

    @property
    def lines(self) -> list[str]:
        """Two lines for the standard error, or none."""
        if not self.what:
            return []
        return [shortened(visible(f"Error: {self.what}"), _LONGEST), shortened(visible(self.advice), _LONGEST)]


def refusal(error: Exception) -> Refusal:
    """Explain an error."""
    if isinstance(error, click.ClickException):
        return _of_click(error)
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, MemoryError):
        return Refusal(f"there is not enough memory ({error}).", "Take fewer samples, or landmarks.", _FAILED)
    if isinstance(error, ValueError | ImportError):
        return Refusal(*_sentences(str(error)), _REFUSED)
    what = f"something unexpected, {type(error).__name__}: {error!s:.300}"
    return Refusal(what, "This is a fault of bemkl: run bemkl --debug and report what it prints.", _FAILED)


def _of_click(error: click.ClickException) -> Refusal:
    context: Any = getattr(error, "ctx", None)
    if isinstance(error, click.UsageError):
        program = "bemkl" if context is None else context.command_path
        return Refusal(" ".join(error.format_message().split()), f"See {program} --help.", error.exit_code)
    return Refusal(*_sentences(error.format_message()), error.exit_code)


def _of_system(error: OSError) -> Refusal:
    if error.errno == errno.EPIPE:
        return Refusal("", "", _CLOSED_PIPE)
    if error.errno is None:
        return Refusal(*_sentences(str(error)), _REFUSED)
    place = error.filename if isinstance(error.filename, str) else "the output" if error.errno in _NO_ROOM else ""
    reason = error.strerror or str(error)
    advice = _ADVICE.get(error.errno, "Check that it can be read and written.")
    exit_code = _REFUSED if error.errno in _ADVICE and error.errno not in _NO_ROOM else _FAILED
    return Refusal(f"{place}: {reason}." if place else f"{reason}.", advice, exit_code)


def _sentences(message: str) -> tuple[str, str]:
    """Put what is wrong on the first line, and what to do on the second."""
    what, *advice = re.split(r"\n|(?<=[.?]) (?=[A-Z\"'])", message.strip(), maxsplit=1)
    # A sentence about a value of an option says in itself what to pass.
    more = "--help of the command shows its options" if ": expected " in what else "bemkl --debug shows the traceback"
    return what, " ".join("".join(advice).split()) or f"See docs/command_line.md; {more}."
