"""Banks: the same kernels from any kind of input, learned on training samples only, readable names, missing views."""

import os
from pathlib import Path

import numpy as np
import pandas
import polars
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import StandardScaler

from bemkl import BEMKLClassifier, load_model, save_model
from bemkl.kernels import KernelBank, KernelSpec, gaussian, linear, paper_bank, polynomial, spectrum, spherical
from bemkl.kernels.specs import NAMED, find_kernel

COLUMNS = ["height", "weight", "age"]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.normal(size=(8, 3)) * [1.0, 10.0, 0.1] + 5.0, rng.normal(size=(4, 3)) * [1.0, 10.0, 0.1] + 5.0


def as_dict(X, names=COLUMNS):
    return dict(zip(names, X.T, strict=True))


INPUTS = {
    "array": np.asarray,
    "list": lambda X: X.tolist(),
    "sparse": csr_array,
    "columns": as_dict,
    "pandas": lambda X, names=COLUMNS: pandas.DataFrame(as_dict(X, names)),
    "polars": lambda X, names=COLUMNS: polars.DataFrame(as_dict(X, names)),
    "views": lambda X, names=COLUMNS: {name: column[:, None] for name, column in as_dict(X, names).items()},
}


@pytest.mark.parametrize("kind", INPUTS)
def test_every_kind_of_input_gives_the_same_kernels(table, kind):
    X, new = table
    make = INPUTS[kind]
    specs = [KernelSpec("gaussian", "each", {"width": [0.5, 2.0]}), KernelSpec("polynomial", [0, 2], {"degree": 2})]
    bank = KernelBank(specs, standardise=True, scaling="spherical")
    train, test = bank.fit_transform(make(X)).dense().values, bank.transform(make(new)).dense().values
    scaler = StandardScaler().fit(X)
    A, B = scaler.transform(X), scaler.transform(new)
    for kernels, rows in ((train, A), (test, B)):
        for j in range(3):
            for w, width in enumerate((0.5, 2.0)):
                assert_allclose(kernels[2 * j + w], gaussian(rows[:, [j]], A[:, [j]], width), rtol=1e-10)
        at = [0, 2]
        norms = [np.diag(polynomial(points[:, at], points[:, at], 2)) for points in (rows, A)]
        assert_allclose(kernels[-1], spherical(polynomial(rows[:, at], A[:, at], 2), *norms), rtol=1e-10)


@pytest.mark.parametrize("kind", ["columns", "pandas", "polars", "views"])
def test_columns_go_by_name_not_by_place(table, kind):
    X, new = table
    bank = KernelBank([KernelSpec("gaussian", ["age", "height"], {"width": 1.0})]).fit(INPUTS[kind](X))
    turned = INPUTS[kind](new[:, ::-1], COLUMNS[::-1])
    assert_allclose(bank.transform(turned).dense().values[0], gaussian(new[:, [2, 0]], X[:, [2, 0]], 1.0), rtol=1e-12)


def test_names(table):
    specs = [
        KernelSpec("gaussian", "each", {"width": [0.5, 1.0]}),
        KernelSpec("gaussian", ["height", "age"], {"width": 2.0}),
        KernelSpec("linear"),
    ]
    assert KernelBank(specs).fit(as_dict(table[0])).kernel_names_ == [
        "gaussian(w=0.5) on height",
        "gaussian(w=1) on height",
        "gaussian(w=0.5) on weight",
        "gaussian(w=1) on weight",
        "gaussian(w=0.5) on age",
        "gaussian(w=1) on age",
        "gaussian(w=2) on height + age",
        "linear on all features",
    ]


def test_groups_with_names(table):
    X, new = table
    on = {"body": [0, 1], "years": "age"}
    bank = KernelBank([KernelSpec("gaussian", on, {"width": 1.0}), KernelSpec("linear", {"body": [0, 1]})])
    stack = bank.fit_transform(INPUTS["pandas"](X))
    assert stack.names == ("gaussian(w=1) on body", "linear on body", "gaussian(w=1) on years")
    assert_allclose(stack.dense().values[0], gaussian(X[:, :2], X[:, :2], 1.0), rtol=1e-12)
    assert_allclose(bank.transform(INPUTS["pandas"](new)).dense().values[2], gaussian(new[:, [2]], X[:, [2]], 1.0))
    strings = pandas.DataFrame({"dna": ["GATTACA", "CAT"], "length": [7.0, 3.0]})
    spectra = KernelBank([KernelSpec("spectrum", "dna", {"length": 2})]).fit_transform(strings)
    assert_allclose(spectra.dense().values[0], spectrum(strings["dna"].tolist(), strings["dna"].tolist(), 2))


def test_distances_are_computed_once_a_group(table, monkeypatch):
    calls = []
    original = __import__("bemkl.kernels.groups", fromlist=["cdist"]).cdist
    monkeypatch.setattr("bemkl.kernels.groups.cdist", lambda *a: calls.append(a[2]) or original(*a))
    KernelBank(
        [
            KernelSpec("gaussian", "all", {"width": [1.0, 2.0, 4.0]}),
            KernelSpec("laplacian", "all", {"width": [1.0, 2.0]}),
        ]
    ).fit(table[0])
    assert calls == ["sqeuclidean", "cityblock"]


def test_functions_names_of_scikit_learn_and_gaussian_process_kernels(table):
    X, new = table
    bank = KernelBank([KernelSpec(linear), KernelSpec("sigmoid", parameters={"gamma": 1e-3}), KernelSpec(RBF(2.0))])
    bank.fit(X)
    kernels = bank.transform(new).dense().values
    assert_allclose(kernels[0], new @ X.T, rtol=1e-12)
    assert_allclose(kernels[1], np.tanh(1e-3 * new @ X.T + 1.0), rtol=1e-12)
    assert_allclose(kernels[2], gaussian(new, X, 2.0), rtol=1e-10)
    assert bank.kernel_names_[2] == "RBF(length_scale=2) on all features"


@pytest.mark.parametrize("name", sorted(NAMED))
def test_diagonals_are_those_of_the_matrix(name):
    rng = np.random.default_rng(1)
    parameters = {"gaussian": {"width": 0.7}, "laplacian": {"width": 0.7}, "matern": {"length": 0.7}}
    parameters |= {"periodic": {"period": 1.3}, "polynomial": {"degree": 3, "offset": 0.4}, "spectrum": {"length": 2}}
    if name == "spectrum":
        points = ["GATTACA", "CAT", "TATATA"]
    elif name in ("tanimoto", "hamming"):
        points = rng.integers(0, 2, size=(5, 6)) * 1.0
    else:
        points = rng.random(size=(5, 3))
    function, chosen = find_kernel(name), parameters.get(name, {})
    expected = np.diag(function.matrix(points, points, **chosen))
    assert_allclose(function.diagonal_of(points, **chosen), expected, rtol=1e-12)


def test_sequences_beside_numbers():
    views = {"dna": ["GATTACA", "CATTAG", "TTTT"], "size": np.array([[1.0], [2.0], [4.0]])}
    bank = KernelBank(
        [KernelSpec("spectrum", "dna", {"length": [2, 3]}), KernelSpec("linear", "size")], scaling="spherical"
    )
    kernels = bank.fit_transform(views).dense().values
    K = spectrum(views["dna"], views["dna"], 2)
    assert_allclose(kernels[0], spherical(K, np.diag(K), np.diag(K)), rtol=1e-12)
    new = bank.transform({"size": np.array([[3.0]]), "dna": ["TATTA"]}).dense().values
    assert new.shape == (3, 1, 3)
    assert bank.kernel_names_ == ["spectrum(l=2) on dna", "spectrum(l=3) on dna", "linear on size"]


def test_strings_in_any_kind_of_sequence():
    words = ["GATTACA", "CATTAG", "TTTT"]
    expected = spectrum(words, words, 2)
    for view in (words, tuple(words), np.array(words), pandas.Series(words, index=[7, 8, 9]), polars.Series(words)):
        assert_array_equal(
            KernelBank([KernelSpec("spectrum", "dna", {"length": 2})]).fit_transform({"dna": view}).dense().values[0],
            expected,
        )


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, dict])
def test_one_hot_columns_of_truth_values(make):
    codes = {"red": np.array([True, False, False]), "blue": np.array([False, True, True])}
    numbers = np.column_stack(list(codes.values())) * 1.0
    assert_array_equal(
        KernelBank([KernelSpec("linear")]).fit_transform(make(codes)).dense().values[0], numbers @ numbers.T
    )


def test_series_with_an_index_of_their_own():
    columns = {name: pandas.Series([1.0, 2.0, 4.0], index=[5, 6, 7]) for name in ("a", "b")}
    assert_array_equal(
        KernelBank([KernelSpec("linear", "a")]).fit_transform(columns).dense().values[0], np.outer([1, 2, 4], [1, 2, 4])
    )


@pytest.mark.parametrize(
    ("on", "columns"),
    [
        (slice(1, 3), "bc"),
        (slice("b", "d"), "bcd"),
        (slice("c", None), "cd"),
        (slice(None, None, 2), "ac"),
        (slice(-2, None), "cd"),
        ([True, False, True, False], "ac"),
        (np.array([False, True, True, True]), "bcd"),
        ({"some": [False, False, True, True]}, "cd"),
        ({"some": slice("a", "b")}, "ab"),
    ],
)
def test_columns_by_slice_and_mask(on, columns, tmp_path):
    """As scikit-learn's ColumnTransformer takes them; a slice by names includes the last one."""
    table = pandas.DataFrame(np.random.default_rng(0).normal(size=(12, 4)), columns=list("abcd"))
    bank = KernelBank([KernelSpec("linear", on)])
    found = bank.fit_transform(table).dense().values
    expected = KernelBank([KernelSpec("linear", list(columns))]).fit_transform(table).dense().values
    assert_array_equal(found, expected)
    model = BEMKLClassifier(bank, tol=1e-3).fit(table, table.a > 0.0)
    save_model(model, tmp_path / "model.skops")
    assert_array_equal(load_model(tmp_path / "model.skops").predict_proba(table), model.predict_proba(table))


class TestMissingViews:
    @pytest.mark.parametrize("standardise", [False, True])
    @pytest.mark.parametrize("scaling", ["spherical", "centred", "trace", "variance"])
    def test_a_missing_sample_is_similar_to_nothing(self, table, scaling, standardise):
        X, new = table[0].copy(), table[1].copy()
        X[2, 0] = new[1, 0] = np.nan
        bank = KernelBank([KernelSpec("linear", "each")], standardise=standardise, scaling=scaling)
        kernel, new_kernel = bank.fit_transform(X).dense().values[0], bank.transform(new).dense().values[0]
        if standardise:
            assert_allclose(bank.groups_[0].mean, np.delete(X[:, 0], 2).mean())
        assert not kernel[2].any()
        assert not kernel[:, 2].any()
        assert not new_kernel[1].any()
        assert not new_kernel[:, 2].any()
        assert np.count_nonzero(kernel) == 49


class TestLearnedOnTrainingOnly:
    def test_new_samples_do_not_move_anything(self, table):
        X, new = table
        bank = paper_bank().fit(X)
        whole = bank.transform(new).dense().values
        for i in range(len(new)):
            assert_allclose(bank.transform(new[i : i + 1]).dense().values[:, 0], whole[:, i], rtol=1e-10, atol=1e-300)

    @pytest.mark.parametrize("scaling", ["spherical", "centred", "trace", "variance", None])
    def test_training_samples_as_new_samples(self, table, scaling):
        bank = KernelBank([KernelSpec("polynomial", "each", {"degree": [1, 2]})], standardise=True, scaling=scaling)
        train = bank.fit_transform(table[0]).dense().values
        assert_allclose(bank.transform(table[0]).dense().values, train, rtol=1e-10, atol=1e-12)

    def test_a_constant_column_is_only_centred(self):
        """Its deviation is not exactly zero where its mean is rounded."""
        X = np.full((7, 1), 0.1)
        assert X.std() > 0.0
        bank = KernelBank([KernelSpec("linear")], standardise=True).fit(X)
        assert_allclose(bank.transform([[0.6]]).dense().values, 0.0, atol=1e-15)


def test_paper_bank():
    bank = paper_bank()
    X = np.random.default_rng(0).normal(size=(9, 4))
    stack = bank.fit_transform(X)
    assert stack.shape == (9, 9, 13 * 5)
    assert len(set(bank.kernel_names_)) == 65
    assert_allclose(np.diagonal(stack.dense().values, axis1=1, axis2=2), 1.0, rtol=1e-12)
    assert stack.dense().asymmetries().max() < 1e-14
    Z = StandardScaler().fit_transform(X)
    found = stack.dense().values[bank.kernel_names_.index("gaussian(w=0.25) on x2")]
    assert_allclose(found, gaussian(Z[:, [2]], Z[:, [2]], 0.25), rtol=1e-10, atol=1e-300)


def test_behaves_like_an_estimator(table):
    bank = KernelBank([KernelSpec("linear")], scaling="trace")
    with pytest.raises(NotFittedError):
        bank.transform(table[1])
    copy = clone(bank.fit(table[0]))
    assert copy.get_params()["scaling"] == "trace"
    assert not hasattr(copy, "groups_")


# Rows, and kernels as printed in Table 1 of the paper.
TABLE_1 = {
    "breast": (683, 130),
    "bupaliver": (345, 91),
    "heart": (270, 377),
    "ionosphere": (351, 442),
    "pima": (768, 117),
    "sonar": (208, 793),
    "wdbc": (569, 403),
    "wpbc": (194, 429),
}


@pytest.mark.skipif(
    "BEMKL_DATA" not in os.environ, reason="BEMKL_DATA does not name a folder with the paper's data sets"
)
@pytest.mark.parametrize("name", TABLE_1)
def test_number_of_kernels_of_the_papers_data_sets(name):
    table = np.genfromtxt(Path(os.environ["BEMKL_DATA"]) / name / f"{name}.csv", delimiter=",", skip_header=1)
    X = table[:, :-1]
    bank = paper_bank()
    stack = bank.fit_transform(X[:5])
    assert (len(X), len(bank.kernel_names_)) == TABLE_1[name]
    assert stack.shape == (5, 5, TABLE_1[name][1])


REFUSED = {
    "column past the end": (lambda: fit(KernelSpec("linear", 7)), r"on: there is no column 7"),
    "no columns": (lambda: fit(KernelSpec("linear", [])), r"on: expected at least one column"),
    "unknown kernel": (lambda: fit(KernelSpec("gausian")), r"kernel: expected .*gaussian.*got 'gausian'"),
    "unknown scaling": (lambda: fit(KernelSpec("linear"), scaling="unit"), r"scaling: .*spherical.*got 'unit'"),
    "name instead of a spec": (lambda: fit("linear"), r"specs: expected KernelSpec objects, got 'linear'"),
    "no specs": (lambda: fit(), r"specs: expected at least one"),
    "joined sequences": (
        lambda: fit(KernelSpec("linear", "all"), X={"a": ["x", "y"], "b": np.ones((2, 1))}),
        r"on: views of strings cannot be joined",
    ),
    "infinite value": (lambda: fit(KernelSpec("linear"), X=[[np.inf, 1.0]]), r"X: row 0 .*infinite"),
    "a partly missing row": (
        lambda: fit(KernelSpec("linear"), X=[[0.0, 1.0], [np.nan, 1.0]]),
        r"X: row 1 of all features is partly NaN",
    ),
    "a view that nobody has": (
        lambda: fit(KernelSpec("linear", "each"), X=[[np.nan, 1.0], [np.nan, 1.0]]),
        r"X: no training sample has x0",
    ),
}


def fit(*specs, X=((1.0, 0.0), (0.0, 1.0)), scaling=None):
    return KernelBank(list(specs), scaling=scaling).fit(np.asarray(X) if isinstance(X, tuple) else X)


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_with_a_sentence(call, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


def test_equal_kernels_get_different_names():
    bank = KernelBank([KernelSpec("linear")] * 2 + [KernelSpec("gaussian", "all", {"width": [1.0, 1.0000001]})])
    stack = bank.fit_transform(np.eye(3))
    assert len(set(stack.names)) == 4
    assert list(stack.names) == bank.kernel_names_ == list(bank.get_feature_names_out())


def test_sequences_that_are_missing():
    views = {"dna": ["GATTACA", None, "CATCAT"], "size": np.array([7.0, 0.0, 6.0])}
    bank = KernelBank([KernelSpec("spectrum", "dna", {"length": 2})], scaling="spherical")
    kernel = bank.fit_transform(views).dense().values[0]
    assert_allclose(kernel.diagonal(), [1.0, 0.0, 1.0])
    assert not kernel[1].any()
    table = pandas.DataFrame(views)
    assert_array_equal(bank.fit_transform(table).dense().values[0], kernel)


def test_spaces_in_sequences_count():
    assert_array_equal(spectrum(["A  B"], ["A B", "A  B"], length=2), [[2.0, 3.0]])


@pytest.mark.parametrize("scaling", ["centred", "trace", "variance"])
def test_missing_samples_do_not_move_a_scaling(scaling):
    """Kernels among the samples that are there are the same with and without the others."""
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(12, 2)) + 2.0, rng.normal(size=(5, 2)) + 2.0
    gaps = np.vstack([X, np.full((4, 2), np.nan)])
    bank = KernelBank([KernelSpec("polynomial", "all", {"degree": 2})], scaling=scaling)
    whole, whole_new = bank.fit_transform(X).dense().values[0], bank.transform(new).dense().values[0]
    part, part_new = bank.fit_transform(gaps).dense().values[0], bank.transform(new).dense().values[0]
    assert_allclose(part[:12, :12], whole, rtol=1e-12)
    assert_allclose(part_new[:, :12], whole_new, rtol=1e-12)
    assert not part[12:].any()


@pytest.mark.parametrize("scaling", [None, "spherical", "centred", "trace", "variance"])
def test_constant_columns_under_every_scaling(scaling):
    for kernel, parameters in (("linear", {}), ("polynomial", {"degree": 2}), ("gaussian", {"width": 1.0})):
        bank = KernelBank([KernelSpec(kernel, "all", parameters)], scaling=scaling)
        kernels = bank.fit_transform(np.full((7, 1), 1.7)).dense().values
        assert np.abs(kernels).max() < 20.0
