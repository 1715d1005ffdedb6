"""Kernel functions against another implementation or a loop over their definition; all are positive semidefinite."""

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import ExpSineSquared, Matern
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, polynomial_kernel, rbf_kernel

from bemkl import KernelBank, KernelSpec
from bemkl import kernels as k
from bemkl.kernels import functions

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(7, 3)), RNG.normal(size=(5, 3))
HISTOGRAMS = RNG.poisson(2.0, size=(7, 6)) * 1.0, RNG.poisson(2.0, size=(5, 6)) * 1.0
BITS = RNG.random(size=(7, 12)) < 0.4, RNG.random(size=(5, 12)) < 0.4
WORDS = ["GATTACA", "TACAGAT", "AAAA", "GA", "CATTAGA", "", "ATATAT"], ["TTTT", "GATTAGAT", "CACA", "A", "AAGATT"]


def by_loop(function, X, Z):
    return np.array([[function(x, z) for z in Z] for x in X])


def count_words(sequence, length):
    return Counter(sequence[i : i + length] for i in range(len(sequence) - length + 1))


def tanimoto_of(x, z):
    return sum(x & z) / sum(x | z) if any(x | z) else 1.0


# Kernel, points, and the second way to the same numbers.
CASES = {
    "rbf": (functions.rbf, VECTORS, lambda X, Z: rbf_kernel(X, Z)),
    "gaussian": (lambda X, Z: k.gaussian(X, Z, 0.7), VECTORS, lambda X, Z: rbf_kernel(X, Z, gamma=0.5 / 0.7**2)),
    "laplacian": (lambda X, Z: k.laplacian(X, Z, 1.3), VECTORS, lambda X, Z: laplacian_kernel(X, Z, gamma=1 / 1.3)),
    "matern 3/2": (lambda X, Z: k.matern(X, Z, 0.8), VECTORS, lambda X, Z: Matern(0.8, nu=1.5)(X, Z)),
    "matern 5/2": (lambda X, Z: k.matern(X, Z, 0.8, 2.5), VECTORS, lambda X, Z: Matern(0.8, nu=2.5)(X, Z)),
    "periodic": (
        lambda X, Z: k.periodic(X[:, :1], Z[:, :1], 1.7, 0.9),
        VECTORS,
        lambda X, Z: ExpSineSquared(0.9, 1.7)(X[:, :1], Z[:, :1]),
    ),
    "periodic, several features": (
        lambda X, Z: k.periodic(X, Z, 1.7, 0.9),
        VECTORS,
        lambda X, Z: np.prod([ExpSineSquared(0.9, 1.7)(X[:, [j]], Z[:, [j]]) for j in range(3)], axis=0),
    ),
    "linear": (k.linear, VECTORS, lambda X, Z: by_loop(np.dot, X, Z)),
    "cosine": (
        k.cosine,
        VECTORS,
        lambda X, Z: by_loop(lambda x, z: x @ z / np.linalg.norm(x) / np.linalg.norm(z), X, Z),
    ),
    "polynomial": (
        lambda X, Z: k.polynomial(X, Z, 3, 0.5),
        VECTORS,
        lambda X, Z: polynomial_kernel(X, Z, degree=3, gamma=1.0, coef0=0.5),
    ),
    "chi2": (lambda X, Z: k.chi2(X, Z, 2.0), HISTOGRAMS, lambda X, Z: chi2_kernel(X, Z, gamma=0.5)),
    "additive chi2": (
        k.additive_chi2,
        HISTOGRAMS,
        lambda X, Z: by_loop(lambda x, z: sum(2 * a * b / (a + b) for a, b in zip(x, z, strict=True) if a + b), X, Z),
    ),
    "intersection": (k.intersection, HISTOGRAMS, lambda X, Z: by_loop(lambda x, z: np.minimum(x, z).sum(), X, Z)),
    "tanimoto": (k.tanimoto, BITS, lambda X, Z: by_loop(tanimoto_of, X, Z)),
    "hamming": (k.hamming, BITS, lambda X, Z: by_loop(lambda x, z: np.mean(x == z), X, Z)),
    "spectrum": (
        lambda X, Z: k.spectrum(X, Z, 2),
        WORDS,
        lambda X, Z: by_loop(
            lambda x, z: sum(n * count_words(z, 2)[word] for word, n in count_words(x, 2).items()), X, Z
        ),
    ),
    "spectrum, presence": (
        lambda X, Z: k.spectrum(X, Z, 3, presence=True),
        WORDS,
        lambda X, Z: by_loop(lambda x, z: len(count_words(x, 3).keys() & count_words(z, 3).keys()), X, Z),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_second_way(name):
    function, (X, Z), expected = CASES[name]
    assert_allclose(function(X, Z), expected(X, Z), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_positive_semidefinite_and_symmetric(name):
    function, (X, _), _ = CASES[name]
    K = function(X, X)
    assert_allclose(K, K.T, rtol=1e-14)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-12 * values[-1]


@pytest.mark.parametrize(
    ("profile", "parameters"),
    [
        (functions.gaussian_profile, {"width": 0.3}),
        (functions.laplacian_profile, {"width": 0.02}),
        (functions.matern_profile, {"length": 0.5, "smoothness": 2.5}),
    ],
)
def test_profiles_are_written_where_they_are_wanted(profile, parameters):
    """The same numbers in place, also where exponents are far out of range."""
    distances = np.array([[0.0, 1e-9, 0.5], [14.0, 15.9, 400.0]])
    before, out = distances.copy(), np.empty((2, 3))
    assert profile(distances, **parameters, out=out) is out
    assert_array_equal(out, profile(distances, **parameters))
    assert_array_equal(distances, before)
    if "width" in parameters:
        exponents = -distances / parameters["width"] if profile is functions.laplacian_profile else -distances / 0.18
        # What is smaller than exp(-700) is 0.
        assert_allclose(out, np.exp(exponents), rtol=1e-12, atol=1e-303)
        assert out[1, 2] == 0.0


def test_sequences_shorter_than_the_substrings():
    assert not k.spectrum(["A", "C"], ["ACGT"], 3).any()


class TestDistances:
    D = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])

    def test_the_papers_kernel(self):
        pairs = [self.D[i, j] for i in range(3) for j in range(i)]
        assert k.mean_distance(self.D) == pytest.approx(np.mean(pairs))
        assert_allclose(k.from_distances(self.D), np.exp(-self.D / np.mean(pairs)), rtol=1e-14)

    def test_new_samples_use_the_training_scale(self):
        new = np.array([[1.0, 5.0, 0.5]])
        assert_allclose(k.from_distances(new, scale=k.mean_distance(self.D)), np.exp(-new / 2.0), rtol=1e-14)


REFUSED = {
    "different features": (
        lambda: k.linear(np.ones((2, 3)), np.ones((2, 2))),
        r"Z: .*same features.*\(2, 3\) and \(2, 2\)",
    ),
    "NaN": (lambda: k.gaussian([[np.nan]], [[1.0]], 1.0), r"X: expected finite numbers"),
    "zero width": (
        lambda: k.laplacian([[1.0]], [[1.0]], 0.0),
        r"width: expected a number between 1e-50 and 1e\+50, got 0.0",
    ),
    "smoothness": (lambda: k.matern([[1.0]], [[1.0]], 1.0, 2.0), r"smoothness: expected 1.5 or 2.5, got 2.0"),
    "zero period": (lambda: k.periodic([[1.0]], [[1.0]], 0.0), r"period: .*got 0.0"),
    "negative offset": (lambda: k.polynomial([[1.0]], [[1.0]], 2, -1.0), r"offset: .*got -1.0"),
    "negative histogram": (
        lambda: k.chi2([[1.0, 2.0], [3.0, -1.0]], [[1.0, 1.0]]),
        r"X: expected histograms without negative entries, got -1 in row 1, column 1",
    ),
    "counts as bits": (lambda: k.tanimoto([[0, 2]], [[0, 1]]), r"X: expected fingerprints of 0 and 1, got .*2.0"),
    "one string": (lambda: k.spectrum("GATTACA", ["A"], 1), r"X: expected a list of strings"),
    "numbers as sequences": (lambda: k.spectrum(["A"], [1], 1), r"Z: expected a list of strings"),
    "substrings of length zero": (lambda: k.spectrum(["A"], ["A"], 0), r"length: .*at least 1, got 0"),
    "test distances without a scale": (
        lambda: k.from_distances(np.ones((2, 3))),
        r"distances: .*square.*scale=mean_distance",
    ),
    "unsorted distances": (
        lambda: k.from_distances([[0.0, 1.0], [2.0, 0.0]]),
        r"distances: .*symmetric.*asymmetry of 1",
    ),
    "similarities": (lambda: k.from_distances([[1.0, 0.2], [0.2, 1.0]]), r"distances: .*1 on the diagonal"),
    "negative distances": (lambda: k.from_distances([[-1.0]], 1.0), r"distances: expected no negative entry, got -1"),
    "condensed distances": (lambda: k.from_distances([1.0, 2.0], 1.0), r"distances: .*squareform"),
    "scale by another name": (lambda: k.from_distances([[0.0]], "median"), r"scale: .*got 'median'"),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_with_a_sentence(call, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


def test_distances_of_points_far_from_zero():
    """Times in seconds: squares of 1.7e9 leave no digits for differences."""
    near = RNG.normal(size=(6, 3))
    assert_allclose(functions.rbf(1.7e9 + 1e3 * near, 1.7e9 + 1e3 * near, 1e-6), rbf_kernel(near, gamma=1.0), rtol=1e-6)
    assert KernelBank([KernelSpec("rbf")]).fit_transform(1.7e9 + near).dense().values.max() == 1.0
