"""Bad input to the estimators: a sentence with the argument, what came and the way out."""

import numpy as np
import pandas
import polars
import pytest
from scipy.sparse import eye_array
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, KernelStack, paper_bank, stack_kernels
from bemkl.kernels import choose_landmarks

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
Y = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
SQUARE = np.dstack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))])
FITTED = BEMKLClassifier(tol=1e-3).fit(X, Y)
KERNELS = BEMKLClassifier("precomputed", tol=1e-3).fit(SQUARE, Y)
NAMED = BEMKLRegressor("precomputed", tol=1e-3).fit({"a": SQUARE[..., 0], "b": SQUARE[..., 1]}, X[:, 0])
WORDS = pandas.DataFrame({"number": X[:, 0], "word": ["ab", "ba"] * 10})
VIEWS = BEMKLRegressor(tol=1e-3).fit({"size": X, "shape": X[:, :2]}, X[:, 0])


LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
SEVERAL = BEMKLClassifier(tol=1e-3).fit(X, LABELS)


def doubling(A, B):
    A *= 2.0
    return A @ B.T


def classifier(**parameters):
    return BEMKLClassifier(**parameters).fit(X, Y)


def landmarks(chosen):
    return choose_landmarks(chosen, 20, lambda row: SQUARE[row, :, 1], rng)


REFUSED = {
    # numbers of samples
    "views of different samples": (
        lambda: BEMKLRegressor().fit({"size": X, "shape": X[:19]}, X[:, 0]),
        r"X: expected views of the same samples, got views with \{'size': 20, 'shape': 19\} samples",
    ),
    "kernels of different samples": (
        lambda: KernelStack([np.eye(3), np.eye(4)], ["a", "b"]),
        r"kernels: expected matrices of the same samples, got shape \(4, 4\) for 'b' and \(3, 3\) for 'a'",
    ),
    "labels of other samples": (
        lambda: BEMKLClassifier().fit(X, Y[:19]),
        "y: expected a value for each of the 20 samples of X, got 19",
    ),
    "responses of other samples": (
        lambda: BEMKLRegressor("precomputed").fit(SQUARE, X[:5, 0]),
        "y: expected a value for each of the 20 samples of X, got 5",
    ),
    # columns and views
    "unknown column": (
        lambda: BEMKLClassifier(KernelBank([KernelSpec("linear", "weight")])).fit(
            pandas.DataFrame(X, columns=["age", "size", "dose"]), Y
        ),
        "on: there is no column 'weight'. The 3 features are age, size, dose",
    ),
    "unknown view": (lambda: VIEWS.predict({"size": X}), "on: there is no column 'shape'. The 1 views are size"),
    "fewer features": (lambda: FITTED.predict(X[:, :2]), "X has 2 features, but BEMKLClassifier is expecting 3"),
    "one axis": (lambda: FITTED.predict(X[0]), "Expected 2D array, got 1D array"),
    "other names": (
        lambda: (
            BEMKLClassifier(tol=1e-3)
            .fit(pandas.DataFrame(X, columns=list("abc")), Y)
            .predict(pandas.DataFrame(X, columns=list("abd")))
        ),
        "The feature names should match those that were passed during fit",
    ),
    # labels
    "one class": (
        lambda: BEMKLClassifier().fit(X, ["yes"] * 20),
        r"y: .*at least 2 classes, got one class only: \['yes'\]",
    ),
    "continuous labels": (lambda: BEMKLClassifier().fit(X, X[:, 0]), "continuous"),
    "labels with gaps": (
        lambda: BEMKLClassifier().fit(X, ["yes", None] * 10),
        r"y: label 1 is missing\. Leave that sample out, or pass unlabeled=None",
    ),
    "numbers with gaps": (
        lambda: BEMKLClassifier().fit(X, np.array([0, 1, None, 1] * 5, dtype=object)),
        "y: label 2 is missing",
    ),
    "labels of two kinds": (
        lambda: BEMKLClassifier().fit(X, ["yes", 0] * 10),
        r"y: expected labels of one kind, got 'yes' \(str\) and 0 \(int\)",
    ),
    "lists as labels": (lambda: BEMKLClassifier().fit(X, [[0], [0, 1]] * 10), "y: .*inhomogeneous.* Pass a label"),
    "a dict of labels": (
        lambda: BEMKLClassifier().fit(X, dict(enumerate(Y))),
        "y: expected a label for each sample, got a dict",
    ),
    "labels in three dimensions": (lambda: BEMKLClassifier().fit(X, np.zeros((20, 1, 1))), "y: Found array with dim 3"),
    "labels to score with gaps": (lambda: FITTED.score(X, [None] * 20), "y: some labels are missing"),
    "labels to score of another shape": (
        lambda: FITTED.score(X, ["yes"] * 19),
        r"y: expected a label for each of 20 samples, got shape \(19,\)",
    ),
    "weights of another shape": (lambda: FITTED.score(X, Y, [1.0, 2.0]), "sample_weight: expected 20 weights"),
    "weights of nothing": (lambda: FITTED.score(X, Y, np.zeros(20)), "sample_weight: .*not all zero"),
    "strings as responses": (
        lambda: BEMKLRegressor().fit(X, Y),
        "^y: could not convert string to float: .* Pass a number for each sample",
    ),
    "infinite response": (lambda: BEMKLRegressor().fit(X, np.full(20, np.inf)), "^y: Input y contains infinity"),
    "complex responses": (lambda: BEMKLRegressor().fit(X, 1j * X[:, 0]), "^y: Complex data not supported"),
    "a seed of another kind": (
        lambda: BEMKLRegressor(random_state=1.5).fit(X, X[:, 0]),
        "^random_state: 1.5 cannot be used to seed .* Pass a whole number",
    ),
    "samples in three dimensions": (
        lambda: BEMKLRegressor().fit(X[:, :, None], X[:, 0]),
        "^X: Found array with dim 3.* Pass a table with a row for each sample",
    ),
    "one column of a data frame": (
        lambda: BEMKLRegressor().fit(pandas.Series(X[:, 0]), X[:, 0]),
        "^X: Expected a 2-dim",
    ),
    "a lazy data frame": (
        lambda: BEMKLRegressor().fit(polars.from_numpy(X).lazy(), X[:, 0]),
        "^X: expected a data frame with its values, got a LazyFrame. Collect it first",
    ),
    "a lazy data frame as a view": (
        lambda: BEMKLRegressor().fit({"lazy": polars.from_numpy(X).lazy()}, X[:, 0]),
        "X: expected a data frame with its values, got a LazyFrame. Collect it first",
    ),
    "numeric kernels on strings": (
        lambda: BEMKLRegressor(KernelBank([KernelSpec("linear", "word")])).fit(WORDS, X[:, 0]),
        "^X: word holds strings, which linear cannot compare. Put the spectrum kernel on sequences",
    ),
    "polynomials on strings": (
        lambda: BEMKLRegressor(KernelBank([KernelSpec("polynomial", "word", {"degree": 2})])).fit(WORDS, X[:, 0]),
        "^X: word holds strings, which polynomial cannot compare",
    ),
    "other kernels on strings": (
        lambda: BEMKLRegressor(KernelBank([KernelSpec("rbf", "word")])).fit(WORDS, X[:, 0]),
        "^X: word holds strings, which rbf cannot compare",
    ),
    "strings among numbers": (
        lambda: BEMKLRegressor(KernelBank([KernelSpec("linear")])).fit(WORDS, X[:, 0]),
        "X: column 'word' does not hold numbers",
    ),
    "sequences of numbers": (
        lambda: BEMKLRegressor(KernelBank([KernelSpec("spectrum", "number", {"length": 2})])).fit(WORDS, X[:, 0]),
        "^X: number holds numbers, and spectrum compares sequences",
    ),
    "a mask of another length": (
        lambda: KernelBank([KernelSpec("linear", [True, False])]).fit(X),
        "on: expected a mask of 3 values, one for each of the features, got 2",
    ),
    "a slice to nowhere": (lambda: KernelBank([KernelSpec("linear", slice("q"))]).fit(X), "on: there is no column 'q'"),
    "a slice of halves": (lambda: KernelBank([KernelSpec("linear", slice(0.5))]).fit(X), r"on: slice\(.* is no slice"),
    "an empty slice": (lambda: KernelBank([KernelSpec("linear", slice(2, 1))]).fit(X), "on: expected at least one"),
    # kernels
    "kernels first": (
        lambda: BEMKLClassifier("precomputed").fit(np.moveaxis(SQUARE, -1, 0), Y),
        r"got \(2, 20, 20\), which looks like kernels first.*np\.moveaxis\(X, 0, -1\)",
    ),
    "rectangular training kernels": (
        lambda: BEMKLClassifier("precomputed").fit(SQUARE[:, :10], Y),
        r"X: expected square training kernels, .* got \(20, 10, 2\).*landmarks",
    ),
    "another train axis": (
        lambda: KERNELS.predict(SQUARE[:, :19]),
        r"new samples \(rows\) and the 20 training samples \(columns\), .* \(n_samples, 20, 2\), got \(20, 19, 2\)",
    ),
    "fewer kernels": (lambda: KERNELS.predict(SQUARE[..., :1]), r"X: expected the 2 kernels of training .*, got 1"),
    "other kernels": (
        lambda: NAMED.predict({"a": SQUARE[..., 0], "c": SQUARE[..., 1]}),
        r"X: expected the 2 kernels of training \(a, b\), got 2 \(a, c\)",
    ),
    "asymmetric kernels": (
        lambda: BEMKLClassifier("precomputed").fit(np.triu(np.ones((20, 20))), Y),
        "X: training kernels have to be symmetric, but entries of 'kernel 0' differ",
    ),
    "kernels with NaN": (
        lambda: BEMKLClassifier("precomputed").fit(np.where(SQUARE > 3, np.nan, SQUARE), Y),
        "kernels, 'kernel 0': expected finite numbers, got nan",
    ),
    "masked kernels": (lambda: stack_kernels(np.ma.masked_less(X @ X.T, 0.0)), "kernels: got a masked array"),
    "four axes": (lambda: stack_kernels(np.ones((2, 2, 2, 2))), r"kernels: expected shape .* got \(2, 2, 2, 2\)"),
    "no kernels": (lambda: stack_kernels([]), "kernels: expected at least one kernel, got none"),
    "names that are not enough": (lambda: stack_kernels([np.eye(2)], names=["a", "b"]), "a name for each of 1 kernels"),
    "equal names": (lambda: stack_kernels([np.eye(2)] * 2, names=["a", "a"]), "names: expected different names"),
    "not matrices": (lambda: KernelStack([np.ones(3)]), r"kernels: expected matrices, got shape \(3,\)"),
    "kernels to a bank": (
        lambda: BEMKLClassifier(paper_bank()).fit(stack_kernels(SQUARE), Y),
        'Pass kernels="precomputed"',
    ),
    # banks
    "a view of another width": (
        lambda: VIEWS.predict({"size": X[:, :1], "shape": X[:, :2]}),
        "X: size has 1 features, in training it had 3 features",
    ),
    "no parameters": (lambda: KernelSpec("gaussian"), "gaussian cannot take .*missing .*'width'.* are: width"),
    "unknown parameter": (lambda: KernelSpec("gaussian", "all", {"sigma": 1}), "parameters: .*'sigma'"),
    "parameters as a number": (lambda: KernelSpec("gaussian", "all", 1.0), "parameters: expected a dict"),
    "no values": (lambda: KernelSpec("gaussian", "all", {"width": []}), "at least one value for 'width'"),
    "a class as kernel": (lambda: KernelSpec(RBF), "the class RBF itself"),
    "a list as kernel": (lambda: KernelSpec(["gaussian"]), "kernel: expected a name or a function"),
    "one spec": (lambda: KernelBank(KernelSpec("linear")).fit(X), "specs: expected a list of KernelSpec objects"),
    "a column twice": (lambda: KernelBank([KernelSpec("linear", [0, 0])]).fit(X), "on: expected different columns"),
    "a group of each": (lambda: KernelBank([KernelSpec("linear", {"g": "each"})]).fit(X), 'on: "each" makes a group'),
    "a nested group": (
        lambda: KernelBank([KernelSpec("linear", {"g": {"a": [0]}})]).fit(X),
        "on: expected columns for the group 'g'",
    ),
    "a number that is no position": (
        lambda: KernelBank([KernelSpec("linear", [7])]).fit(pandas.DataFrame(X, columns=[7, 8, 9])),
        "Numbers are positions, from 0 on",
    ),
    "a column called all": (
        lambda: KernelBank([KernelSpec("linear", "all")]).fit(pandas.DataFrame(X, columns=["all", "b", "c"])),
        "on: 'all' is also the name of a column",
    ),
    "scaling of another type": (
        lambda: KernelBank([KernelSpec("linear")], scaling=["trace"]).fit(X),
        "scaling: expected",
    ),
    "dates beside numbers": (
        lambda: KernelBank([KernelSpec("linear", {"group": [0, 1]})]).fit(
            {"one": np.array([["2024-01-01"], ["2024-01-02"]], dtype="datetime64[s]"), "two": np.arange(2.0)}
        ),
        r"X, view 'one': X: expected real numbers, got dtype datetime64\[s\]",
    ),
    "a kernel of another shape": (
        lambda: KernelBank([KernelSpec(lambda A, B: A[:, 0])]).fit(X),
        r"kernel: expected values of shape \(20, 20\) from .* got shape \(20,\)",
    ),
    "a kernel of NaN": (
        lambda: KernelBank([KernelSpec(lambda A, B: np.full((len(A), len(B)), np.nan))]).fit(X),
        "kernel '<lambda> on all features': expected finite numbers, got nan at index .*400 of 400 values are NaN",
    ),
    "no diagonal": (
        lambda: KernelBank([KernelSpec(lambda A, B: -np.ones((len(A), len(B))))], scaling="spherical").fit(X),
        "unit diagonals do not exist",
    ),
    "an odd view": (
        lambda: BEMKLRegressor().fit({"a": X, "cube": np.ones((20, 2, 2))}, X[:, 0]),
        "X, view 'cube': .*dim 3",
    ),
    "columns of one name": (
        lambda: BEMKLClassifier().fit(pandas.DataFrame(X, columns=["a", "a", "b"]), Y),
        "X: expected columns with different names",
    ),
    "no views": (lambda: BEMKLClassifier().fit({}, Y), "X: expected views of the same samples, got views with {}"),
    "basis": (
        lambda: KernelBank([KernelSpec("linear")]).fit_transform(X, basis=[99]),
        "basis: expected different rows",
    ),
    "names of named kernels": (lambda: stack_kernels({"a": np.eye(2)}, names=["b"]), "names: the kernels have names"),
    "other names in a stack": (
        lambda: NAMED.predict(stack_kernels({"b": SQUARE[..., 1], "c": SQUARE[..., 0]})),
        r"X: expected the 2 kernels of training \(a, b\), got 2 \(b, c\)",
    ),
    # labels
    "labels from 1": (lambda: BEMKLClassifier().fit(X, LABELS + 1), "y: expected zeros and ones for several labels"),
    "labels of another coding": (
        lambda: SEVERAL.score(X, 2 * LABELS - 1),
        r"y: expected zeros and ones of shape \(20, 2\), got .* -1",
    ),
    "missing labels": (lambda: BEMKLClassifier().fit(X, pandas.Series([*Y[:19], None])), "y: some labels are missing"),
    "labels that cannot be sorted": (lambda: FITTED.score(X, [None, *Y[1:]]), "y: some labels are missing"),
    # parameters
    "a rule after the fit": (
        lambda: BEMKLClassifier(tol=1e-3).fit(X, Y).set_params(predictive="Exact").predict_proba(X),
        "predictive: expected",
    ),
    "verbosity": (lambda: classifier(verbose="yes"), "verbose: expected a whole number"),
    "threads": (lambda: classifier(n_jobs="all"), "n_jobs: expected a whole number or None, got 'all'"),
    "a matrix of priors": (lambda: classifier(kernel_prior=[[1, 2], [3, 4]]), "kernel_prior: expected"),
    "kernels by name": (lambda: classifier(kernels="gaussian"), r"kernels: expected a KernelBank, .* got 'gaussian'"),
    "prior by name": (lambda: classifier(kernel_prior="flat"), r'kernel_prior: expected "dense", "sparse" or a pair'),
    "prior of three": (lambda: classifier(bias_prior=(1, 1, 1)), r"bias_prior: .* got \(1, 1, 1\)"),
    "noise": (lambda: BEMKLRegressor(noise_prior=0).fit(X, X[:, 0]), "noise_prior: .* got 0"),
    "multiclass": (
        lambda: classifier(multiclass="ova"),
        "multiclass: expected one of shared, ovr, pooled, multinomial; got 'ova'",
    ),
    "weights": (
        lambda: classifier(weights="positive"),
        "weights: expected one of free, nonnegative, factorized, spike_slab",
    ),
    "a family of pooled weights": (
        lambda: BEMKLClassifier(multiclass="pooled", weights="spike_slab").fit(X, np.arange(20) % 3),
        'weights: expected "free" where weights are pooled',
    ),
    "rule": (lambda: classifier(predictive="guess"), 'predictive: expected "exact" or "paper", got \'guess\''),
    "acceleration": (lambda: classifier(acceleration="warp"), "acceleration: expected \"newton\" or None, got 'warp'"),
    "iterations": (lambda: classifier(max_iter=0), "max_iter: expected a whole number of at least 1, got 0"),
    "tolerance": (lambda: classifier(tol=-1e-3), "tol: expected a finite number of at least 0"),
    "starts": (lambda: classifier(n_init=0), "n_init: expected a whole number of at least 1, got 0"),
    "coverage": (lambda: VIEWS.predict_interval({"size": X, "shape": X[:, :2]}, coverage=1.0), "coverage: .* below 1"),
    "coverage of a summary": (lambda: VIEWS.summary(coverage=95), "coverage: expected a probability below 1, got 95"),
    # landmarks
    "no landmarks": (lambda: landmarks(0), "landmarks: expected a whole number of at least 1, got 0"),
    "too many landmarks": (lambda: landmarks(21), "landmarks: expected at most the 20 training samples, got 21"),
    "unknown strategy": (lambda: landmarks("random"), r"landmarks: .* one of kmeans\+\+, pivoted .* got 'random'"),
    "rows that are not there": (lambda: landmarks([0, 20]), "different rows from 0 to 19"),
    "rows twice": (lambda: landmarks([1, 1]), "different rows from 0 to 19"),
    "rows as fractions": (lambda: landmarks([0.5]), "rows as whole numbers"),
    "a strategy without square kernels": (
        lambda: BEMKLClassifier("precomputed", landmarks=10).fit(SQUARE[:, :10], Y),
        "landmarks: a strategy needs square training kernels",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_sentence(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


def test_sparse_kernels_are_refused():
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        BEMKLClassifier("precomputed").fit(eye_array(20).tocsr(), Y)


class TestNothingIsLost:
    """A fit that fails leaves the last one as it was."""

    def test_regressor(self):
        model = BEMKLRegressor(tol=1e-3).fit(X, X[:, 0])
        before = model.predict(X)
        for samples, y in (
            (X, 1000.0 * np.arange(19.0)),
            (X[:, :2], np.arange(19.0)),
            (np.where(X > 1, np.nan, X), X[:, 1]),
        ):
            with pytest.raises(ValueError):
                model.fit(samples, y)
            assert np.array_equal(model.predict(X), before)

    def test_bank(self):
        bank = KernelBank([KernelSpec("chi2", "all", {"width": 1.0})])
        with pytest.raises(ValueError, match="negative"):
            bank.fit(X)
        with pytest.raises(NotFittedError):
            bank.transform(np.abs(X))
        bank.fit(np.abs(X))
        before = np.asarray(bank.transform(np.abs(X)))
        with pytest.raises(ValueError, match="negative"):
            bank.fit(X[:5])
        assert np.array_equal(np.asarray(bank.transform(np.abs(X))), before)


def test_names_do_not_outlive_their_fit():
    model = BEMKLRegressor(tol=1e-3).fit(pandas.DataFrame(X, columns=list("abc")), X[:, 0])
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    model.fit({"p": X, "q": X}, X[:, 0])
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2
    lists = BEMKLRegressor("precomputed", tol=1e-3).fit([X @ X.T, np.eye(20)], X[:, 0])
    assert lists.n_features_in_ == 20


@pytest.mark.filterwarnings("ignore:X (has|does not have) .*feature names")
def test_arrays_and_data_frames_can_be_mixed():
    """scikit-learn warns of it, and then goes by position."""
    table = pandas.DataFrame(X, columns=list("abc"))
    for train, new in ((table, X), (X, table)):
        model = BEMKLClassifier(tol=1e-3).fit(train, Y)
        assert np.array_equal(model.predict_proba(new), model.predict_proba(train))


def test_as_many_training_samples_as_kernels():
    """(10, 20, 20) is 10 new samples, 20 training samples and 20 kernels."""
    stack = np.dstack([np.exp(-width * ((X[:, None] - X) ** 2).sum(axis=2)) for width in np.linspace(0.1, 2.0, 20)])
    model = BEMKLClassifier("precomputed", tol=1e-3).fit(stack, Y)
    assert model.predict(stack[:10]).shape == (10,)


def test_landmarks_in_another_order():
    order = np.random.default_rng(1).permutation(20)
    model = BEMKLClassifier("precomputed", tol=1e-3, factor_tol=None).fit(SQUARE, Y)
    turned = BEMKLClassifier("precomputed", landmarks=order, tol=1e-3, factor_tol=None).fit(SQUARE, Y)
    np.testing.assert_allclose(turned.dual_coef_, model.dual_coef_[order], rtol=1e-6)
    np.testing.assert_allclose(turned.predict_proba(SQUARE), model.predict_proba(SQUARE), rtol=1e-8)


def test_views_called_all_and_each():
    views = {"all": X[:, :1], "each": X}
    names = BEMKLClassifier(tol=1e-3).fit(views, Y).kernel_names_
    assert names[0] == "gaussian(w=0.25) on all"
    assert names[-1] == "polynomial(d=1) on each"


def test_very_large_and_very_small_values():
    for unit in (1e-170, 1e170):
        np.testing.assert_allclose(
            BEMKLRegressor(tol=1e-3).fit(X * unit, X[:, 0]).predict(X * unit),
            BEMKLRegressor(tol=1e-3).fit(X, X[:, 0]).predict(X),
            rtol=1e-6,
        )
    bank = KernelBank([KernelSpec("polynomial", "all", {"degree": 3})], scaling="spherical")
    kernels = np.asarray(bank.fit_transform((X * 1e7).astype(np.float32)))
    assert np.isfinite(kernels).all()
    assert kernels.dtype == np.float32


def test_kernel_functions_may_write_to_what_they_get():
    stack = KernelBank([KernelSpec(doubling), KernelSpec("linear")]).fit_transform(X).dense().values
    np.testing.assert_allclose(stack[0], 2.0 * X @ X.T)
    np.testing.assert_allclose(stack[1], X @ X.T)


def test_user_input_is_not_changed():
    samples, y = X.copy(), X[:, 0].copy()
    samples.setflags(write=False)
    y.setflags(write=False)
    BEMKLRegressor(tol=1e-3).fit(samples, y).predict(samples)
    kernels = SQUARE.copy()
    kernels.setflags(write=False)
    BEMKLRegressor("precomputed", tol=1e-3).fit(kernels, y).predict(kernels)
