"""Keys by content: the same for what is read the same, another one for everything else, none for what nobody knows."""

from collections import UserDict

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import bsr_array, coo_array, csc_matrix, csr_array, csr_matrix, dia_array, dok_array, lil_array
from sklearn.base import clone

from bemkl import BEMKLRegressor, KernelBank, KernelSpec, shared_kernels
from bemkl.estimators.sharing import key_of

X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 5.0, 0.0], [1.0, 2.0, 2.0]])
SPARSE = (bsr_array, coo_array, csc_matrix, csr_array, csr_matrix, dia_array, dok_array, lil_array)
TABLE = {"a": [1.0, 2.0], "b": [3, 4], "c": ["x", None], "d": [True, False]}


def spec(**changes):
    return KernelSpec(**{"kernel": "gaussian", "on": {"u": [0], "v": [1]}, "parameters": {"width": [1.0]}} | changes)


def bank(specs=None, **options):
    return KernelBank([spec()] if specs is None else specs, **options)


ALIKE = {
    "array": X.copy,
    "Fortran order": lambda: np.asfortranarray(X),
    "every second column": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    "no rows": lambda: np.empty((0, 3)),
    "strings": lambda: ["GAT", "TACA", None],
    "array of strings": lambda: np.array(["GAT", "TACA"]),
    "objects": lambda: np.array(["GAT", None, 1.5], dtype=object),
    "nested lists": X.tolist,
    "numbers": lambda: [True, 2, 2.5, np.float32(1.0), None, 10**30, float("nan")],
    "range": lambda: range(3),
    "views": lambda: {"u": X.copy(), "v": ["GAT"], 3: csr_array(X)},
    "pandas": lambda: pd.DataFrame(TABLE),
    "pandas column": lambda: pd.Series([1.0, 2.0]),
    "pandas, many names": lambda: pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], ["b", "c", "d"]])),
    "pandas, categories": lambda: pd.DataFrame({"a": pd.Categorical(["x", "y"]), "b": pd.Categorical([1, 2])}),
    "polars": lambda: pl.DataFrame(TABLE),
    "polars column": lambda: pl.Series([1.0, None]),
    "bank": bank,
    "chance": lambda: np.random.default_rng(0).bit_generator.state,
    "Mersenne": lambda: np.random.Generator(np.random.MT19937(0)).bit_generator.state,
} | {form.__name__: lambda form=form: form(X) for form in SPARSE}


@pytest.mark.parametrize("make", ALIKE.values(), ids=ALIKE)
def test_the_same_content_has_the_same_key(make):
    assert key_of([make()]) == key_of([make()]) is not None


def test_memory_on_disk_counts_by_its_numbers(tmp_path):
    values = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", shape=X.shape)
    values[:] = X
    before = key_of([values])
    assert key_of([np.load(tmp_path / "x.npy", mmap_mode="r")]) == before
    values[0, 0] += 1.0
    assert key_of([values]) != before


DIFFERENT = {
    "order of views": [{"u": 1, "v": 2}, {"v": 2, "u": 1}],
    "order of groups": [bank(), bank([spec(on={"v": [1], "u": [0]})])],
    "names of groups": [bank(), bank([spec(on={"u": [0], "w": [1]})])],
    "order of parameters": [
        bank([spec(kernel="polynomial", parameters=parameters)])
        for parameters in ({"degree": [1, 2], "offset": [0.0, 1.0]}, {"offset": [0.0, 1.0], "degree": [1, 2]})
    ],
    "parameters": [bank(), bank([spec(parameters={"width": [2.0]})]), bank([spec(parameters={"width": 1.0})])],
    "order of specs": [bank([spec(), spec(on="all")]), bank([spec(on="all"), spec()])],
    "settings": [bank(), bank(standardise=True), bank(scaling="trace")],
    "zeros": [[0.0], [-0.0], [0], [False]],
    "arrays of zeros": [np.array([0.0]), np.array([-0.0]), np.array([0]), np.array([False])],
    "precision": [X, X.astype(np.float32), X.astype(int)],
    "shape": [X, X.reshape(3, 4), X.ravel(), [X[:2], X[2:]]],
    "order in memory": [X, np.asfortranarray(X)],
    "form": [X, X.tolist(), tuple(X.tolist()), csr_array(X), pd.DataFrame(X), {"a": X}],
    "row and column": [csr_array(X[:3]), csr_array(X[:3].T), csc_matrix(X[:3])],
    "columns of arrays": [X, X[:, ::-1], X[:, [1, 0, 2]]],
    "names of columns": [pd.DataFrame(X, columns=names) for names in (["a", "b", "c"], ["b", "a", "c"], [0, 1, 2])],
    "types of columns": [pd.DataFrame({"a": [1.0], "b": pd.Series([2], dtype=kind)}) for kind in (int, "int8", float)],
    "places of types": [pd.DataFrame({"a": [1], "b": [2.0]}), pd.DataFrame({"a": [1.0], "b": [2]})],
    "rows of tables": [pd.DataFrame(X), pd.DataFrame(X, index=[3, 2, 1, 0])],
    "text or number": [["1"], [1], [b"1"], np.array(["1"]), np.array(["1"], dtype=object)],
    "missing": [[None], [float("nan")], ["None"], [""]],
    "where strings end": [["ab", "c"], ["a", "bc"], ["abc"]],
    "libraries": [pd.DataFrame(TABLE), pl.DataFrame(TABLE)],
    "polars types": [pl.Series([1, 2], dtype=kind) for kind in (pl.Int8, pl.Int64, pl.Float64)],
}


@pytest.mark.parametrize("things", DIFFERENT.values(), ids=DIFFERENT)
def test_other_content_has_another_key(things):
    keys = [key_of([thing]) for thing in things]
    assert None not in keys
    assert len(set(keys)) == len(keys)


class OwnBank(KernelBank):
    """A bank that may do anything."""


UNKNOWN = {
    "object": object(),
    "function": np.exp,
    "mapping": UserDict(a=X),
    "masked": np.ma.masked_array([1.0, 2.0], [True, False]),
    "matrix": np.matrix([[1.0]]),
    "objects in an array": np.array([object()]),
    "lazy table": pl.DataFrame(TABLE).lazy(),
    "a kernel of one's own": KernelBank([KernelSpec(np.dot)]),
    "a bank of one's own": OwnBank([spec()]),
    "no bank at all": KernelBank([3, object()]),
}


@pytest.mark.parametrize("thing", UNKNOWN.values(), ids=UNKNOWN)
def test_what_may_change_unseen_has_no_key(thing):
    assert key_of([{"view": [thing]}]) is None


def test_open_files_have_no_key(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        assert key_of([file.create_dataset("x", data=X)]) is None
        assert key_of([file]) is None


FORMS = {
    "array": lambda Z: Z,
    "integers": lambda Z: Z.round().astype(int),
    "float32": lambda Z: Z.astype(np.float32),
    "lists": lambda Z: Z.tolist(),
    "sparse": csr_array,
    "pandas": pd.DataFrame,
    "pandas by name": lambda Z: pd.DataFrame(Z, columns=["a", "b", "c"]),
    "polars": lambda Z: pl.DataFrame(Z, schema=["a", "b", "c"]),
    "views": lambda Z: {"u": Z[:, :2], "v": pd.DataFrame(Z[:, 2:])},
    "views in another order": lambda Z: {"v": Z[:, 2:], "u": Z[:, :2]},
    "columns": lambda Z: {"a": Z[:, 0].tolist(), "b": pd.Series(Z[:, 1]), "c": pl.Series(Z[:, 2])},
}


def test_sharing_changes_nothing_whatever_the_form():
    """All forms in one context, each twice, and each with other numbers: as if each were alone."""
    samples = np.random.default_rng(0).normal(size=(20, 3))
    model = BEMKLRegressor(KernelBank([KernelSpec("gaussian", [0], {"width": 1.0})]), tol=1e-2)
    cases = [form(Z) for Z in (samples, samples[::-1].copy(), samples[:, ::-1]) for form in FORMS.values()]

    def answers():
        for case in cases:
            fitted = clone(model).fit(case, samples[:, 0])
            yield fitted.kernel_names_, np.concatenate([fitted.dual_coef_.ravel(), fitted.predict(case)])

    alone = list(answers())
    with shared_kernels():
        together = [*answers(), *answers()]
    for (names, numbers), (other_names, other_numbers) in zip(together, alone * 2, strict=True):
        assert names == other_names
        assert_array_equal(numbers, other_numbers)
