"""Kernels of any scale: covariances with all their digits, and a bound that does not fall."""

import warnings
from fractions import Fraction
from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec
from bemkl._numerics.linalg import Cholesky, RootFactor
from bemkl.inference import Block, Gaussian, JointMeans, NewtonMeans, Plain, Priors, Problem, run
from bemkl.inference.pair import NEEDS_ROOT, scale_ratio
from bemkl.kernels import DenseStack


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def root_of(kernels):
    """Return a root of the sum of squared kernels."""
    return Block(DenseStack(kernels), Gaussian(np.zeros(kernels.shape[1])), landmarks=True).kernels.root


SIZES = (1.0, 1e4, 1e8, 1e12)


def exact_inverse(matrix):
    """Invert a matrix of fractions by elimination, and return its determinant too."""
    n = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(n))] for i, row in enumerate(matrix)]
    determinant = Fraction(1)
    for k in range(n):
        pivot = rows[k][k]
        determinant *= pivot
        rows[k] = [value / pivot for value in rows[k]]
        for i in range(n):
            if i != k and rows[i][k]:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows], determinant


def exactly(kernels, diagonal, scale):
    """Return inverse and its log-determinant, and the inverse in fractions, of the precision in exact arithmetic."""
    size = len(diagonal)
    matrix = [[Fraction(0)] * size for _ in range(size)]
    for row in kernels.reshape(-1, size):
        values = [Fraction(float(value)) for value in row]
        matrix = [
            [a + x * y for a, y in zip(line, values, strict=True)] for line, x in zip(matrix, values, strict=True)
        ]
    matrix = [[Fraction(scale) * value for value in line] for line in matrix]
    for d in range(size):
        matrix[d][d] += Fraction(float(diagonal[d]))
    inverse, determinant = exact_inverse(matrix)
    values = np.array([[float(value) for value in line] for line in inverse])
    return values, log(determinant.denominator) - log(determinant.numerator), inverse


def kernels_of(rng, size):
    """Return a huge kernel of rank 1 with entries that have no rounding, and two small ones."""
    line = rng.integers(-8, 9, size=6).astype(float)
    wave = rng.normal(size=(2, 6, 6))
    return np.stack([size * np.outer(line, line), *(wave + wave.transpose(0, 2, 1))])


class TestFactor:
    @pytest.mark.parametrize("size", SIZES)
    def test_equals_exact_arithmetic(self, rng, size):
        kernels, diagonal, scale = kernels_of(rng, size), rng.uniform(0.5, 2.0, size=6), 100.0
        factor = RootFactor.of(root_of(kernels), diagonal, scale)
        inverse, logdet, _ = exactly(kernels, diagonal, scale)
        # The largest rows of the root are products of rounded numbers: what is left of them grows with their size.
        tolerance = 1e-12 + 1e-26 * size**2
        assert_allclose(factor.inverse_diagonal(), inverse.diagonal(), rtol=tolerance)
        assert_allclose(factor.inverse_logdet, logdet, rtol=tolerance)
        white = factor.whitener()(np.eye(6)[None])[0]
        assert_allclose(white @ white.T, inverse, rtol=tolerance, atol=tolerance * inverse.diagonal().max())
        right = rng.normal(size=6)
        assert_allclose(factor.solve(right), inverse @ right, rtol=10 * tolerance, atol=tolerance)

    def test_the_sum_itself_loses_them(self, rng):
        kernels, diagonal = kernels_of(rng, 1e12)[:1], np.ones(6)
        gram = np.einsum("mij,mik->jk", kernels, kernels)
        assert scale_ratio(gram, diagonal, 1.0, 1) > NEEDS_ROOT
        lost = Cholesky.of(gram + np.diag(diagonal), "test").inverse_diagonal()
        inverse, _, _ = exactly(kernels, diagonal, 1.0)
        assert np.abs(lost / inverse.diagonal() - 1.0).max() > 0.1
        factor = RootFactor.of(root_of(kernels), diagonal, 1.0)
        assert_allclose(factor.inverse_diagonal(), inverse.diagonal(), rtol=1e-6)

    def test_equals_the_sum_where_that_is_well(self, rng):
        kernels, diagonal = kernels_of(rng, 1.0), rng.uniform(0.5, 2.0, size=6)
        gram = np.einsum("mij,mik->jk", kernels, kernels)
        assert scale_ratio(gram, diagonal, 1.0, 3) < NEEDS_ROOT
        factor = RootFactor.of(root_of(kernels), diagonal, 1.0)
        plain = Cholesky.of(gram + np.diag(diagonal), "test")
        assert_allclose(factor.inverse_diagonal(), plain.inverse_diagonal(), rtol=1e-12)
        assert_allclose(factor.inverse_logdet, plain.inverse_logdet, rtol=1e-12)

    def test_root_in_several_blocks(self, rng, monkeypatch):
        """Also where there are fewer rows than columns."""
        monkeypatch.setattr("bemkl.inference.rows._BLOCK_BYTES", 8 * 3 * 4 * 2)
        for kernels, shape in ((rng.normal(size=(3, 9, 4)), (4, 4)), (rng.normal(size=(1, 3, 5)), (3, 5))):
            root = root_of(kernels)
            assert root.shape == shape
            assert_allclose(root.T @ root, DenseStack(kernels).gram(), rtol=1e-12, atol=1e-12)


BANKS = {
    "linear": lambda scale: [KernelSpec("linear")],
    "linear and gaussian": lambda scale: [
        KernelSpec("linear", "each"),
        KernelSpec("gaussian", "all", {"width": scale}),
    ],
    "polynomial": lambda scale: [KernelSpec("polynomial", "all", {"degree": [1, 2, 3]})],
}


@pytest.mark.parametrize("scale", [1e-4, 30.0, 3000.0, 1e6])
@pytest.mark.parametrize("bank", BANKS)
@pytest.mark.parametrize("deviation", [1.0, 1e-3, "learn"])
@pytest.mark.parametrize("acceleration", ["newton", None])
def test_the_bound_holds_for_columns_of_any_deviation(rng, scale, bank, deviation, acceleration):
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + 0.3 * rng.normal(size=60)
    kernels = KernelBank(BANKS[bank](scale))
    for factor_tol in (1e-10, None):
        model = BEMKLRegressor(
            kernels,
            intermediate_std=deviation,
            acceleration=acceleration,
            factor_tol=factor_tol,
            max_iter=25,
            tol=None,
        ).fit(scale * X, y)
        # A fall is a warning, and warnings are errors here.
        assert np.isfinite(model.lower_bounds_).all()
        mean, std = model.predict(scale * X, return_std=True)
        assert np.isfinite(mean).all()
        assert (np.isfinite(std) & (std > 0.0)).all()


@pytest.mark.parametrize("pair", [Plain(), JointMeans(), NewtonMeans()])
def test_one_output_among_ordinary_ones_may_need_a_root(rng, pair):
    line = rng.normal(size=40)
    stack = DenseStack(np.stack([1e8 * np.outer(line, line), np.eye(40)]))
    targets = np.column_stack([line, rng.normal(size=40)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(Problem([Block(stack, Gaussian(targets))], Priors(), pair=pair), tol=None, max_iter=20)
    assert (np.diff(result.lower_bounds) > -1e-8).all()


def test_predicted_variances_equal_exact_arithmetic(rng):
    # From sums, those of polynomials of such columns would be thousands of times too small.
    X, new = 3000.0 * rng.normal(size=(12, 3)), 3000.0 * rng.normal(size=(4, 3))
    bank = KernelBank([KernelSpec("polynomial", "all", {"degree": [1, 2]})])
    model = BEMKLRegressor(bank, intermediate_std=0.1, factor_tol=None, max_iter=20, tol=None).fit(X, X[:, 0])
    (fitted,), bank = model._fitted, model._source.bank
    assert fitted.root is not None
    sample, kernels = fitted.posterior.sample, bank.transform(X).dense().values
    _, _, covariance = exactly(kernels, sample.diagonal[0], float(sample.scale[0]))
    stack = bank.transform(new).dense()
    for kernel, found in zip(stack.values, fitted._spread(0).diagonal(stack)[0], strict=True):
        for row, variance in zip(kernel, found, strict=True):
            values = [Fraction(float(value)) for value in row]
            products = [sum(a * b for a, b in zip(line, values, strict=True)) for line in covariance]
            exact = float(sum(a * b for a, b in zip(products, values, strict=True)))
            # Entries of 1e15 leave rounding of 0.1 in the directions that no training sample has.
            assert variance == pytest.approx(exact, rel=0.1)


def test_classes_of_large_columns(rng):
    X = 3000.0 * rng.normal(size=(60, 4))
    model = BEMKLClassifier(KernelBank([KernelSpec("linear")]), intermediate_std="learn", tol=1e-3, max_iter=100).fit(
        X, X[:, 0] > 0.0
    )
    assert (np.diff(model.lower_bounds_) > -1e-6).all()
    assert model.score(X, X[:, 0] > 0.0) > 0.9
