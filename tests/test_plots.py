"""Plots show the numbers they were given, with four kernels and with eight hundred."""

from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import calibration_curve

matplotlib.use("Agg")

from matplotlib import pyplot

from bemkl import KernelStack
from bemkl.plots import (
    centred_alignment,
    plot_bound,
    plot_calibration,
    plot_contributions,
    plot_similarity,
    plot_weights,
)

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def names(count):
    return [f"gaussian(w={m}) on a feature with a long name" for m in range(count)]


def room_for_labels(ax):
    """Labels lie inside the figure and do not overlap."""
    figure = ax.figure
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels() if label.get_text()]
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.y1 <= figure.bbox.y1 for box in boxes)
    boxes.sort(key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))


def ends_of_bars(ax):
    (bars,) = ax.containers[0].lines[2]
    return np.array([segment[:, 0] for segment in bars.get_segments()])


def test_weights_with_intervals_that_are_not_symmetric():
    """The mean of a weight that is almost surely zero lies outside its interval."""
    intervals = [[0.5, 0.0, 0.0], [3.0, 0.0, 0.9]]
    ax = plot_weights([1.0, 0.01, 0.4], [0.6, 0.1, 0.3], names(3), intervals=intervals)
    assert_allclose(ends_of_bars(ax), [[0.0, 0.0], [0.0, 0.9], [0.5, 3.0]])
    assert_allclose(ax.lines[-2].get_xdata(), [0.01, 0.4, 1.0])


@pytest.mark.parametrize("count", [1, 4, 800])
def test_weights(count):
    weights, deviations = rng.normal(size=count), rng.uniform(size=count)
    ax = plot_weights(weights, deviations, names(count))
    order = np.argsort(-np.abs(weights))[:20][::-1]
    assert_allclose(ax.lines[-2].get_xdata(), weights[order])
    half = 1.959964 * deviations[order]
    assert_allclose(ends_of_bars(ax), np.stack([weights[order] - half, weights[order] + half], axis=1), atol=1e-6)
    assert ("of 800 kernels" in ax.get_title()) == (count == 800)
    room_for_labels(ax)


@pytest.mark.parametrize("count", [1, 4, 800])
def test_contributions(count):
    parts = rng.normal(size=count)
    ax = plot_contributions(parts, names(count), intercept=0.5)
    lengths = [bar.get_width() for bar in ax.patches]
    assert_allclose(sum(lengths), parts.sum() + 0.5)
    assert len(lengths) == min(count, 12) + (count > 12) + 1
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert ("788 others" in labels) == (count == 800)
    room_for_labels(ax)


@pytest.mark.parametrize("count", [1, 4, 800])
def test_contributions_with_intervals(count):
    parts, deviations = rng.normal(size=count), rng.uniform(size=count)
    ax = plot_contributions(parts, names(count), deviations=deviations, intercept=0.5)
    order = np.argsort(-np.abs(parts))[:12]
    (bars,) = ax.containers[-1].errorbar.lines[2]
    found = np.array([segment[:, 0] for segment in bars.get_segments()])
    half = 1.959964 * deviations[order]
    expected = np.stack([parts[order] - half, parts[order] + half], axis=1)
    assert_allclose(found[: len(order)], expected, atol=1e-6)
    assert_allclose(np.ptp(found[len(order) :], axis=1), 0.0)
    room_for_labels(ax)


@pytest.mark.parametrize("count", [1, 2, 15, 300])
def test_bound(count):
    bounds = -100.0 - np.exp(-0.1 * np.arange(count)) * 50.0
    ax = plot_bound(bounds)
    assert_allclose(ax.lines[0].get_ydata(), bounds)
    twins = [other for other in ax.figure.axes if other is not ax]
    assert len(twins) == (count > 1)
    if twins:
        assert_allclose(twins[0].lines[0].get_ydata(), np.diff(bounds))
    low, high = ax.get_ylim()
    assert low < bounds[-1] < high


def test_calibration():
    rng = np.random.default_rng(0)  # its own: one of ten intervals may miss for another draw
    probability = rng.uniform(size=1000)
    labels = rng.uniform(size=1000) < probability
    ax = plot_calibration(labels, probability)
    frequency, predicted = calibration_curve(labels, probability, n_bins=10, strategy="quantile")
    (line, _, _) = ax.containers[0]
    # scikit-learn puts samples on the edge of a bin on the other side.
    assert_allclose(line.get_xdata(), predicted, atol=0.01)
    assert_allclose(line.get_ydata(), frequency, atol=0.02)
    (bars,) = ax.containers[0].lines[2]
    for segment, x in zip(bars.get_segments(), predicted, strict=True):
        assert 0.0 <= segment[0, 1] < x < segment[1, 1] <= 1.0


@pytest.mark.parametrize("count", [1, 2, 4, 30, 800])
def test_similarity(count):
    X = rng.normal(size=(12, count))
    stack = KernelStack([np.outer(x, x) for x in X.T], names(count))
    ax = plot_similarity(stack)
    shown = ax.images[0].get_array()
    assert shown.shape == (count, count)
    assert_allclose(np.diag(shown), 1.0)
    assert_allclose(np.sort(np.ravel(shown)), np.sort(np.ravel(centred_alignment(stack))))
    room_for_labels(ax)


def test_similar_kernels_are_side_by_side():
    x, z = rng.normal(size=(2, 30))
    stack = [np.outer(v, v) for v in (x, z, x + 0.01 * z, z + 0.01 * x)]
    shown = plot_similarity(np.dstack(stack)).images[0].get_array()
    assert shown[0, 1] > 0.9 < shown[2, 3]
    assert shown[1, 2] < 0.5


def test_alignment_by_hand():
    X, Z = rng.normal(size=(2, 10, 3))
    H = np.eye(10) - 0.1
    K, L = H @ (X @ X.T) @ H, H @ (Z @ Z.T) @ H
    expected = np.trace(K @ L) / np.sqrt(np.trace(K @ K) * np.trace(L @ L))
    assert_allclose(centred_alignment(np.dstack([X @ X.T, Z @ Z.T]))[0, 1], expected, rtol=1e-12)
    assert_allclose(centred_alignment(np.dstack([X @ X.T, np.ones((10, 10))]))[1], 0.0, atol=1e-15)


def test_given_axes_are_used():
    _, ax = pyplot.subplots()
    assert plot_bound([-3.0, -2.0], ax=ax) is ax
    assert plot_weights([1.0], [0.1], ["a"], ax=ax) is ax


REFUSED = {
    "wrong intervals": (
        lambda: plot_weights([1.0, 2.0], [0.1, 0.1], names(2), intervals=np.zeros((2, 3))),
        r"intervals: expected lower and upper ends, shape \(2, 2\), got \(2, 3\)",
    ),
    "fewer names": (lambda: plot_weights([1.0, 2.0], [0.1, 0.1], ["a"]), "as many weights as deviations and names"),
    "weights of classes": (lambda: plot_weights(np.ones((2, 3)), np.ones((2, 3)), names(3)), "pass one row"),
    "all contributions": (lambda: plot_contributions(np.ones((5, 3)), names(3)), r"contributions\[i\]"),
    "no bounds": (lambda: plot_bound([]), "one bound an iteration"),
    "labels": (lambda: plot_calibration([1, 2], [0.1, 0.2]), "truth value for each probability"),
    "probabilities": (lambda: plot_calibration([0, 1], [0.1, 1.2]), "numbers from 0 to 1"),
    "other deviations": (
        lambda: plot_contributions(np.ones(3), names(3), deviations=np.ones(2)),
        "deviations: expected one for each of 3 contributions",
    ),
    "intercepts": (lambda: plot_contributions([1.0], ["a"], intercept=[1.0, 2.0]), "intercept: expected one number"),
    "names of classes": (lambda: plot_calibration(["a", "b"], [0.1, 0.2]), r"y == classes_\[1\]"),
    "NaN": (lambda: plot_similarity(np.full((2, 2, 1), np.nan)), "kernels, 'kernel 0': expected finite"),
    "rectangular": (lambda: plot_similarity(np.ones((3, 2, 4))), r"\(n_samples, n_samples, n_kernels\)"),
    "similarity names": (lambda: plot_similarity(np.ones((2, 2, 3)), names=["a"]), "a name for each of 3 kernels"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_sentence(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"plots need matplotlib\. Install it: pip install matplotlib$"):
        plot_bound([-1.0])
