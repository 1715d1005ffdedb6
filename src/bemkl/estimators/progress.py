"""Progress of a fit: a live bar on a terminal or in a notebook, plain lines in a log."""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from bemkl.arrays import Array
from bemkl.estimators.summary import selected

_MEMORY = 5
_PAUSE = 0.1


Look = Callable[[int, Callable[[], Array], float], None]
"""Shows an iteration: its number, what returns the (n_kernels,) weights, and the bound."""


class Screen(Protocol):
    """A place where the progress of runs is shown."""

    def show(self, label: str, iteration: int, left: int | None, text: str) -> None:
        """Show how far a run is, how many iterations are left, and a line about it."""

    def close(self) -> None:
        """Leave the last picture as it is."""


class Bars:
    """A bar a run on a terminal."""

    def __init__(self, console: Console) -> None:
        columns = TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[text]}")
        self._live = Progress(*columns, console=console)
        self._tasks: dict[str, TaskID] = {}
        self._live.start()

    def show(self, label: str, iteration: int, left: int | None, text: str) -> None:
        """Move the bar of a run."""
        if label not in self._tasks:
            self._tasks[label] = self._live.add_task(label, total=None, text="")
        total = None if left is None else iteration + left
        self._live.update(self._tasks[label], completed=iteration, total=total, text=text)

    def close(self) -> None:
        """Leave the bars as they are."""
        self._live.stop()


class Cell:
    """A bar a run in the output of a notebook's cell."""

    def __init__(self) -> None:
        from IPython.display import display

        self._rows: dict[str, str] = {}
        self._handle: Any = display({"text/plain": ""}, raw=True, display_id=True)
        self._last = 0.0

    def show(self, label: str, iteration: int, left: int | None, text: str) -> None:
        """Move the bar of a run."""
        extent = "" if left is None else f' value="{iteration}" max="{iteration + left}"'
        self._rows[label] = f"<div>{html.escape(label)} <progress{extent}></progress> {html.escape(text)}</div>"
        if left == 0 or time.perf_counter() - self._last > _PAUSE:
            self.close()

    def close(self) -> None:
        """Draw all bars."""
        self._last = time.perf_counter()
        self._handle.update({"text/html": "".join(self._rows.values()), "text/plain": ""}, raw=True)


class Lines:
    """Lines in a log: at iterations 1, 2, 4, 8, ... and the last one, or at all."""

    def __init__(self, console: Console, *, every: bool) -> None:
        self._console = console
        self._every = every

    def show(self, label: str, iteration: int, left: int | None, text: str) -> None:
        """Write a line about a run."""
        if self._every or left == 0 or iteration & (iteration - 1) == 0:
            self._console.print(f"{label}: {text}", highlight=False, markup=False)

    def close(self) -> None:
        """Nothing is left to do."""


class FitProgress:
    """Shows how runs go on."""

    def __init__(self, verbose: int, max_iter: int, tol: float | None, console: Console | None = None) -> None:
        self._verbose = int(verbose)
        self._max_iter = max_iter
        self._tol = tol
        self._console = console
        self._screen: Screen | None = None

    def __enter__(self) -> FitProgress:
        """Find the screen."""
        if self._verbose > 0:
            console = Console(soft_wrap=True) if self._console is None else self._console
            if console.is_jupyter:
                self._screen = Cell()
            elif console.is_terminal:
                self._screen = Bars(console)
            else:
                self._screen = Lines(console, every=self._verbose > 1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the screen as it is."""
        if self._screen is not None:
            self._screen.close()

    def watch(self, label: str, n_observations: int) -> Look:
        """Return what a run calls after each iteration."""
        started, bounds = time.perf_counter(), list[float]()

        def look(iteration: int, weights: Callable[[], Array], bound: float) -> None:
            if self._screen is not None and iteration > 0:
                bounds.append(bound)
                left = iterations_left(bounds, self._max_iter, self._tol, n_observations)
                seconds = None if left is None else (time.perf_counter() - started) / iteration * left
                self._screen.show(label, iteration, left, describe(iteration, weights(), bounds, seconds))

        return look


def iterations_left(bounds: list[float], max_iter: int, tol: float | None, n_observations: int) -> int | None:
    """Guess how many iterations a run still needs, from how fast the changes of its bound shrink."""
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


def describe(iteration: int, weights: Array, bounds: list[float], seconds: float | None) -> str:
    """Describe a run in a line."""
    change = f"{bounds[-1] - bounds[-2]:+.2g}" if len(bounds) > 1 else "start"
    active = selected(weights)
    text = f"iteration {iteration}, bound {bounds[-1]:.6g} ({change}), {active.sum()} of {len(active)} kernels active"
    if seconds is None:
        return text
    minutes, rest = divmod(round(seconds), 60)
    return f"{text}, {minutes}:{rest:02d} left"
