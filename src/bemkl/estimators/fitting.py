"""Fit one or more problems, from one or more starts, in one or more threads, until done or interrupted."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from threading import Event
from types import FrameType
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import effective_n_jobs

from bemkl._numerics.threads import one_pool
from bemkl.arrays import Array, finite_number, whole_number
from bemkl.estimators.progress import FitProgress
from bemkl.exceptions import ConvergenceWarning
from bemkl.inference import FitResult, Posterior, Problem, State, ascend

_PATIENCE = 0.1


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to try."""

    max_iter: Any  # most iterations of a run
    tol: Any  # relative change of the bound at which a run stops
    n_init: Any  # number of starts; the first is the deterministic one, the others have random kernel weights
    n_jobs: Any  # number of runs at the same time, in joblib's way of counting
    verbose: Any  # how much to show

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        whole_number("max_iter", self.max_iter, least=1)
        whole_number("n_init", self.n_init, least=1)
        whole_number("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, least=0)
        if self.n_jobs is not None and (isinstance(self.n_jobs, bool) or not isinstance(self.n_jobs, Integral)):
            raise ValueError(f"n_jobs: expected a whole number or None, got {self.n_jobs!r}.")
        if self.tol is not None:
            finite_number("tol", self.tol, least=0.0, allow_least=True)


def fit_problems(
    problems: Sequence[Problem],
    labels: Sequence[str],
    starts: Sequence[Posterior | None],
    effort: Effort,
    rng: np.random.Generator,
    *,
    goes_on: bool,
) -> list[FitResult]:
    """
    Fit problems, and keep the best start of each; a warning says so where another call of fit goes on from these.

    An interrupt from the keyboard ends every run after the iteration it is in, and a run that had none yet after its
    first. A second interrupt is raised.
    """
    jobs = [(p, n, rng.spawn(1)[0] if n else None) for p in range(len(problems)) for n in range(effort.n_init)]
    names = [labels[p] + (f", start {n + 1}" if effort.n_init > 1 else "") for p, n, _ in jobs]
    stopped = Event()

    def work(job: int) -> FitResult | None:
        p, n, generator = jobs[job]
        if n and stopped.is_set():
            return None
        state = starts[p] if generator is None else None
        look = progress.watch(names[job], problems[p].n_observations)

        def watch(iteration: int, state: State, bound: float) -> bool:
            look(iteration, lambda: state.weights.moments(0).mean, bound)
            return stopped.is_set()

        return ascend(problems[p], state, rng=generator, max_iter=effort.max_iter, tol=effort.tol, watch=watch)

    # The number of BLAS threads is this thread's business: those of the runs might come and go, or not be listened to.
    one = one_pool(max(problem.n_rows for problem in problems))
    with (
        one,
        FitProgress(effort.verbose, effort.max_iter, effort.tol) as progress,
        _interrupts_to(stopped),
        _range_explained(),
    ):
        workers = min(effective_n_jobs(effort.n_jobs), len(jobs))
        results = _in_turn(work, len(jobs), stopped) if workers == 1 else _at_once(work, len(jobs), stopped, workers)
    best = []
    for p in range(len(problems)):
        mine = [result for (q, _, _), result in zip(jobs, results, strict=True) if q == p and result is not None]
        best.append(max(mine, key=lambda result: result.lower_bound))
    _warn(best, effort, goes_on=goes_on)
    return best


RunT = TypeVar("RunT", bound="Run")


class Run(Protocol):
    """A run that ended."""

    @property
    def n_iter(self) -> int:
        """Number of iterations."""

    @property
    def converged(self) -> bool:
        """Whether the bound settled."""

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped from outside."""


def fit_in_turn(
    runs: Sequence[Callable[[Callable[[int, Array, float], bool]], RunT]],
    labels: Sequence[str],
    sizes: Sequence[int],
    effort: Effort,
) -> list[RunT]:
    """
    Do runs that look after themselves one after the other, with progress.

    A run calls what it is given after each step, with its number, the kernel weights and the bound. On an interrupt it
    ends after the step that it is in, and runs that have not begun end after their first.
    """
    stopped = Event()
    results = []
    with (
        FitProgress(effort.verbose, effort.max_iter, effort.tol) as progress,
        _interrupts_to(stopped),
        _range_explained(),
    ):
        for run, label, size in zip(runs, labels, sizes, strict=True):
            look = progress.watch(label, size)

            def watch(step: int, weights: Array, bound: float, look: Any = look) -> bool:
                look(step, lambda: weights, bound)
                return stopped.is_set()

            results.append(run(watch))
    _warn(results, effort, goes_on=False)
    return results


@contextmanager
def _range_explained() -> Iterator[None]:
    """Say in a sentence what numbers without digits come from."""
    try:
        yield
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise ValueError(
            f"X, y: the fit has left the range of floating point: {error} Standardise the columns, or take "
            "kernels and priors that are less extreme."
        ) from error


@contextmanager
def _interrupts_to(stopped: Event) -> Iterator[None]:
    """
    Let an interrupt from the keyboard set a flag, and a second one be raised as ever.

    An exception in the middle of a computation is not safe: NumPy has places that turn it into another one.
    """
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            previous(number, frame)
        stopped.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _in_turn(work: Any, n_jobs: int, stopped: Event) -> list[FitResult | None]:
    results = []
    for job in range(n_jobs):
        try:
            results.append(work(job))
        except KeyboardInterrupt:
            if stopped.is_set():
                raise
            stopped.set()
            results.append(work(job))
        if results[-1] is not None and results[-1].interrupted:
            stopped.set()
    return results


def _at_once(work: Any, n_jobs: int, stopped: Event, workers: int) -> list[FitResult | None]:
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, job) for job in range(n_jobs)]
        try:
            # Short waits, because some libraries' signal handlers let a long one sleep on.
            while wait(futures, timeout=_PATIENCE).not_done:
                pass
        except KeyboardInterrupt:
            stopped.set()
        return [future.result() for future in futures]


def _warn(results: Sequence[Run], effort: Effort, *, goes_on: bool) -> None:
    """Warn once about runs that did not settle, however many there are."""
    if effort.tol is None and not any(result.interrupted for result in results):
        return
    open_ends = [result for result in results if not result.converged]
    if open_ends:
        interrupted = any(result.interrupted for result in open_ends)
        end = "the fit was interrupted" if interrupted else f"max_iter={effort.max_iter} was reached"
        which = "" if len(results) == 1 else f" in {len(open_ends)} of {len(results)} runs"
        way_out = "Raise max_iter, or call fit again with warm_start=True to go on." if goes_on else "Raise max_iter."
        warnings.warn(
            f"{end} after {max(result.n_iter for result in open_ends)} iterations{which}, before the lower bound "
            f"settled within tol={effort.tol}. The model holds what was learned until then. {way_out}",
            ConvergenceWarning,
            stacklevel=6,  # the line that called fit
        )
