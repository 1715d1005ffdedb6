"""Bad input to the estimators: a sentence with the argument, what came and the way out."""

import numpy as np
import pandas
import pytest
from scipy.sparse import eye_array

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, KernelStack, paper_bank, stack_kernels
from bemkl.kernels import choose_landmarks, from_distances

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
Y = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
SQUARE = np.dstack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))])
FITTED = BEMKLClassifier(tol=1e-3).fit(X, Y)
KERNELS = BEMKLClassifier("precomputed", tol=1e-3).fit(SQUARE, Y)
NAMED = BEMKLRegressor("precomputed", tol=1e-3).fit({"a": SQUARE[..., 0], "b": SQUARE[..., 1]}, X[:, 0])
VIEWS = BEMKLRegressor(tol=1e-3).fit({"size": X, "shape": X[:, :2]}, X[:, 0])


def classifier(**parameters):
    return BEMKLClassifier(**parameters).fit(X, Y)


def histogram(X):
    return BEMKLClassifier(KernelBank([KernelSpec("chi2", "all", {"width": 1.0})])).fit(X, Y)


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
    "negative histogram": (lambda: histogram(X), "X: .*negative"),
    # distances
    "distances that are not square": (lambda: from_distances(np.ones((3, 4))), "square matrix of the training samples"),
    "unsorted distances": (
        lambda: from_distances(np.abs(np.subtract.outer([0.0, 1.0, 2.0], [1.0, 0.0, 2.0]))),
        "Put rows and columns in the same order",
    ),
    # labels
    "one class": (
        lambda: BEMKLClassifier().fit(X, ["yes"] * 20),
        r"y: .*at least 2 classes, got one class only: \['yes'\]",
    ),
    "continuous labels": (lambda: BEMKLClassifier().fit(X, X[:, 0]), "continuous"),
    "labels of a new class": (
        lambda: FITTED.score(X, ["maybe"] * 20),
        r"y: the labels \['maybe'\] were not there in training, where the classes were \['no', 'yes'\]",
    ),
    "strings as responses": (lambda: BEMKLRegressor().fit(X, Y), "could not convert string to float"),
    "infinite response": (lambda: BEMKLRegressor().fit(X, np.full(20, np.inf)), "Input y contains infinity"),
    # kernels
    "kernels first": (
        lambda: BEMKLClassifier("precomputed").fit(np.moveaxis(SQUARE, -1, 0), Y),
        r"got \(2, 20, 20\), which looks like kernels first.*np\.moveaxis\(kernels, 0, -1\)",
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
        "square training kernels have to be symmetric",
    ),
    "kernels with NaN": (
        lambda: BEMKLClassifier("precomputed").fit(np.where(SQUARE > 3, np.nan, SQUARE), Y),
        "kernels: expected finite numbers, got nan",
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
    # parameters
    "kernels by name": (lambda: classifier(kernels="gaussian"), r"kernels: expected a KernelBank, .* got 'gaussian'"),
    "prior by name": (lambda: classifier(kernel_prior="flat"), r'kernel_prior: expected "dense", "sparse" or a pair'),
    "negative prior": (lambda: classifier(sample_prior=(-1.0, 1.0)), "sample_prior: .* positive numbers"),
    "prior of three": (lambda: classifier(bias_prior=(1, 1, 1)), r"bias_prior: .* got \(1, 1, 1\)"),
    "noise": (lambda: BEMKLRegressor(noise_prior=0).fit(X, X[:, 0]), "noise_prior: .* got 0"),
    "deviation": (
        lambda: classifier(intermediate_std=0.0),
        'intermediate_std: expected a positive number or "learn", got 0.0',
    ),
    "margin": (lambda: classifier(margin=-1.0), "margin: expected a finite number of at least 0, got -1.0"),
    "multiclass": (lambda: classifier(multiclass="ova"), 'multiclass: expected "shared" or "ovr", got \'ova\''),
    "rule": (lambda: classifier(predictive="guess"), 'predictive: expected "exact" or "paper", got \'guess\''),
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
