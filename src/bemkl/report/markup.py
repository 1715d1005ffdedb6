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
    """
    A part of the page.

    Parameters
    ----------
    anchor : str
        Name of the part in links.
    title : str
        Heading, as text.
    body : str
        What is below the heading, as HTML.
    """

    anchor: str
    title: str
    body: str


def escape(text: Any) -> str:
    """
    Make text safe inside elements and attributes.

    Parameters
    ----------
    text : Any
        Anything with a text form.

    Returns
    -------
    str
        HTML that shows this text.
    """
    return html.escape(str(text), quote=True)


def number(value: float, digits: int = 3) -> str:
    """
    Write a number with some significant digits.

    Parameters
    ----------
    value : float
        The number.
    digits : int
        Number of significant digits.

    Returns
    -------
    str
        The number; an en dash for one that is not finite.

    Examples
    --------
    >>> number(0.12345), number(-1234.5), number(float("nan")), number(2.5e-9)
    ('0.123', '−1234', '–', '2.5e−9')
    """
    if not np.isfinite(value):
        return "–"
    if value == 0.0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits}g}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")
    return fixed(value, max(0, digits - 1 - int(np.floor(np.log10(abs(value))))))


def fixed(value: float, decimals: int, *, signed: bool = False) -> str:
    """
    Write a number with some decimals.

    Parameters
    ----------
    value : float
        The number.
    decimals : int
        Digits after the point.
    signed : bool
        Whether positive numbers have a sign, too.

    Returns
    -------
    str
        The number; an en dash for one that is not finite.
    """
    if not np.isfinite(value):
        return "–"
    sign = "−" if round(value, decimals) < 0.0 else "+" if signed else ""
    return f"{sign}{abs(value):.{decimals}f}"


def decimals_for(values: Iterable[float], digits: int = 4) -> int:
    """
    Choose how many decimals suit a column of numbers.

    Parameters
    ----------
    values : iterable of float
        The numbers.
    digits : int
        Significant digits of the largest.

    Returns
    -------
    int
        From 0 to 9.

    Examples
    --------
    >>> decimals_for([0.12, 0.001]), decimals_for([250.0]), decimals_for([])
    (4, 1, 3)
    """
    sizes = np.abs(np.fromiter(values, dtype=np.float64))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0.0)]
    if not sizes.size:
        return digits - 1
    return int(np.clip(digits - 1 - np.floor(np.log10(sizes.max())), 0, 9))


def percent(share: float) -> str:
    r"""
    Write a share in percent.

    Parameters
    ----------
    share : float
        From 0 to 1.

    Returns
    -------
    str
        The percentage.

    Examples
    --------
    >>> percent(0.4036), percent(0.042), percent(0.0001)
    ('40\xa0%', '4.2\xa0%', '0.0\xa0%')
    """
    if not np.isfinite(share):
        return "–"
    return f"{100.0 * share:.{0 if share >= 0.0995 else 1}f}{NO_BREAK}%"


def plural(count: int, one: str, many: str = "") -> str:
    """
    Write a number of things.

    Parameters
    ----------
    count : int
        How many.
    one : str
        What one is called.
    many : str
        What several are called; with an s without it.

    Returns
    -------
    str
        Number and name.

    Examples
    --------
    >>> plural(1, "kernel"), plural(1200, "class", "classes")
    ('1 kernel', '1200 classes')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def short(name: str, most: int = 60) -> str:
    """
    Cut a long name in the middle.

    Parameters
    ----------
    name : str
        The name.
    most : int
        Number of characters that may stay.

    Returns
    -------
    str
        The name: a kernel is at the beginning, its view at the end.
    """
    return name if len(name) <= most else f"{name[: most // 2]}…{name[len(name) - most // 2 + 1 :]}"


def paragraph(text: str, kind: str = "") -> str:
    """
    Make a paragraph of text.

    Parameters
    ----------
    text : str
        Text, not HTML.
    kind : str
        Class of the element.

    Returns
    -------
    str
        The HTML.
    """
    content = escape(text).replace(" %", f"{NO_BREAK}%")
    return f'<p class="{kind}">{content}</p>' if kind else f"<p>{content}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """
    Make a table whose first column names the rows.

    Parameters
    ----------
    head : sequence of str
        Titles of the columns.
    rows : iterable of sequence of str
        Cells as text, as many as there are titles.
    caption : str
        What the table shows.

    Returns
    -------
    str
        The HTML; wide tables scroll inside their own frame.
    """
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
    """
    Let wide content scroll by itself, with the keyboard too.

    Parameters
    ----------
    content : str
        The HTML.
    label : str
        What it is, for those who do not see it.
    kind : str
        More classes of the frame.

    Returns
    -------
    str
        The HTML inside a frame.
    """
    return f'<div class="wide {kind}" role="region" tabindex="0" aria-label="{escape(label)}">{content}</div>'
