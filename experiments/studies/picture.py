"""The picture of a study: weights of views with their intervals, and how they differ between splits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.studies.weights import NORMAL_95, ViewWeights

_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "0.6"  # told apart by readers with any colour vision
_STYLES = ((_BLUE, "o"), (_ORANGE, "s"))
_RESOLUTION = 150


def draw_weights(path: Path, weights: Mapping[str, ViewWeights], words: Mapping[str, str]) -> bool:
    """Draw weights of views, the largest first."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    first = next(iter(weights.values()))
    names = [first.views[view] for view in reversed(first.order)]
    figure = Figure(figsize=(7.0, 1.4 + (0.3 + 0.14 * len(weights)) * len(names)), layout="constrained")
    ax = figure.add_subplot()
    for position, (name, here) in enumerate(weights.items()):
        offset = 0.0 if len(weights) == 1 else 0.2 - 0.4 * position
        _draw_one(ax, here, names, offset, name, *_STYLES[position])
    ax.axvline(0.0, color=_GREY, linewidth=0.8, zorder=0)
    ax.set_yticks(range(len(names)), [_label(name, words) for name in names], fontsize=9)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlabel("weight, as part of the sum of all", fontsize=9)
    figure.supxlabel("point and bar: mean over splits and 95 % posterior interval; ticks: single splits", fontsize=8)
    ax.tick_params(axis="x", labelsize=9)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if len(weights) > 1:
        figure.legend(loc="outside upper center", ncols=2, fontsize=9, frameon=False)
    figure.savefig(path, dpi=_RESOLUTION)
    return True


def _draw_one(
    ax: Any, weights: ViewWeights, names: list[str], offset: float, scenario: str, colour: str, marker: str
) -> None:
    """Draw the weights of one scenario."""
    columns = [weights.views.index(name) for name in names]
    means, deviations = weights.means[:, columns], weights.deviations[:, columns]
    places = np.arange(len(names)) + offset
    ax.errorbar(
        means.mean(axis=0),
        places,
        xerr=NORMAL_95 * deviations.mean(axis=0),
        fmt=marker,
        color=colour,
        markersize=5,
        capsize=3,
        linewidth=1.4,
        label=scenario,
    )
    if weights.n_splits > 1:
        ax.scatter(
            means.ravel(),
            np.tile(places + 0.14, weights.n_splits),
            marker="|",
            s=22,
            linewidth=0.9,
            color=colour,
            alpha=0.6,
        )


def _label(name: str, words: Mapping[str, str]) -> str:
    """Return name and words of a view, once if they are the same."""
    described, plain = words.get(name, ""), name.replace("_", " ")
    return plain if described in ("", name) else f"{plain} ({described})"
