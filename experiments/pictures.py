"""Pictures of the report; they need matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.job import Record
from experiments.pairing import ScoreTable
from experiments.published import TABLE1
from experiments.table1 import OTHERS, OURS, count_kernels

_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "#777777"  # told apart by colour-blind readers
_PRIORS = {"sparse": _ORANGE, "dense": _BLUE}
_MARKERS = "osD^vPX*"


def write_pictures(folder: Path, records: Mapping[str, Sequence[Record]]) -> list[str]:
    """Draw what there are results for."""
    scores = ScoreTable(count_kernels(records.get("table1", ())))
    printed = [
        name for name in TABLE1 if scores.has(name, "as printed, sparse") and scores.has(name, "as printed, dense")
    ]
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    drawn = []
    for name, draw in (("table1.png", _draw_table1), ("table1_methods.png", _draw_methods)):
        if printed:
            figure = Figure(figsize=(10.0, 4.4), layout="constrained")
            draw(figure, scores, printed)
            figure.savefig(folder / name, dpi=120)
            drawn.append(name)
    return drawn


def _draw_table1(figure: Any, scores: ScoreTable, sets: Sequence[str]) -> None:
    """Draw accuracies and numbers of kernels, the paper's and ours."""
    left, right = figure.subplots(1, 2, width_ratios=[1.5, 1.0])
    cells = list(product(sets, _PRIORS))
    for position, (name, prior) in enumerate(cells):
        printed, ours = getattr(TABLE1[name], prior), f"as printed, {prior}"
        accuracy, kernels = 100.0 * scores.values(name, ours, "accuracy"), scores.values(name, ours, "kernels")
        left.errorbar(position - 0.15, *printed.accuracy, fmt="o", color=_GREY, capsize=2)
        left.errorbar(position + 0.15, accuracy.mean(), accuracy.std(ddof=1), fmt="o", color=_PRIORS[prior], capsize=2)
        right.errorbar(
            printed.kernels[0],
            kernels.mean(),
            xerr=printed.kernels[1],
            yerr=kernels.std(ddof=1),
            fmt="o",
            color=_PRIORS[prior],
        )
    for prior in _PRIORS:
        _name_points(right, scores, sets, prior)
    left.set_xticks(
        range(len(cells)), [f"{name}, {prior}" for name, prior in cells], rotation=60, ha="right", fontsize=8
    )
    left.set(ylabel="test accuracy, %", title="Accuracy: paper (grey), ours as printed")
    ends = np.array([10.0, 500.0])
    right.plot(ends, ends, color=_GREY, linewidth=0.8, zorder=0)
    right.set(xscale="log", yscale="log", xlabel="paper", ylabel="ours as printed", title="Selected kernels")
    for prior, colour in _PRIORS.items():
        right.plot([], [], "o", color=colour, label=prior)
    right.legend(frameon=False)


def _name_points(panel: Any, scores: ScoreTable, sets: Sequence[str], prior: str) -> None:
    """Write names beside points, left and right in turn: neighbours would cover each other."""
    ordered = sorted(sets, key=lambda name: float(getattr(TABLE1[name], prior).kernels[0]))
    for position, name in enumerate(ordered):
        point = getattr(TABLE1[name], prior).kernels[0], scores.values(name, f"as printed, {prior}", "kernels").mean()
        offset, side = ((5, -9), "left") if position % 2 else ((-5, 4), "right")
        panel.annotate(name, point, offset, textcoords="offset points", fontsize=7, ha=side)


def _draw_methods(figure: Any, scores: ScoreTable, sets: Sequence[str]) -> None:
    """Draw accuracy and log loss of all methods, set by set."""
    methods = [name for name in (*OURS, *OTHERS) if "printed" not in name]
    panels = zip(
        figure.subplots(1, 2), (("accuracy", "test accuracy, %", 100.0), ("log_loss", "log loss", 1.0)), strict=True
    )
    for panel, (score, label, factor) in panels:
        for offset, (method, marker) in enumerate(zip(methods, _MARKERS, strict=True)):
            means = [
                factor * scores.values(name, method, score).mean() if scores.has(name, method) else np.nan
                for name in sets
            ]
            colour = _BLUE if method in OURS else _ORANGE
            panel.plot(
                np.arange(len(sets)) + 0.09 * (offset - 3.5), means, marker, color=colour, markersize=5, label=method
            )
        panel.set_xticks(range(len(sets)), sets, rotation=40, ha="right", fontsize=8)
        panel.set(ylabel=label)
        panel.grid(axis="x", linewidth=0.3)
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
