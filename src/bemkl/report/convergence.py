"""The part of the page on the fit itself: how the lower bound rose."""

from __future__ import annotations

from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.report.drawing import Frame, chart, figure, line, spread
from bemkl.report.markup import Section, number, paragraph, plural
from bemkl.report.subject import Subject

_FEW = 20


def convergence_section(subject: Subject) -> Section:
    """Show the bound after each iteration."""
    model = subject.model
    bounds = np.asarray(model.lower_bounds_, dtype=np.float64)
    verdict = (
        f"The bound settled after {plural(model.n_iter_, 'iteration')}."
        if model.converged_
        else f"The bound had not settled after {plural(model.n_iter_, 'iteration')}: raise max_iter before trusting it."
    )
    text = (
        f"{verdict} It ended at {number(model.lower_bound_, 6)}. {_what(model)} rises with each "
        f"iteration; the fit stops when it changes by less than tol = {model.tol} of its size."
    )
    if len(bounds) < 2:
        return Section("convergence", "Convergence", paragraph(text))
    figures = _bound(bounds) + _changes(bounds)
    return Section("convergence", "Convergence", f'{paragraph(text)}<div class="figures">{figures}</div>')


def _what(model: Any) -> str:
    if model.posterior == "marginal":
        return "The log evidence, by Laplace's approximation,"
    return "The lower bound of the log evidence"


def _bound(bounds: Array) -> str:
    # The first steps are so large that they would flatten the rest.
    first = len(bounds) // 10 if len(bounds) > _FEW else min(1, len(bounds) - 2)
    iterations = np.arange(first + 1, len(bounds) + 1, dtype=np.float64)
    shown = bounds[first:]
    frame = Frame(_whole(iterations[0], len(bounds)), spread(shown))
    words = f"Lower bound from {number(shown[0], 6)} in iteration {first + 1} to {number(shown[-1], 6)} at the end."
    picture = chart(frame, [line(frame, iterations, shown)], "iteration", "lower bound", words)
    caption = "Lower bound after each iteration" + (f", from iteration {first + 1} on." if first else ".")
    return figure(picture, caption)


def _changes(bounds: Array) -> str:
    changes = np.diff(bounds)
    places = np.flatnonzero(changes > 0.0)
    if len(places) < 2:
        return ""
    exponents = np.log10(changes[places])
    frame = Frame(_whole(2.0, len(bounds)), spread(exponents))
    words = f"Changes of the bound fall from {number(changes[places[0]])} to {number(changes[places[-1]])}."
    picture = chart(
        frame, [line(frame, (places + 2.0).tolist(), exponents.tolist())], "iteration", "change, power of ten", words
    )
    return figure(picture, "Change of the bound with each iteration, on a logarithmic scale.")


def _whole(first: float, last: int) -> tuple[float, float]:
    """Return a range that is wide enough for ticks at whole numbers."""
    return float(first), max(float(first) + 5.0, float(last))
