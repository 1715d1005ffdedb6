"""The part of the page on errors: which classes are taken for which, and how far off responses are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bemkl.evaluation import HeldOut
from bemkl.report.drawing import Frame, chart, dots, figure, line, spread
from bemkl.report.markup import Section, escape, number, paragraph, percent, plural, scrolling, table
from bemkl.report.scores import no_predictions
from bemkl.report.subject import Subject

_MOST_CLASSES, _MOST_LISTED, _MOST_DRAWN, _MOST_POINTS = 40, 10, 4, 1500
_STRONGEST, _SHORT, _FEW = 0.55, 4, 8

Counts = npt.NDArray[np.intp]


def error_section(subject: Subject) -> Section:
    """Show what goes wrong."""
    held_out = subject.held_out
    title = "Confusion" if subject.is_classifier else "Residuals"
    if held_out is None:
        body = paragraph(no_predictions(subject))
    elif held_out.classes is None:
        body = _residuals(subject, held_out)
    elif held_out.y.ndim == 2:
        body = _labels(subject, held_out)
    else:
        body = _confusion(held_out, held_out.classes)
    return Section("errors", title, body)


def count_confusions(held_out: HeldOut, classes: npt.NDArray[np.generic]) -> Counts:
    """Count how often each class was taken for each. Shapes: classes (n_classes,); returns (n_classes, n_classes)."""
    place = {label: k for k, label in enumerate(classes.tolist())}
    counts = np.zeros((len(classes), len(classes)), dtype=np.intp)
    for truth, guess in zip(held_out.y.tolist(), held_out.predicted.tolist(), strict=True):
        counts[place[truth], place[guess]] += 1
    return counts


def _confusion(held_out: HeldOut, classes: npt.NDArray[np.generic]) -> str:
    counts = count_confusions(held_out, classes)
    labels = [str(label) for label in classes.tolist()]
    wrong = counts - np.diag(counts.diagonal())
    n_wrong = int(wrong.sum())
    text = f"{n_wrong} of {plural(int(counts.sum()), 'sample')} {'is' if n_wrong == 1 else 'are'} wrong."
    worst = [(i, j) for i, j in _by_size(wrong)[:_MOST_LISTED] if wrong[i, j]]
    if worst and len(labels) > 2:
        pairs = "; ".join(f"{labels[i]} as {labels[j]} ({wrong[i, j]})" for i, j in worst)
        text += f" The most frequent errors: {pairs}."
    shown = np.arange(len(labels))
    if len(labels) > _MOST_CLASSES:
        errors = wrong.sum(axis=0) + wrong.sum(axis=1)
        shown = np.sort(np.argsort(-errors, kind="stable")[:_MOST_CLASSES])
        text += f" The matrix has the {_MOST_CLASSES} of {len(labels)} classes with the most errors."
    text += " Rows are true classes, columns predicted ones; the stronger the colour, the larger the share of the row."
    return paragraph(text) + _matrix(counts, labels, shown)


def _matrix(counts: Counts, labels: list[str], shown: Counts) -> str:
    totals = counts.sum(axis=1)
    many = len(shown) > _FEW and max(len(label) for label in labels) > _SHORT
    # Names of many classes do not fit above narrow columns: numbers stand for them there.
    top = "".join(
        f'<th scope="col" title="{escape(labels[j])}">{k + 1 if many else escape(labels[j])}</th>'
        for k, j in enumerate(shown)
    )
    lines = []
    for k, i in enumerate(shown):
        cells = "".join(_cell(int(counts[i, j]), int(totals[i]), bool(i == j)) for j in shown)
        name = f"{k + 1}. {labels[i]}" if many else labels[i]
        right = percent(counts[i, i] / totals[i]) if totals[i] else "–"
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{cells}<td>{totals[i]}</td><td>{right}</td></tr>')
    kind = "matrix dense" if len(shown) > _FEW else "matrix"
    content = (
        f'<table class="{kind}"><caption>Confusion matrix: true classes by predicted ones</caption>'
        f'<thead><tr><th scope="col">true \\ predicted</th>{top}<th scope="col">all</th>'
        f'<th scope="col">right</th></tr></thead><tbody>{"".join(lines)}</tbody></table>'
    )
    return scrolling(content, "Confusion matrix")


def _cell(count: int, total: int, is_right: bool) -> str:
    # The root keeps rare errors visible.
    shade = _STRONGEST * (count / total) ** 0.5 if total else 0.0
    kind = "right" if is_right else "wrong"
    return f'<td class="{kind}" style="--strength:{shade:.3f}">{count if count or is_right else "·"}</td>'


def _labels(subject: Subject, held_out: HeldOut) -> str:
    truth, guess = held_out.y.astype(bool), held_out.predicted.astype(bool)
    head = ["label", "has it, predicted", "has it, missed", "has it not, predicted", "has it not, left out"]
    pairs = ((truth & guess), (truth & ~guess), (~truth & guess), (~truth & ~guess))
    counts = np.array([each.sum(axis=0) for each in pairs]).T
    rows = [[name, *map(str, row)] for name, row in zip(subject.output_names, counts.tolist(), strict=True)]
    text = "Each label is right or wrong by itself; numbers are samples."
    return paragraph(text) + table(head, rows, "Right and wrong by label")


def _residuals(subject: Subject, held_out: HeldOut) -> str:
    truth, mean = (np.asarray(values, dtype=np.float64) for values in (held_out.y, held_out.predicted))
    residuals = (truth - mean).reshape(len(truth), -1)
    means = mean.reshape(len(mean), -1)
    rows = np.unique(np.linspace(0, len(truth) - 1, min(len(truth), _MOST_POINTS)).astype(np.intp))
    pictures, names = [], subject.output_names
    for k, name in enumerate(names[:_MOST_DRAWN]):
        x, y = means[rows, k], residuals[rows, k]
        frame = Frame(spread(x), spread(np.append(y, 0.0)))
        marks = [dots(frame, x, y), line(frame, frame.x_range, (0.0, 0.0), "reference")]
        words = f"Residuals of {name} against the prediction, from {number(y.min())} to {number(y.max())}."
        pictures.append(figure(chart(frame, marks, "predicted", "true minus predicted", words), f"Residuals, {name}."))
    head = ["response", "mean", "deviation", "least", "median", "largest"]
    quantiles = np.quantile(residuals, [0.0, 0.5, 1.0], axis=0).T
    cells = [
        [name, *map(number, (residuals[:, k].mean(), residuals[:, k].std(), *quantiles[k].tolist()))]
        for k, name in enumerate(names)
    ]
    text = "A pattern around the dashed line, a bend or a funnel, is something that the model has missed."
    if len(rows) < len(truth):
        text += f" {len(rows)} of {len(truth)} samples are drawn."
    if len(names) > _MOST_DRAWN:
        text += f" The first {_MOST_DRAWN} of {len(names)} responses are drawn."
    drawn = f'<div class="figures">{"".join(pictures)}</div>'
    return paragraph(text) + drawn + table(head, cells, "True value minus prediction")


def _by_size(counts: Counts) -> list[tuple[int, int]]:
    order = np.argsort(-counts, axis=None, kind="stable")
    return [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, counts.shape), strict=True)]
