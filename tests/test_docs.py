"""Links, anchors, tables of contents and the API reference of the documentation; `make docs` builds the site."""

import importlib
import importlib.util
import os
import re
import runpy
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = sorted([*DOCS.rglob("*.md"), *ROOT.glob("benchmarks/results/*.md"), *ROOT.glob("experiments/results/*.md")])
SITE = [page for page in SITE if "_build" not in page.parts]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + SITE
PUBLIC = ("", ".datasets", ".estimators", ".evaluation", ".exceptions", ".inference", ".kernels", ".plots", ".report")


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def without_code(text):
    """Blank out fenced and indented blocks and code in a line, which hold no links."""
    text = re.sub(r"^(`{3,})[^`\n]*\n.*?^\1`*$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?<=\n\n)(?: {4}.*\n)+", "\n", text)
    return re.sub(r"`[^`\n]+`", "", text)


def anchors(page):
    """Return the anchors of a page's headings as code hosts make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = sum(other == slug or re.fullmatch(re.escape(slug) + r"-\d+", other) is not None for other in found)
        found.add(f"{slug}-{count}" if count else slug)
    return found


def broken_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    assert not list(broken_links(page))


def test_broken_links_are_found(tmp_path):
    (tmp_path / "there.md").write_text("# A (small) *title*\n\n# Twice\n\n# Twice\n", encoding="utf-8")
    page = tmp_path / "page.md"
    right = "[a](there.md) [b](there.md#a-small-title) [c](there.md#twice-1) [d](https://example.org) `[e](f)`"
    page.write_text(f"{right}\n\n```\n[g](h)\n```\n\n[i](missing.md)\n[j](there.md#missing)\n", encoding="utf-8")
    assert list(broken_links(page)) == ["missing.md", "there.md#missing"]


def children(page):
    """Return the pages that the tables of contents of a page name."""
    found = []
    for options, body in re.findall(
        r"^```\{toctree\}\n((?::[^\n]*\n)*)(.*?)^```", page.read_text("utf-8"), re.M | re.S
    ):
        for line in filter(None, map(str.strip, body.splitlines())):
            named = re.fullmatch(r".*<(.+)>", line)
            pattern = os.path.normpath(page.parent / ((named[1] if named else line) + ".md"))
            if ":glob:" in options:
                found.extend(other for other in SITE if fnmatch(str(other), pattern))
            else:
                found.append(Path(pattern))
    return found


def test_every_page_can_be_reached():
    reached, new = set(), [DOCS / "index.md"]
    while new:
        page = new.pop()
        assert page.exists(), f"{name_of(page)} is in a table of contents, but there is no such page"
        reached.add(page)
        new.extend(child for child in children(page) if child not in reached)
    assert set(SITE) | {ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"} == reached


def test_cards_lead_somewhere():
    cards = re.findall(r"^:link: (\w+)$", (DOCS / "index.md").read_text("utf-8"), re.MULTILINE)
    assert cards
    assert [card for card in cards if not (DOCS / f"{card}.md").exists()] == []


def documented():
    """Return the objects of the API reference by their full names; a name that is not there is an error."""
    found, module, listing = {}, "", False
    for line in (DOCS / "api.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split(":: ")[1]
        listing = line.startswith(".. autosummary::") or (listing and (line.startswith("   ") or not line))
        if listing and re.fullmatch(r"   [\w.]+", line):
            *parts, name = f"{module}.{line.strip()}".split(".")
            found[".".join([*parts, name])] = getattr(importlib.import_module(".".join(parts)), name)
    return found


@pytest.mark.parametrize("package", PUBLIC, ids=lambda package: f"bemkl{package}")
def test_public_names_are_in_the_api_reference(package):
    module = importlib.import_module(f"bemkl{package}")
    names = getattr(module, "__all__", None) or [
        name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__
    ]
    here = {id(thing) for thing in documented().values()}
    in_words = re.findall(r"`(\w+)`", (DOCS / "api.md").read_text(encoding="utf-8"))
    public = {name for name in names if not name.startswith("_")}
    assert public
    assert {name for name in public if id(getattr(module, name)) not in here} <= set(in_words)


@pytest.mark.parametrize("page", [ROOT / "README.md", *SITE], ids=name_of)
def test_python_in_the_pages_runs(page):
    # A block of Python with prompts is a doctest of this test run; one without would run nowhere.
    blocks = re.findall(r"^```(?:python|pycon)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert all(block.startswith(">>> ") for block in blocks)


def test_the_demonstration_prints_what_the_readme_says(capsys):
    runpy.run_path(str(ROOT / "examples" / "breast_cancer.py"))["main"]()
    printed = capsys.readouterr().out.split("\n")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^```\n(403 kernels.*?)^```", readme, re.MULTILINE | re.DOTALL)[1].split("\n")
    number = re.compile(r"-?\d+\.\d+")
    assert len(printed) == len(shown)
    for ours, theirs in zip(printed, shown, strict=True):
        assert number.sub("#", ours).split() == number.sub("#", theirs).split()
        if not ours.startswith("seconds"):
            values = [[float(value) for value in number.findall(line)] for line in (ours, theirs)]
            np.testing.assert_allclose(*values, rtol=1e-3, atol=2e-3)


def test_the_example_with_views_runs(tmp_path, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    runpy.run_path(str(ROOT / "examples" / "views.py"))["main"](str(tmp_path / "views.png"))
    assert (tmp_path / "views.png").stat().st_size > 10_000
    assert "cross-validated accuracy 0.9" in capsys.readouterr().out


@pytest.fixture
def to_mathml():
    pytest.importorskip("latex2mathml", reason='formulas of the site need "bemkl[docs]"')
    spec = importlib.util.spec_from_file_location("mathml", DOCS / "_extensions" / "mathml.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.to_mathml


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\boldsymbol{a}^\top", "&#x1D482;"),  # a, bold
        (r"\boldsymbol\Sigma", "&#x1D72E;"),  # capital sigma, bold
        (r"\boldsymbol\omega", "&#x1D74E;"),
        (r"\arg\max_j f_j", "<mo>arg</mo>"),
    ],
)
def test_formulas_have_their_letters(to_mathml, latex, expected):
    found = to_mathml(latex, "inline")
    assert expected in found
    assert "mathvariant" not in found


def test_all_formulas_of_the_docstrings_are_understood(to_mathml):
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    formulas = re.findall(r":math:`([^`]+)`", sources) + re.findall(r"\.\. math:: (.*?)\n\n", sources, re.DOTALL)
    assert len(formulas) > 100
    for formula in formulas:
        assert "\\" not in to_mathml(" ".join(formula.split()), "block"), formula


def test_the_site_can_be_configured():
    pytest.importorskip("sphinx")
    before = list(sys.path)
    try:
        settings = runpy.run_path(str(DOCS / "conf.py"))
    finally:
        sys.path[:] = before
    patterns = settings["include_patterns"]
    assert all(any(fnmatch(name_of(page), pattern) for pattern in patterns) for page in SITE)
    assert (ROOT / f"{settings['root_doc']}.md").exists()


def test_every_line_that_installs_works_from_a_checkout():
    """Before a release there is no bemkl to download: what is installed is the checkout, or somebody else's package."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    sources = [*PAGES, ROOT / "SECURITY.md", *(ROOT / "src").rglob("*.py"), *(ROOT / "examples").glob("*.py")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in sources)
    found = re.findall(r"pip install +(?:-[-\w]+ +)*(?:\\?[\"'])?([^\s\"'`)\\]+)", text)
    assert len(found) > 5
    for target in {name.rstrip(".,;:") or "." for name in found}:
        path, _, chosen = target.partition("[")
        assert path == "." or (re.fullmatch("[a-z0-9-]+", path) and not path.startswith("bemkl")), target
        assert path != "." or set(chosen.rstrip("]").split(",")) - {""} <= set(extras), target
