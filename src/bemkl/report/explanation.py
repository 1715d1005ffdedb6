"""The part of the page on single samples: what each kernel and view adds to a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.estimators.tasks import take_rows
from bemkl.report.markup import Section, decimals_for, escape, fixed, number, paragraph, plural, short
from bemkl.report.strips import bar_strip
from bemkl.report.subject import Subject

_MOST_SAMPLES, _MOST_KERNELS, _MOST_VALUES, _FEWEST_SAMPLES = 500, 25, 150_000, 20


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A row of the explanation: a sum over some kernels."""

    name: str  # what the row is called
    kind: str  # what it sums up: a view, a kernel among others on its view or alone on it, or the others
    kernels: npt.NDArray[np.intp]  # which kernels


@dataclass(frozen=True, slots=True, eq=False)
class Explanations:
    """What kernels add to the decisions on some samples."""

    rows: npt.NDArray[np.intp]  # (n_shown,): which samples
    lines: list[Line]  # rows of the table, the same for all samples
    # (n_shown, n_outputs, n_lines + 2): sums of the contributions of each line, then the intercept and the total
    values: Array
    sentences: list[str]  # what the model says of each sample


def explain(subject: Subject) -> Explanations:
    """Sum up the contributions of the kernels."""
    n_samples, n_kernels = len(subject.names), len(subject.model.kernel_names_)
    room = _MOST_VALUES // (subject.n_outputs * min(2 * _MOST_KERNELS, 2 * n_kernels))
    n_shown = min(n_samples, _MOST_SAMPLES, max(_FEWEST_SAMPLES, room))
    rows = np.unique(np.linspace(0, n_samples - 1, n_shown).round().astype(np.intp))
    X = take_rows(subject.X, rows)
    contributions = subject.model.contributions(X).reshape(len(rows), n_kernels, -1)
    lines = _lines(subject, np.abs(contributions).mean(axis=(0, 2)))
    sums = [contributions[:, line.kernels].sum(axis=1) for line in lines]
    intercept = np.broadcast_to(subject.model.intercept_, sums[0].shape)
    total = contributions.sum(axis=1) + intercept
    values = np.stack([*sums, intercept, total], axis=2)
    return Explanations(rows, lines, values, _sentences(subject, X))


def explanation_section(subject: Subject) -> tuple[Section, dict[str, Any]]:
    """Show what kernels add to the decision on a sample that the reader chooses."""
    found = explain(subject)
    names = [subject.names[row] for row in found.rows]
    decimals = [decimals_for(found.values[:, k].ravel()) for k in range(subject.n_outputs)]
    scales = [_scale(found.values[:, k]) for k in range(subject.n_outputs)]
    body = (
        paragraph(_introduction(subject, len(found.rows)))
        + _chooser(subject, names)
        + f'<p id="said" aria-live="polite"><b>{escape(names[0])}</b>: {escape(found.sentences[0])}</p>'
        + _table(found, scales[0], decimals[0])
    )
    rounded = [
        [np.round(values, places).tolist() for values, places in zip(sample, decimals, strict=True)]
        for sample in found.values
    ]
    data = {"names": names, "said": found.sentences, "values": rounded, "decimals": decimals, "scales": scales}
    return Section("samples", "Single samples", body), data


def _lines(subject: Subject, size: Array) -> list[Line]:
    """Group the kernels with the largest contributions by view, the largest view first."""
    names, views = subject.model.kernel_names_, np.array(subject.views)
    largest = np.argsort(-size, kind="stable")[:_MOST_KERNELS]
    lines, left = [], np.ones(len(names), dtype=bool)
    for view in dict.fromkeys(views[largest].tolist()):
        inside = np.flatnonzero(views == view)
        left[inside] = False
        shown = [m for m in largest if views[m] == view]
        if len(inside) > 1:
            lines.append(Line(view, "view", inside))
        kind = "kernel" if len(inside) > 1 else "single"
        lines += [Line(names[m], kind, np.array([m])) for m in shown]
        rest = np.setdiff1d(inside, shown)
        if len(rest):
            lines.append(Line(f"{plural(len(rest), 'other kernel')} on {view}", "rest", rest))
    if left.any():
        lines.append(Line(f"{plural(int(left.sum()), 'kernel')} of other views", "view", np.flatnonzero(left)))
    return lines


def _sentences(subject: Subject, X: Any) -> list[str]:
    model = subject.model
    if not subject.is_classifier:
        mean, deviation = (np.reshape(part, (-1, subject.n_outputs)) for part in model.predict(X, return_std=True))
        texts = [
            [f"{number(m, 4)} ± {number(s)}" for m, s in zip(*row, strict=True)]
            for row in zip(mean, deviation, strict=True)
        ]
        return [f"predicted {', '.join(text[:6])}{', …' if len(text) > 6 else ''} (mean ± deviation)" for text in texts]
    guess, probability = model.predict(X), model.predict_proba(X)
    if subject.is_multilabel:
        chosen = [[name for name, on in zip(subject.output_names, row, strict=True) if on] for row in guess]
        return [f"predicted {', '.join(each) or 'no label'}" for each in chosen]
    column = {label: k for k, label in enumerate(model.classes_.tolist())}
    return [
        f"predicted {label}, with probability {row[column[label]]:.3f}"
        for label, row in zip(guess.tolist(), probability, strict=True)
    ]


def _introduction(subject: Subject, n_shown: int) -> str:
    if not subject.is_classifier:
        what = "The contributions of the kernels and the intercept sum to the predicted response."
    elif subject.n_outputs == 1:
        what = (
            "The contributions of the kernels and the intercept sum to the decision: above zero it speaks for "
            f"{subject.output_names[0]}, below for {subject.model.classes_[0]}."
        )
    else:
        what = "For each class, the contributions of the kernels and the intercept sum to its score."
    text = (
        f"{what} Bars to the right add, bars to the left take away; all samples have the same scale, and an intercept "
        "or total beyond it has no bar."
    )
    if n_shown < len(subject.names):
        text += (
            f" The page has {n_shown} of {len(subject.names)} samples, spread evenly; make it with fewer rows of X to "
            "choose them."
        )
    if len(subject.model.kernel_names_) > _MOST_KERNELS:
        text += f" The {_MOST_KERNELS} kernels with the largest contributions have a row, the others are summed."
    return text


def _chooser(subject: Subject, names: list[str]) -> str:
    choices = "".join(f'<option value="{i}">{escape(short(name))}</option>' for i, name in enumerate(names))
    content = f'<label for="sample">Sample</label> <select id="sample" autocomplete="off">{choices}</select>'
    if subject.n_outputs > 1:
        choices = "".join(
            f'<option value="{k}">{escape(short(name))}</option>' for k, name in enumerate(subject.output_names)
        )
        what = "Class" if subject.is_classifier else "Response"
        content += f' <label for="output">{what}</label> <select id="output" autocomplete="off">{choices}</select>'
    return f'<p class="tools needs-script">{content}</p>'


def _scale(values: Array) -> float:
    """Choose the length of the bars; intercept and total set it unless they dwarf all contributions."""
    parts, all_of_it = float(np.abs(values[:, :-2]).max()), float(np.abs(values).max())
    return all_of_it if all_of_it <= 2.0 * parts else parts


def _table(found: Explanations, scale: float, decimals: int) -> str:
    names = [(line.name, line.kind) for line in found.lines] + [("intercept", "view"), ("total", "total")]
    rows = []
    for (name, kind), value in zip(names, found.values[0, 0].tolist(), strict=True):
        strip = bar_strip(value, scale)
        label = f'<th scope="row" title="{escape(name)}">{escape(short(name))}</th>'
        shown = f'<td class="numbers">{fixed(value, decimals, signed=True)}</td>'
        rows.append(f'<tr class="{kind}">{label}<td>{strip}</td>{shown}</tr>')
    return f'<table id="explanation" class="strips" aria-labelledby="said"><tbody>{"".join(rows)}</tbody></table>'
