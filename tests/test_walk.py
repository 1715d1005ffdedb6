"""How far a reader walks: the files that one call goes through, and how often it changes from one to another."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import bemkl
from bemkl import BEMKLClassifier, KernelBank, KernelSpec
from bemkl.commands.program import program

PACKAGE = str(Path(bemkl.__file__).parent)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6))
Y = np.where(X[:, 0] * X[:, 1] > 0.0, 1, -1)
BANK = KernelBank(
    [KernelSpec("gaussian", "each", {"width": [0.5, 1.0]}), KernelSpec("polynomial", "all", {"degree": [1, 2]})]
)
# Files, and changes of file between first visits of functions: these may only get smaller.
LIMITS = {"fit": (47, 288), "plain fit": (44, 236), "predict_proba": (21, 60), "bemkl fit": (74, 387)}


def fit():
    return BEMKLClassifier(BANK).fit(X, Y)


def plain_fit():
    return BEMKLClassifier(BANK, acceleration=None, factor_tol=None, max_iter=5, tol=None).fit(X, Y)


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Return a call of `bemkl fit` on two views in files."""
    folder = tmp_path_factory.mktemp("walk")
    ids = [f"sample {row}" for row in range(len(Y))]
    for name, columns in (("one", X[:, :3]), ("two", X[:, 3:])):
        lines = [",".join([row, *map(str, values)]) for row, values in zip(ids, columns, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(["id,a,b,c", *lines]))
    (folder / "y.csv").write_text("\n".join(["id,y", *map("{},{}".format, ids, Y)]))
    views = [f"--view={name}={folder / name}.csv" for name in ("one", "two")]
    arguments = ["fit", *views, f"--target={folder / 'y.csv'}:y", "--force", "-o", str(folder / "model.skops")]

    def call():
        with pytest.raises(SystemExit, match=r"^0$"):
            program.main(arguments)

    return call


def walk(call):
    """Return the files of the functions of the package that a call visits, in the order of first visits."""
    seen = {}

    def look(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            seen.setdefault((code.co_filename, code.co_name, code.co_firstlineno))

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [file for file, _, _ in seen]


@pytest.mark.parametrize("name", LIMITS)
def test_a_reader_walks_no_further(name, command):
    model = fit()  # what is compiled or imported once is no part of the walk
    calls = {"fit": fit, "plain fit": plain_fit, "predict_proba": lambda: model.predict_proba(X), "bemkl fit": command}
    calls[name]()
    files = walk(calls[name])
    changes = sum(one != other for one, other in pairwise(files))
    most_files, most_changes = LIMITS[name]
    assert len(set(files)) <= most_files
    assert changes <= most_changes
