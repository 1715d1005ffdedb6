"""Formulas as MathML: written into the page when it is built, drawn by the browser without a script or a network."""

from __future__ import annotations

import re
from typing import Any

_BOLD_LATIN = {ord("a"): 0x1D482, ord("A"): 0x1D468}
_BOLD_GREEK = {ord("α"): 0x1D736, ord("Α"): 0x1D71C}  # the second is a capital alpha


def to_mathml(latex: str, display: str) -> str:
    r"""
    Translate a formula.

    Parameters
    ----------
    latex : str
        The formula.
    display : {"inline", "block"}
        Whether it stands in a line of text or alone.

    Returns
    -------
    str
        A MathML element.

    Notes
    -----
    Browsers no longer heed ``mathvariant``, so bold letters are replaced by characters that are bold themselves.
    """
    from latex2mathml.converter import convert

    found = convert(re.sub(r"\\arg\b", r"\\operatorname{arg}", latex), display=display)
    return re.sub(r'<mi mathvariant="bold-italic">(.|&#x[0-9A-F]+;)</mi>', _bold, found)


def _bold(match: re.Match[str]) -> str:
    """Replace a letter by its bold italic form, where there is one."""
    text = match[1]
    code = int(text[3:-1], 16) if text.startswith("&#x") else ord(text)
    for first, bold in {**_BOLD_LATIN, **_BOLD_GREEK}.items():
        if first <= code < first + (26 if first < 128 else 25):
            return f"<mi>&#x{bold + code - first:X};</mi>"
    return f"<mi>{text}</mi>"


def _write_inline(translator: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    translator.body.append(to_mathml(node.astext(), "inline"))
    raise SkipNode


def _write_block(translator: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    translator.body.append(f'<div class="formula">{to_mathml(" ".join(node.astext().split()), "block")}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, Any]:
    """
    Tell Sphinx of the renderer.

    Parameters
    ----------
    app : Sphinx
        The application.

    Returns
    -------
    dict
        That pages can be written in parallel.
    """
    app.add_html_math_renderer("mathml", (_write_inline, None), (_write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
