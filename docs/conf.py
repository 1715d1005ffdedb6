"""
The documentation site, built by `make docs`.

Sphinx reads the whole checkout as its source folder and takes the pages below from it. So links between pages in
`docs/`, `benchmarks/results/` and `experiments/results/` are the same here and on a code host, and nothing is copied.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "bemkl"
author = "The bemkl developers"
copyright = author  # Sphinx asks for this name
version = release = installed_version("bemkl")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/guide/*.md",
    "docs/extending/*.md",
    "docs/api/*.rst",
    "benchmarks/results/*.md",
    "experiments/results/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".*", "docs/_build", "src", "tests", "dist", "build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = [str(Path(__file__).parent / "_templates")]  # autosummary looks from the source folder

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
highlight_language = "none"
default_role = "py:obj"

autodoc_typehints = "none"  # the sections of the docstrings have the types, with shapes
numpydoc_show_class_members = False  # the members are below, in full
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"bemkl {version}"
html_math_renderer = "mathml"  # browsers draw it themselves: no script, no network
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "logo": {"text": "bemkl"},
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"docs/index": [], "docs/first_steps": []}


def skip_foreign(app: Any, kind: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what classes have from scikit-learn and the standard library: it is documented there."""
    function = getattr(thing, "fget", thing)
    module = getattr(function, "__module__", None) or "bemkl"
    return None if module.split(".")[0] == "bemkl" else True


def escape_types(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Keep names with a final underscore in the types of docstrings, such as (n_iter_,), from being links."""
    for i, line in enumerate(lines):
        head, colon, types = line.partition(" : ")
        if colon and head.strip().isidentifier():
            lines[i] = head + colon + re.sub(r"(?<=\w)_(?!\w)", r"\\_", types)


def trim_code(app: Any, tree: Any) -> None:
    """Drop the empty line that ends an example in Markdown, where doctest needs it."""
    from docutils import nodes

    for block in tree.findall(nodes.literal_block):
        if block.rawsource == block.astext() and block.rawsource.endswith("\n"):
            block.rawsource = block.rawsource.rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


def write_entrance(app: Any, exception: Exception | None) -> None:
    """Lead from the root of the site to its first page."""
    if exception is None and app.builder.name == "html":
        page = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/index.html">'
        (Path(app.outdir) / "index.html").write_text(f"{page}<title>bemkl</title>\n", encoding="utf-8")


def setup(app: Any) -> None:
    """Connect the functions above; types are escaped before numpydoc sees them."""
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", escape_types, priority=400)
    app.connect("doctree-read", trim_code)
    app.connect("build-finished", write_entrance)
