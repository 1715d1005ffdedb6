"""Words and numbers as HTML: all that comes from outside goes through here and stays text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

NO_BREAK = "\xa0"
"""A space that no line ends at."""

_LONG = 32


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page."""

    anchor: str  # name of the part in links
    title: str  # heading, as text
    body: str  # what is below the heading, as HTML


def escape(text: Any) -> str:
    """Make text safe inside elements and attributes."""
    return html.escape(str(text), quote=True)


def number(value: float, digits: int = 3) -> str:
    """Write a number with some significant digits."""
    if not np.isfinite(value):
        return "–"
    if value == 0.0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits}g}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")
    return fixed(value, max(0, digits - 1 - int(np.floor(np.log10(abs(value))))))


def fixed(value: float, decimals: int, *, signed: bool = False) -> str:
    """Write a number with some decimals."""
    if not np.isfinite(value):
        return "–"
    sign = "−" if round(value, decimals) < 0.0 else "+" if signed else ""
    return f"{sign}{abs(value):.{decimals}f}"


def decimals_for(values: Iterable[float], digits: int = 4) -> int:
    """Choose how many decimals suit a column of numbers."""
    sizes = np.abs(np.fromiter(values, dtype=np.float64))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0.0)]
    if not sizes.size:
        return digits - 1
    return int(np.clip(digits - 1 - np.floor(np.log10(sizes.max())), 0, 9))


def percent(share: float) -> str:
    """Write a share in percent."""
    if not np.isfinite(share):
        return "–"
    return f"{100.0 * share:.{0 if share >= 0.0995 else 1}f}{NO_BREAK}%"


def plural(count: int, one: str, many: str = "") -> str:
    """Write a number of things."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def short(name: str, most: int = 60) -> str:
    """Cut a long name in the middle."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[len(name) - most // 2 + 1 :]}"


def paragraph(text: str, kind: str = "") -> str:
    """Make a paragraph of text."""
    content = escape(text).replace(" %", f"{NO_BREAK}%")
    return f'<p class="{kind}">{content}</p>' if kind else f"<p>{content}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Make a table whose first column names the rows."""
    lines = [list(row) for row in rows]
    # Numbers stand to the right and stay on one line, sentences to the left and wrap.
    kinds = ["text" if any(len(line[k]) > _LONG for line in lines) else "" for k in range(len(head))]
    titles = "".join(f'<th scope="col" class="{kind}">{escape(t)}</th>' for t, kind in zip(head, kinds, strict=True))
    body = "".join(
        f'<tr><th scope="row">{escape(line[0])}</th>'
        + "".join(f'<td class="{kind}">{escape(cell)}</td>' for cell, kind in zip(line[1:], kinds[1:], strict=True))
        + "</tr>"
        for line in lines
    )
    return scrolling(
        f"<table><caption>{escape(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>",
        caption,
    )


def scrolling(content: str, label: str, kind: str = "") -> str:
    """Let wide content scroll by itself, with the keyboard too."""
    return f'<div class="wide {kind}" role="region" tabindex="0" aria-label="{escape(label)}">{content}</div>'
