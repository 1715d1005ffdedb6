"""Pictures: numbers in, Axes out. Nothing is shown or saved here, and no global style is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, finite_array, whole_number
from bemkl.kernels import stack_kernels
from bemkl.measures import NORMAL_95, alignments, similar_order, wilson

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "0.6"
"""Colours that readers with any colour vision can tell apart."""


def plot_weights(
    weights: npt.ArrayLike,
    deviations: npt.ArrayLike,
    names: Sequence[str],
    *,
    intervals: npt.ArrayLike | None = None,
    most: int = 20,
    ax: Any = None,
) -> Any:
    """
    Show kernel weights with their 95 % intervals, largest first.

    Parameters
    ----------
    weights : array_like of shape (n_kernels,)
        Expected weights, `kernel_weights_`.
    deviations : array_like of shape (n_kernels,)
        Their standard deviations, `kernel_weights_std_`.
    names : sequence of str
        Names of the kernels.
    intervals : array_like of shape (2, n_kernels), optional
        Lower and upper ends of the intervals, `weight_intervals()`; those of normal distributions without it, which
        weights that are nonnegative, or on or off, do not have.
    most : int
        How many kernels to show by name; the rest is summed up in a line.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.axes.Axes
        The picture.
    """
    mean, std = finite_array("weights", weights), finite_array("deviations", deviations)
    if mean.ndim != 1 or mean.shape != std.shape or len(names) != len(mean):
        raise ValueError(
            f"weights: expected as many weights as deviations and names, got shapes {mean.shape} and {std.shape} and "
            f"{len(names)} names. Where each class has weights of its own, pass one row."
        )
    ends = NORMAL_95 * np.outer([-1.0, 1.0], std) + mean if intervals is None else finite_array("intervals", intervals)
    if ends.shape != (2, len(mean)):
        raise ValueError(f"intervals: expected lower and upper ends, shape {(2, len(mean))}, got {ends.shape}.")
    order = np.argsort(-np.abs(mean), kind="stable")
    shown = order[: whole_number("most", most, least=1)][::-1]
    ax = _axes(ax, height=1.0 + 0.24 * len(shown))
    places = np.arange(len(shown))
    # A mean may lie outside: that of a weight that is almost surely zero does.
    middle, half = ends[:, shown].mean(axis=0), 0.5 * np.diff(ends[:, shown], axis=0)[0]
    ax.errorbar(middle, places, xerr=half, fmt="none", ecolor=BLUE, capsize=2)
    ax.plot(mean[shown], places, "o", color=BLUE, markersize=4)
    ax.axvline(0.0, color=GREY, linewidth=0.8, zorder=0)
    ax.set_yticks(places, [_short(names[m]) for m in shown], fontsize=8)
    ax.set_ylim(-0.7, len(shown) - 0.3)
    ax.set_xlabel("kernel weight, mean and 95 % interval")
    rest = order[len(shown) :]
    if len(rest):
        ax.set_title(
            f"{len(shown)} of {len(mean)} kernels; no other weight exceeds {np.abs(mean[rest]).max():.2g}", fontsize=9
        )
    return ax


def plot_bound(lower_bounds: npt.ArrayLike, *, ax: Any = None) -> Any:
    """
    Show how the lower bound rose, and how small its changes became.

    Parameters
    ----------
    lower_bounds : array_like of shape (n_iter,)
        The bound after each iteration, `lower_bounds_`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.axes.Axes
        The picture; the changes are on a second, logarithmic axis.
    """
    bounds = finite_array("lower_bounds", lower_bounds)
    if bounds.ndim != 1 or not bounds.size:
        raise ValueError(f"lower_bounds: expected one bound an iteration, got shape {bounds.shape}.")
    ax = _axes(ax)
    iterations = np.arange(1, len(bounds) + 1)
    ax.plot(iterations, bounds, color=BLUE, marker="o" if len(bounds) < 30 else None, markersize=3)
    if len(bounds) > 20:
        # The first steps are so large that they would flatten the rest.
        span = abs(bounds[-1] - bounds[len(bounds) // 10])
        ax.set_ylim(bounds[-1] - 1.2 * span - 1e-12 * abs(bounds[-1]), bounds[-1] + 0.1 * span)
    ax.set_xlabel("iteration")
    ax.set_ylabel("lower bound", color=BLUE)
    changes = np.diff(bounds)
    rising = changes > 0.0
    if rising.any():
        twin = ax.twinx()
        twin.semilogy(iterations[1:][rising], changes[rising], color=ORANGE, linestyle="--", linewidth=1)
        twin.set_ylabel("change", color=ORANGE)
    return ax


def plot_contributions(
    contributions: npt.ArrayLike,
    names: Sequence[str],
    *,
    deviations: npt.ArrayLike | None = None,
    intercept: Any = 0.0,
    most: int = 12,
    ax: Any = None,
) -> Any:
    """
    Explain one prediction: what each kernel, or view, adds to it.

    Parameters
    ----------
    contributions : array_like of shape (n_kernels,)
        One row of `contributions(X)`.
    names : sequence of str
        Names of the kernels, or `view_names_` of contributions by view.
    deviations : array_like of shape (n_kernels,), optional
        Standard deviations of the contributions, the same row of `contributions(X, return_std=True)[1]`, to show 95 %
        intervals of those that have a name.
    intercept : float
        The bias, `intercept_` or, where there are several classes, its entry.
    most : int
        How many to show by name; the others make one bar together.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.axes.Axes
        The picture.
    """
    parts = finite_array("contributions", contributions)
    if parts.ndim != 1 or len(names) != len(parts):
        raise ValueError(
            f"contributions: expected one row with a value for each of {len(names)} kernels, got shape {parts.shape}. "
            "Take one sample and, where there are several, one class: contributions[i] or contributions[i, :, c]."
        )
    stds = None if deviations is None else finite_array("deviations", deviations)
    if stds is not None and stds.shape != parts.shape:
        raise ValueError(f"deviations: expected one for each of {len(parts)} contributions, got shape {stds.shape}.")
    order = np.argsort(-np.abs(parts), kind="stable")
    shown = order[: whole_number("most", most, least=1)]
    labels = [_short(names[m]) for m in shown]
    values = [float(parts[m]) for m in shown]
    if len(shown) < len(parts):
        labels.append(f"{len(parts) - len(shown)} others")
        values.append(float(parts[order[len(shown) :]].sum()))
    labels.append("intercept")
    values.append(_one_number("intercept", intercept))
    ax = _axes(ax, height=1.0 + 0.24 * len(values))
    places = np.arange(len(values))[::-1]
    # Those that are summed up have a deviation that theirs do not tell.
    half = None if stds is None else NORMAL_95 * np.append(stds[shown], np.zeros(len(values) - len(shown)))
    colours = [BLUE if value >= 0.0 else ORANGE for value in values]
    bars = ax.barh(places, values, xerr=half, color=colours, height=0.7, error_kw={"elinewidth": 1, "ecolor": "0.3"})
    ax.bar_label(bars, fmt="%+.2g", padding=3, fontsize=8)
    ax.margins(x=0.22)
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set_yticks(places, labels, fontsize=8)
    ax.set_xlabel("contribution" if stds is None else "contribution, mean and 95 % interval")
    ax.set_title(f"sum {sum(values):.3g}", fontsize=9)
    return ax


def plot_calibration(labels: npt.ArrayLike, probabilities: npt.ArrayLike, *, n_bins: int = 10, ax: Any = None) -> Any:
    """
    Compare probabilities with frequencies, in bins of equally many samples.

    Parameters
    ----------
    labels : array_like of shape (n_samples,)
        Whether each sample belongs to the class, as truth values or 0 and 1.
    probabilities : array_like of shape (n_samples,)
        Probabilities of the class, a column of `predict_proba(X)`.
    n_bins : int
        Number of bins.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.axes.Axes
        The picture: frequencies with 95 % intervals, and the probabilities of the samples along the bottom.
    """
    truth = np.asarray(labels)
    truth = truth.astype(np.float64) if truth.dtype.kind in "biuf" else np.full(truth.shape, np.nan)
    probability = finite_array("probabilities", probabilities)
    if truth.shape != probability.shape or truth.ndim != 1 or not truth.size or np.setdiff1d(truth, [0, 1]).size:
        raise ValueError(
            "labels: expected a truth value for each probability, got shapes "
            f"{truth.shape} and {probability.shape}. Compare the labels with one class: y == classes_[1]."
        )
    if probability.min() < 0.0 or probability.max() > 1.0:
        raise ValueError(
            f"probabilities: expected numbers from 0 to 1, got {probability.min()} to {probability.max()}."
        )
    bins = np.array_split(
        np.argsort(probability, kind="stable"), min(whole_number("n_bins", n_bins, least=1), len(truth))
    )
    predicted = np.array([probability[rows].mean() for rows in bins])
    counts, hits = np.array([len(rows) for rows in bins]), np.array([truth[rows].sum() for rows in bins])
    frequency = hits / counts
    low, high = wilson(frequency, counts)
    ax = _axes(ax, height=4.0, width=4.2)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=0)
    ax.errorbar(
        predicted,
        frequency,
        yerr=[np.maximum(frequency - low, 0.0), np.maximum(high - frequency, 0.0)],
        fmt="o",
        color=BLUE,
        markersize=4,
        capsize=2,
    )
    ax.plot(probability, np.full(len(probability), -0.04), "|", color=ORANGE, markersize=5, alpha=0.4)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.07, 1.05), xlabel="predicted probability", ylabel="frequency, 95 % interval")
    return ax


def plot_similarity(kernels: Any, *, names: Sequence[str] | None = None, ax: Any = None) -> Any:
    """
    Show how alike kernels are: their centred alignments, similar kernels side by side.

    Parameters
    ----------
    kernels : KernelStack, dict or list of matrices, or ndarray of shape (n_samples, n_samples, n_kernels)
        Square kernels of the same samples.
    names : sequence of str, optional
        Names of the kernels; a KernelStack has its own.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.axes.Axes
        The picture; kernels have labels where there is room for them.
    """
    stack = stack_kernels(kernels)
    alignment = centred_alignment(stack)
    if names is None:
        names = stack.names
    if len(names) != len(alignment):
        raise ValueError(f"names: expected a name for each of {len(alignment)} kernels, got {len(names)}.")
    order = similar_order(alignment)
    ax = _axes(ax, height=5.0, width=6.0)
    image = ax.imshow(alignment[np.ix_(order, order)], vmin=min(0.0, alignment.min()), vmax=1.0, cmap="cividis")
    ax.figure.colorbar(image, ax=ax, label="centred alignment", shrink=0.8)
    if len(order) <= 40:
        labels = [_short(names[m]) for m in order]
        ax.set_yticks(np.arange(len(order)), labels, fontsize=8 if len(order) <= 20 else 6)
    else:
        ax.set_yticks([])
    ax.set_xticks([])
    ax.set_xlabel(f"{len(order)} kernels, in the same order" if len(order) <= 40 else f"{len(order)} kernels")
    return ax


def centred_alignment(kernels: Any) -> Array:
    r"""
    Cosines between centred kernels.

    .. math:: A_{mn} = \frac{\langle \mathbf{H}\mathbf{K}_m\mathbf{H}, \mathbf{H}\mathbf{K}_n\mathbf{H} \rangle_F}
              {\|\mathbf{H}\mathbf{K}_m\mathbf{H}\|_F\, \|\mathbf{H}\mathbf{K}_n\mathbf{H}\|_F}

    Parameters
    ----------
    kernels : KernelStack, dict or list of matrices, or ndarray of shape (n_samples, n_samples, n_kernels)
        Square kernels of the same samples.

    Returns
    -------
    ndarray of shape (n_kernels, n_kernels)
        The alignments; 0 for kernels that centring makes zero.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> centred_alignment(np.dstack([np.outer(x, x), np.outer(x, x) + 5.0, np.eye(3)])).round(3)
    array([[1.   , 1.   , 0.707],
           [1.   , 1.   , 0.707],
           [0.707, 0.707, 1.   ]])
    """
    stack = stack_kernels(kernels)
    if stack.shape[0] != stack.shape[1]:
        raise ValueError(f"kernels: expected shape (n_samples, n_samples, n_kernels), got {stack.shape}.")
    return alignments(stack.dense().values.astype(np.float64))


def _axes(ax: Any, *, height: float = 3.2, width: float = 6.0) -> Any:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need matplotlib. Install it: pip install matplotlib") from None
    _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    return ax


def _short(name: str, most: int = 42) -> str:
    """Cut a long name in the middle: the kernel is at its beginning, the group at its end."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most // 2) + 1 :]}"


def _one_number(name: str, value: Any) -> float:
    """Take a number, also from an array of one, as models with one output have it."""
    if np.size(value) != 1:
        raise ValueError(f"{name}: expected one number, got {value!r:.80}. Take that of one class: {name}_[c].")
    return float(np.ravel(value)[0])
