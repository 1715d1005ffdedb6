"""The part of the page on whether probabilities and intervals can be believed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.evaluation import HeldOut
from bemkl.measures import wilson
from bemkl.report.drawing import Frame, chart, dots, figure, line, upright_intervals
from bemkl.report.markup import Section, paragraph, percent, plural, table
from bemkl.report.scores import no_predictions
from bemkl.report.subject import Subject

_BINS, _LEAST_IN_BIN, _MOST_DRAWN, _MOST_MARKS = 10, 5, 4, 500
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Nominal probabilities of the intervals whose coverage is counted."""


@dataclass(frozen=True, slots=True)
class Frequency:
    """How often something happened, beside how often it should."""

    predicted: float  # mean predicted probability, or nominal probability of an interval
    observed: float  # share of samples
    low: float
    high: float
    count: int  # number of samples


def reliability(happened: npt.NDArray[np.bool_], probability: Array) -> list[Frequency]:
    """
    Compare probabilities with frequencies, in bins of equally many samples.

    Shapes: happened (n_samples,), probability (n_samples,).
    """
    n_bins = min(_BINS, max(1, len(probability) // _LEAST_IN_BIN))
    bins = np.array_split(np.argsort(probability, kind="stable"), n_bins)
    return [_frequency(float(probability[rows].mean()), happened[rows]) for rows in bins]


def coverage(y: Array, mean: Array, deviation: Array) -> list[Frequency]:
    """Count how many values are inside their intervals. Shapes: y (n_samples,), mean, deviation (n_samples,)."""
    distance = np.abs(y - mean) / deviation
    return [_frequency(level, distance <= NormalDist().inv_cdf(0.5 + level / 2.0)) for level in LEVELS]


def calibration_section(subject: Subject) -> Section:
    """Show whether probabilities and intervals can be believed."""
    held_out = subject.held_out
    if held_out is None:
        body = paragraph(no_predictions(subject))
    elif held_out.classes is None:
        body = _responses(subject, held_out)
    elif held_out.probability is None:
        body = paragraph("Not available: the held-out predictions have no probabilities.")
    else:
        body = _classes(held_out, held_out.probability)
    return Section("calibration", "Calibration", body)


def _frequency(predicted: float, happened: npt.NDArray[np.bool_]) -> Frequency:
    observed, count = float(happened.mean()), len(happened)
    return Frequency(predicted, observed, *wilson(observed, count), count)


def _classes(held_out: HeldOut, P: Array) -> str:
    if held_out.y.ndim == 2:
        what, happened, probability = "a label", held_out.y.ravel() == 1, P.ravel()
    elif P.shape[1] == 2:
        assert held_out.classes is not None, "a classification has classes"
        label = str(held_out.classes[1])
        what, happened, probability = f"class {label}", held_out.y == held_out.classes[1], P[:, 1]
    else:
        assert held_out.classes is not None, "a classification has classes"
        what = "the most probable class"
        happened, probability = held_out.classes[P.argmax(axis=1)] == held_out.y, P.max(axis=1)
    found = reliability(happened, probability)
    outside = sum(not each.low <= each.predicted <= each.high for each in found)
    text = (
        f"Samples are sorted by the predicted probability of {what} and put into {plural(len(found), 'bin')} of "
        "equally many. In each, the observed frequency should be the mean probability, which is the dashed line. "
        f"{_verdict(outside, len(found))}"
    )
    frame = Frame((-0.02, 1.02), (-0.07, 1.03), height=320.0)
    shown = np.sort(probability)[:: max(1, len(probability) // _MOST_MARKS)]
    marks = [line(frame, [0.0, 1.0], [0.0, 1.0], "reference"), dots(frame, shown, np.full(len(shown), -0.045))]
    marks.append(_points(frame, found))
    picture = chart(frame, marks, "predicted probability", "observed frequency", f"Reliability curve. {text}")
    caption = "Frequency with Wilson's 95 % interval for each bin; the marks along the bottom are the samples."
    cells = [
        [f"{each.predicted:.3f}", f"{each.observed:.3f}", f"{each.low:.3f} to {each.high:.3f}", str(each.count)]
        for each in found
    ]
    numbers = table(["mean probability", "frequency", "95 % interval", "samples"], cells, "Bins of the curve")
    return paragraph(text) + f'<div class="figures">{figure(picture, caption)}<div>{numbers}</div></div>'


def _responses(subject: Subject, held_out: HeldOut) -> str:
    if held_out.deviation is None:
        return paragraph("Not available: the held-out predictions have no standard deviations.")
    columns = [
        np.asarray(values, dtype=np.float64).reshape(len(held_out.y), -1).T
        for values in (held_out.y, held_out.predicted, held_out.deviation)
    ]
    found = [coverage(*column) for column in zip(*columns, strict=True)]
    names = subject.output_names
    text = (
        "The model gives each prediction a standard deviation. An interval that should hold 90 % of the values holds "
        "about 90 % of them if the deviations are right: below the dashed line they are too small, above it too large."
    )
    pictures = "".join(
        _coverage_figure(name, each) for name, each in list(zip(names, found, strict=True))[:_MOST_DRAWN]
    )
    rows = [
        [name, *(f"{percent(f.observed)} ({percent(f.low)} to {percent(f.high)})" for f in each)]
        for name, each in zip(names, found, strict=True)
    ]
    head = ["response", *(f"{percent(level)} interval" for level in LEVELS)]
    numbers = table(head, rows, "Share of values inside their interval, with Wilson's 95 % interval")
    cut = f" The first {_MOST_DRAWN} of {len(names)} responses are drawn." if len(names) > _MOST_DRAWN else ""
    return paragraph(text + cut) + f'<div class="figures">{pictures}</div>{numbers}'


def _coverage_figure(name: str, found: list[Frequency]) -> str:
    lowest = min(0.4, *(each.low for each in found))
    frame = Frame((0.45, 1.02), (lowest - 0.03, 1.03))
    marks = [line(frame, [0.45, 1.0], [max(0.45, lowest), 1.0], "reference"), _points(frame, found)]
    words = "; ".join(f"{percent(each.predicted)} interval holds {percent(each.observed)}" for each in found)
    picture = chart(frame, marks, "nominal coverage", "observed coverage", f"Coverage of {name}: {words}.")
    return figure(picture, f"Coverage of the intervals, {name}.")


def _points(frame: Frame, found: list[Frequency]) -> str:
    ends = [(each.low, each.high) for each in found]
    return upright_intervals(frame, [each.predicted for each in found], [each.observed for each in found], ends)


def _verdict(outside: int, n_bins: int) -> str:
    if not outside:
        return "The line is inside all intervals: the samples give no reason to doubt the probabilities."
    return f"The line is outside {outside} of {plural(n_bins, 'interval')}; one in twenty would be so by chance."
