"""Which errors and warnings are fine: those of ours that name the argument and say the way out."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

import bemkl
from fuzz.kernels import PARAMETERS
from fuzz.options import VALUES
from fuzz.outcomes import Finding

DOCUMENTED_WARNINGS = [
    (ConvergenceWarning, r"max_iter=\d+ was reached"),
    (UserWarning, r"unlabeled: no sample in y is marked"),
    (UserWarning, r"y: the labels .* were not there in training"),
    (UserWarning, r"The number of unique classes is greater than"),
    (DataConversionWarning, r"A column-vector y was passed"),
    (UserWarning, r"X (has|does not have valid) feature names, but"),
]
"""Category and beginning of each warning that the documentation speaks of."""

_ARGUMENTS = {"X", "y", "Z", "task", "kernels", "kernel", "specs", "on", "parameters", "standardise", "scaling"}
_ARGUMENTS |= {"coverage", "names", "model", "grid", "estimator", "sample_weight", *PARAMETERS, *VALUES}
_FOREIGN = re.compile(
    r"could not be broadcast|ufunc|must not contain infs|math domain|cannot convert float|negative dimensions"
    r"|not aligned|singular matrix|did not converge|out of bounds|invalid literal|could not convert string"
    r"|truth value of|object is not|has no attribute|unexpected keyword|positional argument|inhomogeneous"
    r"|unsupported operand|not supported between|setting an array element|zero-size array|buffer",
    re.IGNORECASE,
)
# A checkout may be called like the package: its own folder tells.
_OURS, _CHECKS = f"{Path(bemkl.__file__).parent}{os.sep}", "/sklearn/utils/"


def of_error(error: BaseException) -> Finding:
    """Tell a refusal from an error that no user should see."""
    frames = traceback.extract_tb(error.__traceback__)
    where = _where([(frame.filename, frame.name) for frame in frames])
    if not isinstance(error, ValueError | TypeError):
        return Finding("other error", f"{type(error).__name__}: {general(str(error))}", where)
    innermost = frames[-1].filename if frames else ""
    ours = _OURS in innermost or _CHECKS in innermost
    kind = "refusal" if ours and is_sentence(str(error)) else "bare error"
    return Finding(kind, f"{type(error).__name__}: {general(str(error))}", where)


def is_sentence(message: str) -> bool:
    """
    Tell whether a message has a sentence that names an argument, in words of ours.

    What another library said may be quoted in parentheses, or between the argument and the way out.
    """
    words = set(re.findall(r"\w+", message))
    names = bool(words & _ARGUMENTS or "BEMKL" in message)
    plain = _without_asides(message)
    quotes = re.match(rf"({'|'.join(_ARGUMENTS)})\b[^:]*: ", plain) and not _FOREIGN.search(plain.rpartition(". ")[2])
    return len(message.split()) > 5 and names and bool(quotes or not _FOREIGN.search(plain))


def _without_asides(message: str) -> str:
    """Leave out what is in parentheses: there a sentence of ours may quote another library."""
    while (shorter := re.sub(r"\([^()]*\)", "", message)) != message:
        message = shorter
    return message


def general(message: str) -> str:
    """Return a message without what changes from case to case."""
    message = re.sub(r"'[^']*'|\"[^\"]*\"", "…", message)
    while (shorter := re.sub(r"\[[^][]*\]|\{[^{}]*\}|\([^()]*\)", "…", message)) != message:
        message = shorter
    message = re.sub(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?|\bnan\b|\binf\b", "#", message)
    return " ".join(message.split())[:200]


def _where(frames: list[tuple[str, str]]) -> str:
    """Return the innermost place in the package."""
    for filename, name in reversed(frames):
        if _OURS in filename:
            return f"{filename.rpartition(_OURS)[2]}:{name}"
    return Path(frames[-1][0]).name + ":" + frames[-1][1] if frames else ""


@contextmanager
def recorded_warnings(question: Callable[[], str]) -> Iterator[list[tuple[Finding, str]]]:
    """Collect the warnings that nothing documents, each with what was asked when it came."""
    found: list[tuple[Finding, str]] = []

    def record(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        known = any(issubclass(category, kind) and re.match(start, str(message)) for kind, start in DOCUMENTED_WARNINGS)
        if not known:
            frames: list[tuple[str, str]] = []
            frame: FrameType | None = sys._getframe(1)
            while frame is not None:
                frames.append((frame.f_code.co_filename, frame.f_code.co_name))
                frame = frame.f_back
            what = f"{category.__name__}: {general(str(message))}"
            found.append((Finding("warning", what, _where(frames[::-1])), question()))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = record
        yield found
