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
DATES = np.array([["2024-01-01"], ["2024-01-02"]], dtype="datetime64[s]")
VIEWS = BEMKLRegressor(tol=1e-3).fit({"size": X, "shape": X[:, :2]}, X[:, 0])


LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
SEVERAL = BEMKLClassifier(tol=1e-3).fit(X, LABELS)


def doubling(A, B):
    A *= 2.0
    return A @ B.T


def classify(samples=X, y=Y, **parameters):
    return BEMKLClassifier(**parameters).fit(samples, y)


def regress(samples=X, y=X[:, 0], **parameters):
    return BEMKLRegressor(**parameters).fit(samples, y)


def bank_of(*spec, **options):
    return KernelBank([KernelSpec(*spec)], **options)


def bank(*spec, X=X, **options):
    return bank_of(*spec, **options).fit(X)


def table(*names):
    return pandas.DataFrame(X, columns=list(names))


def landmarks(chosen):
    return choose_landmarks(chosen, 20, lambda row: SQUARE[row, :, 1], rng)


REFUSED = {
    # numbers of samples
    "views of different samples": (
        lambda: regress({"size": X, "shape": X[:19]}),
        r"X: expected views of the same samples, got views with \{'size': 20, 'shape': 19\} samples",
    ),
    "kernels of different samples": (
        lambda: KernelStack([np.eye(3), np.eye(4)], ["a", "b"]),
        r"kernels: expected matrices of the same samples, got shape \(4, 4\) for 'b' and \(3, 3\) for 'a'",
    ),
    "labels of other samples": (
        lambda: classify(y=Y[:19]),
        "y: expected a value for each of the 20 samples of X, got 19",
    ),
    "responses of other samples": (
        lambda: regress(SQUARE, X[:5, 0], kernels="precomputed"),
        "y: expected a value for each of the 20 samples of X, got 5",
    ),
    # columns and views
    "unknown column": (
        lambda: classify(table("age", "size", "dose"), kernels=bank_of("linear", "weight")),
        "on: there is no column 'weight'. The 3 features are age, size, dose",
    ),
    "unknown view": (lambda: VIEWS.predict({"size": X}), "on: there is no column 'shape'. The 1 views are size"),
    "fewer features": (lambda: FITTED.predict(X[:, :2]), "X has 2 features, but BEMKLClassifier is expecting 3"),
    "one axis": (lambda: FITTED.predict(X[0]), "Expected 2D array, got 1D array"),
    "other names": (
        lambda: classify(table(*"abc"), tol=1e-3).predict(table(*"abd")),
        "The feature names should match those that were passed during fit",
    ),
    # labels
    "one class": (lambda: classify(y=["yes"] * 20), r"y: .*at least 2 classes, got one class only: \['yes'\]"),
    "continuous labels": (lambda: classify(y=X[:, 0]), "continuous"),
    "labels with gaps": (
        lambda: classify(y=["yes", None] * 10),
        r"y: label 1 is missing\. Leave that sample out, or pass unlabeled=None",
    ),
    "numbers with gaps": (
        lambda: classify(y=np.array([0, 1, None, 1] * 5, dtype=object)),
        "y: label 2 is missing",
    ),
    "labels of two kinds": (
        lambda: classify(y=["yes", 0] * 10),
        r"y: expected labels of one kind, got 'yes' \(str\) and 0 \(int\)",
    ),
    "lists as labels": (lambda: classify(y=[[0], [0, 1]] * 10), "y: .*inhomogeneous.* Pass a label"),
    "a dict of labels": (lambda: classify(y=dict(enumerate(Y))), "y: expected a label for each sample, got a dict"),
    "labels in three dimensions": (lambda: classify(y=np.zeros((20, 1, 1))), "y: Found array with dim 3"),
    "labels from 1": (lambda: classify(y=LABELS + 1), "y: expected zeros and ones for several labels"),
    "missing labels": (lambda: classify(y=pandas.Series([*Y[:19], None])), "y: some labels are missing"),
    # targets and weights of a score
    "labels to score with gaps": (lambda: FITTED.score(X, [None] * 20), "y: some labels are missing"),
    "labels that cannot be sorted": (lambda: FITTED.score(X, [None, *Y[1:]]), "y: some labels are missing"),
    "labels to score of another shape": (
        lambda: FITTED.score(X, ["yes"] * 19),
        r"y: expected a label for each of 20 samples, got shape \(19,\)",
    ),
    "labels of another coding": (
        lambda: SEVERAL.score(X, 2 * LABELS - 1),
        r"y: expected zeros and ones of shape \(20, 2\), got .* -1",
    ),
    # responses
    "strings as responses": (
        lambda: regress(y=Y),
        "^y: could not convert string to float: .* Pass a number for each sample",
    ),
    "infinite response": (lambda: regress(y=np.full(20, np.inf)), "^y: Input y contains infinity"),
    "complex responses": (lambda: regress(y=1j * X[:, 0]), "^y: Complex data not supported"),
    # samples
    "samples in three dimensions": (
        lambda: regress(X[:, :, None]),
        "^X: Found array with dim 3.* Pass a table with a row for each sample",
    ),
    "one column of a data frame": (lambda: regress(pandas.Series(X[:, 0])), "^X: Expected a 2-dim"),
    "a lazy data frame": (
        lambda: regress(polars.from_numpy(X).lazy()),
        "^X: expected a data frame with its values, got a LazyFrame. Collect it first",
    ),
    "a lazy data frame as a view": (
        lambda: regress({"lazy": polars.from_numpy(X).lazy()}),
        "X: expected a data frame with its values, got a LazyFrame. Collect it first",
    ),
    "an odd view": (lambda: regress({"a": X, "cube": np.ones((20, 2, 2))}), "X, view 'cube': .*dim 3"),
    "columns of one name": (lambda: classify(table(*"aab")), "X: expected columns with different names"),
    "no views": (lambda: classify({}), "X: expected views of the same samples, got views with {}"),
    # strings
    "numeric kernels on strings": (
        lambda: regress(WORDS, kernels=bank_of("linear", "word")),
        "^X: word holds strings, which linear cannot compare. Put the spectrum kernel on sequences",
    ),
    "polynomials on strings": (
        lambda: regress(WORDS, kernels=bank_of("polynomial", "word", {"degree": 2})),
        "^X: word holds strings, which polynomial cannot compare",
    ),
    "other kernels on strings": (
        lambda: regress(WORDS, kernels=bank_of("rbf", "word")),
        "^X: word holds strings, which rbf cannot compare",
    ),
    "strings among numbers": (
        lambda: regress(WORDS, kernels=bank_of("linear")),
        "X: column 'word' does not hold numbers",
    ),
    "sequences of numbers": (
        lambda: regress(WORDS, kernels=bank_of("spectrum", "number", {"length": 2})),
        "^X: number holds numbers, and spectrum compares sequences",
    ),
    "dates beside numbers": (
        lambda: classify({"one": DATES, "two": X[:2]}, [0, 1], kernels=bank_of("linear", {"group": [0, 1]})),
        r"X, view 'one': X: expected real numbers, got dtype datetime64\[s\]",
    ),
    # kernels
    "kernels first": (
        lambda: classify(np.moveaxis(SQUARE, -1, 0), kernels="precomputed"),
        r"got \(2, 20, 20\), which looks like kernels first.*np\.moveaxis\(X, 0, -1\)",
    ),
    "rectangular training kernels": (
        lambda: classify(SQUARE[:, :10], kernels="precomputed"),
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
    "other names in a stack": (
        lambda: NAMED.predict(stack_kernels({"b": SQUARE[..., 1], "c": SQUARE[..., 0]})),
        r"X: expected the 2 kernels of training \(a, b\), got 2 \(b, c\)",
    ),
    "asymmetric kernels": (
        lambda: classify(np.triu(np.ones((20, 20))), kernels="precomputed"),
        "X: training kernels have to be symmetric, but entries of 'kernel 0' differ",
    ),
    "kernels with NaN": (
        lambda: classify(np.where(SQUARE > 3, np.nan, SQUARE), kernels="precomputed"),
        "kernels, 'kernel 0': expected finite numbers, got nan",
    ),
    "masked kernels": (lambda: stack_kernels(np.ma.masked_less(X @ X.T, 0.0)), "kernels: got a masked array"),
    "four axes": (lambda: stack_kernels(np.ones((2, 2, 2, 2))), r"kernels: expected shape .* got \(2, 2, 2, 2\)"),
    "no kernels": (lambda: stack_kernels([]), "kernels: expected at least one kernel, got none"),
    "names that are not enough": (lambda: stack_kernels([np.eye(2)], names=["a", "b"]), "a name for each of 1 kernels"),
    "names of named kernels": (lambda: stack_kernels({"a": np.eye(2)}, names=["b"]), "names: the kernels have names"),
    "equal names": (lambda: stack_kernels([np.eye(2)] * 2, names=["a", "a"]), "names: expected different names"),
    "not matrices": (lambda: KernelStack([np.ones(3)]), r"kernels: expected matrices, got shape \(3,\)"),
    "kernels to a bank": (lambda: classify(stack_kernels(SQUARE), kernels=paper_bank()), 'Pass kernels="precomputed"'),
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
    "a mask of another length": (
        lambda: bank("linear", [True, False]),
        "on: expected a mask of 3 values, one for each of the features, got 2",
    ),
    "a slice to nowhere": (lambda: bank("linear", slice("q")), "on: there is no column 'q'"),
    "a slice of halves": (lambda: bank("linear", slice(0.5)), r"on: slice\(.* is no slice"),
    "an empty slice": (lambda: bank("linear", slice(2, 1)), "on: expected at least one"),
    "a column twice": (lambda: bank("linear", [0, 0]), "on: expected different columns"),
    "a group of each": (lambda: bank("linear", {"g": "each"}), 'on: "each" makes a group'),
    "a nested group": (lambda: bank("linear", {"g": {"a": [0]}}), "on: expected columns for the group 'g'"),
    "a number that is no position": (
        lambda: bank("linear", [7], X=table(7, 8, 9)),
        "Numbers are positions, from 0 on",
    ),
    "a column called all": (
        lambda: bank("linear", "all", X=table("all", "b", "c")),
        "on: 'all' is also the name of a column",
    ),
    "scaling of another type": (lambda: bank("linear", scaling=["trace"]), "scaling: expected"),
    "a kernel of another shape": (
        lambda: bank(lambda A, B: A[:, 0]),
        r"kernel: expected values of shape \(20, 20\) from .* got shape \(20,\)",
    ),
    "a kernel of NaN": (
        lambda: bank(lambda A, B: np.full((len(A), len(B)), np.nan)),
        "kernel '<lambda> on all features': expected finite numbers, got nan at index .*400 of 400 values are NaN",
    ),
    "no diagonal": (
        lambda: bank(lambda A, B: -np.ones((len(A), len(B))), scaling="spherical"),
        "unit diagonals do not exist",
    ),
    "basis": (
        lambda: bank_of("linear").fit_transform(X, basis=[99]),
        "basis: expected different rows",
    ),
    # parameters
    "a rule after the fit": (
        lambda: classify(tol=1e-3).set_params(predictive="Exact").predict_proba(X),
        "predictive: expected",
    ),
    "a seed of another kind": (
        lambda: regress(random_state=1.5),
        "^random_state: 1.5 cannot be used to seed .* Pass a whole number",
    ),
    "verbosity": (lambda: classify(verbose="yes"), "verbose: expected a whole number"),
    "threads": (lambda: classify(n_jobs="all"), "n_jobs: expected a whole number or None, got 'all'"),
    "a matrix of priors": (lambda: classify(kernel_prior=[[1, 2], [3, 4]]), "kernel_prior: expected"),
    "kernels by name": (lambda: classify(kernels="gaussian"), r"kernels: expected a KernelBank, .* got 'gaussian'"),
    "prior by name": (lambda: classify(kernel_prior="flat"), r'kernel_prior: expected "dense", "sparse" or a pair'),
    "prior of three": (lambda: classify(bias_prior=(1, 1, 1)), r"bias_prior: .* got \(1, 1, 1\)"),
    "noise": (lambda: regress(noise_prior=0), "noise_prior: .* got 0"),
    "multiclass": (
        lambda: classify(multiclass="ova"),
        "multiclass: expected one of shared, ovr, pooled, multinomial; got 'ova'",
    ),
    "weights": (
        lambda: classify(weights="positive"),
        "weights: expected one of free, nonnegative, factorized, spike_slab",
    ),
    "a family of pooled weights": (
        lambda: classify(y=np.arange(20) % 3, multiclass="pooled", weights="spike_slab"),
        'weights: expected "free" where weights are pooled',
    ),
    "several labels that compete": (
        lambda: classify(y=LABELS, multiclass="multinomial"),
        "multiclass: .* takes one known label a sample",
    ),
    "unknown labels that compete": (
        lambda: classify(y=np.arange(20) % 3, multiclass="multinomial", unlabeled=0),
        "multiclass: .* takes one known label a sample",
    ),
    "a prior of the pool": (lambda: classify(pool_prior=(1, -1)), r"pool_prior: expected .* got \(1, -1\)"),
    "a prior of a pool in use": (
        lambda: classify(y=np.arange(20) % 3, multiclass="pooled", pool_prior=(1, -1)),
        r"pool_prior: expected .* got \(1, -1\)",
    ),
    "rule": (lambda: classify(predictive="guess"), 'predictive: expected "exact" or "paper", got \'guess\''),
    "acceleration": (lambda: classify(acceleration="warp"), "acceleration: expected \"newton\" or None, got 'warp'"),
    "iterations": (lambda: classify(max_iter=0), "max_iter: expected a whole number of at least 1, got 0"),
    "tolerance": (lambda: classify(tol=-1e-3), "tol: expected a finite number of at least 0"),
    "tolerance of factors": (lambda: classify(factor_tol=-1.0), "factor_tol: "),
    "no tolerance of factors": (lambda: classify(factor_tol=0.0), "factor_tol: "),
    "tolerance of factors as text": (lambda: classify(factor_tol="small"), "factor_tol: "),
    "factors of no digit": (lambda: classify(factor_tol=1.0), "factor_tol: "),
    "starts": (lambda: classify(n_init=0), "n_init: expected a whole number of at least 1, got 0"),
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
        lambda: classify(SQUARE[:, :10], kernels="precomputed", landmarks=10),
        "landmarks: a strategy needs square training kernels",
    ),
    "landmarks without a view": (
        lambda: classify({"a": X, "b": np.where(np.arange(20)[:, None] < 10, np.nan, X)}, landmarks=[0, 1, 2]),
        "landmarks: none of the 3 landmarks has b",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_with_a_sentence(call, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


def test_sparse_kernels_are_refused():
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        BEMKLClassifier("precomputed").fit(eye_array(20).tocsr(), Y)


class TestNothingIsLost:
    """A fit that fails leaves the last one as it was."""

    @pytest.mark.parametrize("fit", [classify, regress])
    def test_estimators(self, fit):
        model = fit(tol=1e-3)
        before = model.predict(X)
        for samples, y in (
            (X, np.arange(19) % 2),
            (X[:, :2], np.arange(19) % 2),
            (np.where(X > 1, np.nan, X), Y == "no"),
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
