"""The part of the page on how alike kernels are."""

from __future__ import annotations

import numpy as np

from bemkl.arrays import Array
from bemkl.estimators.tasks import take_rows
from bemkl.measures import alignments, similar_order
from bemkl.report.markup import Section, escape, paragraph, short
from bemkl.report.subject import Subject

_MOST_KERNELS, _MOST_SAMPLES, _MOST_PAIRS, _WITH_NUMBERS = 40, 300, 5, 10
_WIDTH, _ROOM = 320.0, 16.0
# Cividis: from dark blue to yellow, the same order for readers with any colour vision.
_COLOURS = np.array([[0, 32, 77], [65, 77, 107], [124, 123, 120], [187, 173, 108], [255, 234, 70]], dtype=np.float64)


def similarity_section(subject: Subject) -> Section:
    """Show how alike the kernels with the largest weights are."""
    weight = np.abs(np.atleast_2d(subject.model.kernel_weights_)).max(axis=0)
    chosen = np.argsort(-weight, kind="stable")[:_MOST_KERNELS]
    if len(chosen) < 2:
        return Section("similarity", "Similarity of kernels", paragraph("Not available: there is one kernel only."))
    rows = np.unique(np.linspace(0, len(subject.names) - 1, min(len(subject.names), _MOST_SAMPLES)).astype(np.intp))
    stacks = subject.model._blocks(take_rows(subject.X, rows))
    alignment = alignments(np.concatenate([stack.values[chosen].astype(np.float64) for stack in stacks], axis=1))
    order = similar_order(alignment)
    alignment, names = alignment[np.ix_(order, order)], [subject.model.kernel_names_[chosen[m]] for m in order]
    which = f"The {len(chosen)} kernels with the largest weights" if len(chosen) < len(weight) else "All kernels"
    text = (
        f"{which}, compared on {len(rows)} samples by the cosine of the angle between centred kernel matrices: 1 means "
        f"that two kernels say the same. {_pairs(alignment, names)}"
    )
    listed = "".join(f'<li title="{escape(name)}">{escape(short(name))}</li>' for name in names)
    body = paragraph(text) + f'<div class="map">{_picture(alignment, names)}<ol>{listed}</ol></div>'
    return Section("similarity", "Similarity of kernels", body)


def _pairs(alignment: Array, names: list[str]) -> str:
    first, second = np.tril_indices(len(names), -1)
    largest = np.argsort(-alignment[first, second], kind="stable")[:_MOST_PAIRS]
    pairs = [f"{names[second[k]]} and {names[first[k]]} ({alignment[first[k], second[k]]:.2f})" for k in largest]
    return f"Most alike: {'; '.join(pairs)}."


def _picture(alignment: Array, names: list[str]) -> str:
    size = _WIDTH / len(names)
    cells = [_cell(float(alignment[i, j]), i, j, names) for i in range(len(names)) for j in range(i + 1)]
    font = max(5.5, min(11.0, 0.8 * size))
    style = f'style="font-size:{font:.1f}px"'
    for k in range(len(names)):
        place = (k + 0.5) * size
        cells.append(f'<text x="{_ROOM - 3}" y="{place + font / 3:.2f}" {style} text-anchor="end">{k + 1}</text>')
        cells.append(f'<text x="{_ROOM + place:.2f}" y="{_WIDTH + 12}" {style} text-anchor="middle">{k + 1}</text>')
    words = f"Map of the alignments of {len(names)} kernels; the list has their names, the text the most alike."
    content = "".join(cells) + _legend()
    return f'<svg class="chart" viewBox="0 0 340 340" role="img" aria-label="{words}">{content}</svg>'


def _cell(value: float, row: int, column: int, names: list[str]) -> str:
    """Draw one square; below the diagonal only, because both sides are the same."""
    size = _WIDTH / len(names)
    words = f"{escape(names[row])} and {escape(names[column])}: {value:.2f}"
    place = f'x="{_ROOM + column * size:.2f}" y="{row * size:.2f}" width="{size:.2f}" height="{size:.2f}"'
    square = f'<rect {place} fill="{_colour(value)}"><title>{words}</title></rect>'
    if len(names) > _WITH_NUMBERS:
        return square
    middle = f'x="{_ROOM + (column + 0.5) * size:.2f}" y="{(row + 0.5) * size + 4:.2f}" text-anchor="middle"'
    return f'{square}<text class="{"on-light" if value > 0.5 else "on-dark"}" {middle}>{value:.2f}</text>'


def _legend() -> str:
    steps = "".join(
        f'<rect x="{210 + 12 * k}" y="6" width="12.3" height="10" fill="{_colour(k / 9.0)}"/>' for k in range(10)
    )
    return f'{steps}<text x="210" y="28">0</text><text x="330" y="28" text-anchor="end">1</text>'


def _colour(value: float) -> str:
    place = float(np.clip(value, 0.0, 1.0)) * (len(_COLOURS) - 1)
    red, green, blue = (round(float(np.interp(place, range(len(_COLOURS)), channel))) for channel in _COLOURS.T)
    return f"#{red:02x}{green:02x}{blue:02x}"
