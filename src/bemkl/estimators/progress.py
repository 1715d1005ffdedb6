"""Progress of a fit: a live bar on a terminal or in a notebook, plain lines in a log."""

from __future__ import annotations

import time
from types import TracebackType

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from bemkl.estimators.summary import selected
from bemkl.inference import State
from bemkl.inference.engine import Watch

_MEMORY = 5


class FitProgress:
    """
    Shows how runs go on.

    Parameters
    ----------
    verbose : int
        0 for silence, 1 for a bar or some lines, 2 for a line an iteration in a log.
    labels : sequence of str
        Name of each run.
    max_iter : int
        Most iterations of a run.
    tol : float or None
        Relative change of the bound at which a run stops.
    console : rich.console.Console, optional
        Where to write; standard output without it.

    Examples
    --------
    >>> with FitProgress(0, ["fit"], 100, 1e-5) as progress:
    ...     watch = progress.watch(0, 50)
    """

    def __init__(
        self, verbose: int, labels: list[str], max_iter: int, tol: float | None, console: Console | None = None
    ) -> None:
        self._verbose = int(verbose)
        self._labels = labels
        self._max_iter = max_iter
        self._tol = tol
        self._console = Console(soft_wrap=True) if console is None else console
        self._live: Progress | None = None

    def __enter__(self) -> FitProgress:
        """Start the bar, where there is a place for one."""
        if self._verbose and (self._console.is_terminal or self._console.is_jupyter):
            self._live = Progress(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"), console=self._console
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the bar as it is."""
        if self._live is not None:
            self._live.stop()

    def watch(self, run: int, n_observations: int) -> Watch:
        """
        Return what a run calls after each iteration.

        Parameters
        ----------
        run : int
            Which run.
        n_observations : int
            Number of labels or responses that it learns from.

        Returns
        -------
        callable
            Takes the number of the iteration, the posterior and the bound; never asks to stop.
        """
        if not self._verbose:
            return lambda iteration, state, bound: False
        label = self._labels[run]
        task = None if self._live is None else self._live.add_task(label, total=None, text="")
        started, bounds = time.perf_counter(), list[float]()

        def look(iteration: int, state: State, bound: float) -> bool:
            bounds.append(bound)
            left = iterations_left(bounds, self._max_iter, self._tol, n_observations)
            seconds = None if left is None else (time.perf_counter() - started) / iteration * left
            self._show(label, task, iteration, left, describe(iteration, state, bounds, seconds))
            return False

        return look

    def _show(self, label: str, task: TaskID | None, iteration: int, left: int | None, text: str) -> None:
        if self._live is not None and task is not None:
            total = None if left is None else iteration + left
            self._live.update(task, completed=iteration, total=total, text=text)
        elif self._verbose > 1 or left == 0 or iteration & (iteration - 1) == 0:
            self._console.print(f"{label}: {text}", highlight=False, markup=False)


def iterations_left(bounds: list[float], max_iter: int, tol: float | None, n_observations: int) -> int | None:
    """
    Guess how many iterations a run still needs, from how fast the changes of its bound shrink.

    Parameters
    ----------
    bounds : list of float
        Bounds so far.
    max_iter : int
        Most iterations.
    tol : float or None
        Relative change of the bound at which the run stops.
    n_observations : int
        Number of labels or responses that it learns from.

    Returns
    -------
    int or None
        The guess; 0 where the run is over, None where it is too early to tell.

    Examples
    --------
    >>> iterations_left([-100.0 - 2.0**-k for k in range(8)], max_iter=1000, tol=1e-5, n_observations=50)
    3
    """
    most = max_iter - len(bounds)
    if tol is None or most == 0:
        return most
    if len(bounds) < 4:
        return None
    changes = np.abs(np.diff(bounds[-_MEMORY - 1 :]))
    goal = tol * max(abs(bounds[-1]), n_observations)
    if changes[-1] <= goal:
        return 0
    rate = (changes[-1] / changes[0]) ** (1.0 / (len(changes) - 1)) if changes[0] > 0.0 else 1.0
    if rate >= 1.0 or goal == 0.0:
        return most
    return int(min(most, np.ceil(np.log(goal / changes[-1]) / np.log(rate))))


def describe(iteration: int, state: State, bounds: list[float], seconds: float | None) -> str:
    """
    Describe a run in a line.

    Parameters
    ----------
    iteration : int
        Number of the iteration.
    state : State
        The posterior.
    bounds : list of float
        Bounds so far.
    seconds : float or None
        Time that is left, by a guess.

    Returns
    -------
    str
        The line.
    """
    change = f"+{bounds[-1] - bounds[-2]:.2g}" if len(bounds) > 1 else "start"
    active = selected(state.weights.moments(0).mean)
    text = f"iteration {iteration}, bound {bounds[-1]:.6g} ({change}), {active.sum()} of {len(active)} kernels active"
    if seconds is None:
        return text
    minutes, rest = divmod(round(seconds), 60)
    return f"{text}, {minutes}:{rest:02d} left"
