"""Cases of the commands: files in a folder, commands as typed, and what they leave behind."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bemkl import load_model
from fuzz import files
from fuzz.api import LIMIT, TooSlow, time_limit
from fuzz.files import Case
from fuzz.judge import FaultError, hold
from fuzz.making import make
from fuzz.outcomes import Finding, Outcome
from fuzz.refusals import general, of_error
from fuzz.shrink import OF_COMMANDS

NAME = "commands"
draw = files.command
simpler = OF_COMMANDS

_ENTRY = "from bemkl.commands import main; main()"
_DOCUMENTED = re.compile(r"Warning: (max_iter=\d+ was reached|The number of unique classes is greater)")
_SAME_ROWS = 1e-3
"""How far bounds of the same rows in another order may be apart: fits end where the tolerance lets them."""
_NO_WAY_OUT = ("--debug", "fault of bemkl")


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code, and what it wrote."""

    code: int
    output: str
    errors: str


def judge(case: Case) -> Outcome:
    """Run the commands of a case in a folder of their own, and say what came out."""
    start, question, detail = time.perf_counter(), "", ""
    outcome = Outcome.about_case(NAME, case, case["runs"][0][0] if case["runs"][0] else "")
    finding = Finding("result", "")
    with tempfile.TemporaryDirectory() as name, chdir(name):
        try:
            make(Path(name), case["files"])
        except Exception as error:  # what cannot be written cannot be read by anything
            return replace(outcome, kind="not made", what=f"{type(error).__name__}: {error!s:.100}")
        for run in case["runs"]:
            question = shlex.join(["bemkl", *run])
            finding, detail = _judged(case, run)
            if finding.kind != "result":
                break
        if finding.kind == "result" and case.get("backwards"):
            finding, detail = _backwards(case)
    return outcome.ended(finding, question, detail[-600:], start)


def _judged(case: Case, run: list[str]) -> tuple[Finding, str]:
    """Run one command, and judge it."""
    before = _content()
    try:
        with time_limit(LIMIT):
            ended = _in_a_process(run) if case["process"] else _here(run)
    except TooSlow:
        return Finding("slow", f"more than {LIMIT} s"), ""
    except Exception as error:  # the entry point lets none through
        return of_error(error) if not isinstance(error, ValueError) else Finding("other error", str(error)), ""
    try:
        _judge_words(ended)
        if ended.code == 0:
            _judge_result(run, ended)
            return Finding("result", ""), ""
        _judge_refusal(case, ended)
        hold(_content() == before, "a refused command changed a file")
    except FaultError as fault:
        what, *more = fault.args
        return Finding("fault", what, run[0] if run else ""), " ".join([*more, ended.errors])
    return Finding("refusal", general(_last_error(ended.errors)[0])), ended.errors


def _backwards(case: Case) -> tuple[Finding, str]:
    """Fit once more with the rows of the target in another order: rows are matched by ids, so the model is the same."""
    header, *rows = case["files"]["y.csv"]["cells"]
    make(Path(), {"y.csv": case["files"]["y.csv"] | {"cells": [header, *rows[::-1]]}})
    run = [word if word != "model.skops" else "again.skops" for word in case["runs"][0]]
    finding, detail = _judged(case, run)
    if finding.kind == "result":
        one, other = load_model("model.skops").lower_bound_, load_model("again.skops").lower_bound_
        if abs(one - other) > _SAME_ROWS * (1.0 + abs(one)):
            return Finding("fault", "the order of rows in a file changes the model", "fit"), f"{one!r} and {other!r}"
    return finding, detail


def _content() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def _here(run: list[str]) -> Ended:
    """Run a command in this process, through the entry point."""
    from bemkl.commands import main

    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    arguments, handler, code = sys.argv, signal.getsignal(signal.SIGINT), 0
    try:
        sys.argv = ["bemkl", *run]
        with redirect_stdout(output), redirect_stderr(errors), warnings.catch_warnings():
            warnings.simplefilter("always")
            for silent in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
                warnings.simplefilter("ignore", silent)  # as Python does for programs
            main()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    finally:
        sys.argv = arguments
        signal.signal(signal.SIGINT, handler)
    return Ended(code, *(stream.buffer.getvalue().decode("utf-8", "replace") for stream in (output, errors)))


def _in_a_process(run: list[str]) -> Ended:
    """Run a command as a shell does."""
    words = [word.replace("\x00", "") for word in run]
    done = subprocess.run([sys.executable, "-c", _ENTRY, *words], capture_output=True, check=False)
    return Ended(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def _judge_words(ended: Ended) -> None:
    """Look at what every command may write to the standard error."""
    hold("Traceback" not in ended.errors, "a traceback")
    for line in ended.errors.splitlines():
        if re.search(r"\bWarning: ", line) and not _DOCUMENTED.match(line):
            raise FaultError(f"a warning that is not documented: {general(line)}")


def _last_error(errors: str) -> list[str]:
    """Return the lines from the last error on."""
    lines = errors.strip().splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith("Error: ")]
    return lines[starts[-1] :] if starts else []


def _judge_refusal(case: Case, ended: Ended) -> None:
    """Look at an exit code that is not zero: two or three lines, with a name and a way out."""
    lines = _last_error(ended.errors)
    hold(ended.code == 2, f"exit code {ended.code}: {general(lines[0]) if lines else 'nothing said'}")
    hold(bool(lines), "nothing said")
    hold(len(lines) <= 3, "more than three lines")
    hold(max(map(len, lines)) <= 1200, "a line longer than a screen")
    advice = " ".join(lines[1:])
    hold(bool(advice.strip()), f"no way out: {general(lines[0])}")
    hold(not any(words in advice for words in _NO_WAY_OUT), f"no way out: {general(lines[0])}")
    words = [word for run in case["runs"] for word in run if not word.startswith("-")]
    kernels = [*(Path(name).stem for name in case["files"]), *(word.partition("=")[0] for word in words if "=" in word)]
    names = [*case["files"], *words, *(f"'{name}'" for name in kernels)]
    named = any(name and name in ended.errors for name in names) or re.search(r"--?\w", " ".join(lines))
    hold(bool(named) or "y:" in lines[0] or "X:" in lines[0], f"names no file and no option: {general(lines[0])}")


def _judge_result(run: list[str], ended: Ended) -> None:
    """Look at what a command promised."""
    if "--help" in run or not run:
        return
    if "--json" in run:
        json.loads(ended.output, parse_constant=_refuse_constant)
    if run[0] == "fit":
        model = load_model(run[run.index("-o") + 1])
        hold(np.isfinite(model.lower_bounds_), "the bound of a saved model is not finite")
    if run[0] == "predict" and "--json" not in run:
        text = Path("predictions.csv").read_text(encoding="utf-8") if "-o" in run else ended.output
        _judge_predictions(text)
    if run[0] == "report":
        hold(Path("page.html").read_text(encoding="utf-8").rstrip().endswith("</html>"), "the page is not whole")
    if run[0] in ("evaluate", "compare"):
        hold(bool(ended.output.strip()), "no scores")


def _refuse_constant(name: str) -> float:
    raise FaultError(f"JSON with {name}")


def _judge_predictions(text: str) -> None:
    """Look at a table of predictions: numbers are finite, and probabilities sum to one."""
    rows = list(csv.DictReader(io.StringIO(text)))
    hold(bool(rows), "no predictions")
    for row in rows:
        hold(None not in row and None not in row.values(), "a row of predictions is not whole")
        shares = [float(cell) for name, cell in row.items() if name.startswith("probability_")]
        numbers = [float(cell) for name, cell in row.items() if name.endswith(("_std", "_low", "_high"))] + shares
        hold([math.isfinite(number) for number in numbers], "a prediction is not finite")
        hold([0.0 <= share <= 1.0 for share in shares], "a probability is not between 0 and 1")
        if shares and len(row) == 2 + len(shares):  # an id, one label, and the probability of each class
            hold(abs(sum(shares) - 1.0) < 1e-9, "probabilities do not sum to one")


def script(case: Case, outcome: Outcome) -> str:
    """Return a script that makes the files and runs the commands."""
    made = json.dumps(case["files"], ensure_ascii=True)
    lines = [f"# {outcome.kind}: {outcome.what}", *(f"# {line}" for line in outcome.detail.splitlines())]
    lines += ["import json", "from pathlib import Path", "from fuzz.making import make", ""]
    lines += [f"make(Path(), json.loads({made!r}))", *(f"# {shlex.join(['bemkl', *run])}" for run in case["runs"])]
    return "\n".join([*lines, ""])
