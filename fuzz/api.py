"""Cases of the estimators: fit, ask everything, judge."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from types import FrameType

from fuzz import problems, session
from fuzz.extras import fit, judge_extras
from fuzz.judge import FaultError, judge_answers, judge_data, judge_fit
from fuzz.outcomes import Finding, Outcome
from fuzz.problems import Case
from fuzz.refusals import of_error, recorded_warnings
from fuzz.session import QuestionError, Session
from fuzz.shrink import OF_PROBLEMS

NAME = "api"
LIMIT = 30
"""Seconds after which a case is too slow."""

_FITS = ("other.fit(", "straight.fit(", "other_pipeline.fit(", "straight_pipeline.fit(", "select_by_bound(")
"""How questions begin that fit again, which may be refused."""

draw = problems.problem
simpler = OF_PROBLEMS


class TooSlow(BaseException):
    """A case takes too long; not an Exception, so that nothing takes it for an error of its own."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise where something takes too long, if Python is still being run; a parent process sees to the rest."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judge(case: Case) -> Outcome:
    """Run a case, and say what came out."""
    start = time.perf_counter()
    outcome = Outcome.about_case(NAME, case, case["estimator"])
    try:
        here = Session.of(case)
    except Exception as error:  # what cannot be made cannot be passed to anything
        return replace(outcome, kind="not made", what=f"{type(error).__name__}: {error!s:.100}")
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()), recorded_warnings(lambda: here.question) as warned:
        try:
            with time_limit(LIMIT):
                finding, detail = _finding(here)
        except TooSlow:
            finding, detail = Finding("slow", f"more than {LIMIT} s"), ""
    if finding.kind in ("result", "refusal") and warned:
        finding, here.question = warned[0]
    return outcome.ended(finding, here.question, detail, start)


def _finding(here: Session) -> tuple[Finding, str]:
    """Fit a model and judge it."""
    fitted = False
    try:
        here.ask(session.model_expression(here.case), "model")
        fit(here)
        fitted = True
        judge_fit(here)
        judge_answers(here)
        judge_extras(here)
        judge_data(here)
    except FaultError as fault:
        what, *detail = fault.args
        return Finding("fault", what, here.question.partition("(")[0]), str(*detail)
    except QuestionError as raised:
        found = of_error(raised.__cause__ or raised)
        again = here.question.startswith(_FITS)
        if fitted and not again and found.kind == "refusal" and not _leaves_samples_out(here.case):
            found = replace(found, kind="refusal after a fit")
        return found, str(raised.__cause__)[:500]
    for refused in here.refused:
        found = of_error(refused.__cause__ or refused)
        if found.kind != "refusal":
            here.question = str(refused)
            return found, str(refused.__cause__)[:500]
    return Finding("result", ""), ""


def _leaves_samples_out(case: Case) -> bool:
    """Tell whether a fit never sees some samples: those of tasks without a target."""
    values = case["target"]["values"]
    return case["estimator"] == "BEMKLMultiTask" and any(value is None or value != value for value in values)


def script(case: Case, outcome: Outcome) -> str:
    """Return a script that shows an outcome."""
    rows = case["estimator"] == "BEMKLMultiTask" and not case["task"]["apart"]
    questions = [f"model.fit(X, y{', task=task' if rows else ''})"]
    if outcome.question and not outcome.question.startswith(("model = ", "model.fit(")):
        questions.append(outcome.question if " = " in outcome.question else f"print({outcome.question})")
    return f"# {outcome.kind}: {outcome.what}\n# {outcome.detail}\n".replace("\n#  \n", "\n") + session.script(
        case, questions
    )
