"""LowRank matrices against dense ones: every verb, and whole fits with many more kernels than samples."""

import itertools
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import one_feature_kernels

from bemkl.distributions import Gamma, PointMass
from bemkl.inference import (
    DENSE,
    SPARSE,
    Block,
    Free,
    Gaussian,
    NewtonMeans,
    NewtonWeights,
    Plain,
    Priors,
    Probit,
    Problem,
    matrices,
    predict,
    run,
)
from bemkl.inference.matrices import Dense, LowRank, gram, total
from bemkl.inference.moments import JointCovariance, JointPrecision
from bemkl.inference.pair import PerOutput
from bemkl.kernels import DenseStack

RNG = np.random.default_rng(0)
SIZE = 30


def thin_matrix(rank=4, signs=(1.0, -0.05)):
    factor = RNG.normal(size=(SIZE, rank)) / np.sqrt(SIZE)
    return LowRank(RNG.uniform(0.5, 2.0, size=SIZE), factor, np.resize(signs, rank))


def dense(matrix):
    return Dense(np.asarray(matrix))


class TestVerbs:
    @pytest.fixture(params=["low rank", "dense"])
    def pair(self, request):
        """A matrix in either form, and its numbers."""
        matrix = thin_matrix()
        return (matrix if request.param == "low rank" else dense(matrix)), np.asarray(matrix)

    def test_numbers(self, pair):
        matrix, values = pair
        assert matrix.size == SIZE
        assert_allclose(matrix.diagonal(), values.diagonal(), rtol=1e-14)
        assert_allclose(matrix.trace(), values.trace(), rtol=1e-14)
        assert np.asarray(matrix, dtype=np.float32).dtype == np.float32
        assert_allclose(np.asarray(matrix.times(-2.0)), -2.0 * values, rtol=1e-14)
        assert_allclose(np.asarray(matrix.plus_diagonal(values[0])), values + np.diag(values[0]), rtol=1e-14)
        assert_allclose(np.asarray(matrix.plus_diagonal(3.0)), values + 3.0 * np.eye(SIZE), rtol=1e-14)
        assert_allclose(np.asarray(matrix), values, rtol=0)
        lost = matrix.plus_diagonal(3.0, overwrite=True)
        assert_allclose(np.asarray(lost), values + 3.0 * np.eye(SIZE), rtol=1e-14)

    @pytest.mark.parametrize("shape", [(SIZE,), (SIZE, 2), (3, SIZE, 2)])
    def test_products(self, pair, shape):
        matrix, values = pair
        x = RNG.normal(size=shape)
        assert_allclose(matrix @ x, values @ x, rtol=1e-13, atol=1e-14)

    @pytest.mark.parametrize("form", [lambda matrix: matrix, dense], ids=["low rank", "dense"])
    def test_sums_and_inner_products(self, pair, form):
        matrix, values = pair
        other = thin_matrix(3)
        assert_allclose(np.asarray(matrix + form(other)), values + np.asarray(other), rtol=1e-13, atol=1e-14)
        assert_allclose(np.asarray(total([form(other), matrix])), values + np.asarray(other), rtol=1e-13, atol=1e-14)
        assert_allclose(matrix.inner(form(other)), np.vdot(values, np.asarray(other)), rtol=1e-13)

    def test_inverse(self, pair):
        matrix, values = pair
        inverse, logdet = matrix.inverse_and_logdet("weights")
        assert type(inverse) is type(matrix)
        assert_allclose(np.asarray(inverse), np.linalg.inv(values), rtol=1e-12, atol=1e-14)
        assert_allclose(logdet, -np.linalg.slogdet(values)[1], rtol=1e-13)
        x = RNG.normal(size=SIZE)
        solver = matrix.solver("weights")
        assert_allclose(solver.solve(x), np.linalg.solve(values, x), rtol=1e-12, atol=1e-14)
        assert_allclose(solver.inverse_diagonal(), np.linalg.inv(values).diagonal(), rtol=1e-12)

    def test_squares(self, pair):
        matrix, values = pair
        x = RNG.normal(size=(SIZE, 5))
        parts, weights = matrix.squares("weights")(x)
        assert_allclose(weights @ parts**2, np.einsum("in,ij,jn->n", x, values, x), rtol=1e-12)


class TestForm:
    def test_a_sum_of_products_is_thin_only_where_that_pays(self):
        factor = RNG.normal(size=(SIZE, 4))
        for factors, form in (([factor], LowRank), ([factor, factor], LowRank), ([factor] * 3, Dense)):
            found = gram(factors)
            assert type(found) is form
            assert_allclose(np.asarray(found), len(factors) * factor @ factor.T, rtol=1e-13, atol=1e-14)
        assert type(gram([factor], dense=True)) is Dense

    @pytest.mark.parametrize("rank", [0, 1, SIZE // 3, SIZE])
    def test_inverses_of_any_rank(self, rank):
        matrix = thin_matrix(rank)
        inverse, logdet = matrix.inverse_and_logdet("weights")
        assert isinstance(inverse, LowRank if 3 * rank < SIZE else Dense)
        assert_allclose(np.asarray(inverse), np.linalg.inv(np.asarray(matrix)), rtol=1e-11, atol=1e-13)
        assert_allclose(logdet, -np.linalg.slogdet(np.asarray(matrix))[1], rtol=1e-12)

    def test_columns_that_add_nothing_are_dropped(self):
        matrix = thin_matrix(2)
        again = matrix + matrix.plus_diagonal(1e-3)
        inverse, _ = again.inverse_and_logdet("weights")
        assert inverse.factor.shape[1] == 2

    def test_scales_that_differ_by_many_orders_keep_their_digits(self):
        """As under the sparse prior: precisions of pruned and of used kernels."""
        scale = np.logspace(-6, 6, SIZE)
        matrix = thin_matrix()
        scaled = LowRank(scale**2 * matrix.main, scale[:, None] * matrix.factor, matrix.core)
        inverse, _ = scaled.inverse_and_logdet("weights")
        expected = np.linalg.inv(np.asarray(matrix)) / np.outer(scale, scale)
        assert_allclose(np.asarray(inverse) * np.outer(scale, scale), expected * np.outer(scale, scale), atol=1e-13)


class TestBadInput:
    def test_not_positive_definite(self):
        with pytest.raises(np.linalg.LinAlgError, match=r"weights is not positive definite.* -0.5"):
            LowRank(np.ones(SIZE), np.eye(SIZE)[:, :1], np.array([-1.5])).inverse_and_logdet("weights")

    @pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
    def test_no_positive_diagonal(self, bad):
        with pytest.raises(np.linalg.LinAlgError, match="precision of the weights is not finite"):
            LowRank.of_diagonal(np.array([1.0, bad, 1.0, 1.0])).inverse_and_logdet("weights")


class TestPerOutput:
    def test_outputs_share_matrices(self):
        matrices = PerOutput([thin_matrix(), dense(thin_matrix())], np.array([1, 0, 1]))
        values = np.asarray(matrices)
        assert values.shape == (3, SIZE, SIZE)
        assert_allclose(values[0], values[2])
        x, rows, many = (RNG.normal(size=shape) for shape in ((SIZE,), (3, SIZE), (3, SIZE, 2)))
        assert_allclose(matrices @ x, values @ x, rtol=1e-12, atol=1e-13)
        assert_allclose(matrices.times_rows(rows), np.einsum("lmn,ln->lm", values, rows), rtol=1e-12, atol=1e-13)
        assert_allclose(matrices @ many, values @ many, rtol=1e-12, atol=1e-13)
        assert_allclose(matrices.some(slice(1, 3)) @ many[1:], values[1:] @ many[1:], rtol=1e-12, atol=1e-13)
        assert_allclose(matrices.each(lambda matrix: matrix.trace()), np.trace(values, axis1=1, axis2=2))
        weights = np.array([0.5, 2.0, 1.0])
        assert_allclose(np.asarray(matrices.weighted_sum(weights)), np.tensordot(weights, values, axes=1), rtol=1e-12)
        assert_allclose(np.asarray(matrices.times(2.0)[1]), 2.0 * values[1], rtol=1e-14)


@pytest.mark.parametrize("form", [lambda matrix: matrix, dense], ids=["low rank", "dense"])
def test_biases_are_eliminated(form):
    corner, link = np.array([2.0, 5.0]), 0.1 * RNG.normal(size=(2, SIZE))
    precision = JointPrecision(corner, link, form(thin_matrix(3)))
    values = np.block([[np.diag(corner), link], [link.T, np.asarray(precision.kernels)]])
    covariance, logdet = precision.inverse_and_logdet()
    x = RNG.normal(size=SIZE + 2)
    assert_allclose(np.asarray(covariance), np.linalg.inv(values), rtol=1e-11, atol=1e-13)
    assert_allclose(covariance.diagonal(), np.linalg.inv(values).diagonal(), rtol=1e-12)
    assert_allclose(logdet, -np.linalg.slogdet(values)[1], rtol=1e-13)
    assert_allclose(precision @ x, values @ x, rtol=1e-12, atol=1e-13)
    assert_allclose(covariance @ x, np.linalg.solve(values, x), rtol=1e-11, atol=1e-13)
    solver = precision.solver()
    assert_allclose(solver.solve(x), np.linalg.solve(values, x), rtol=1e-11, atol=1e-13)
    assert_allclose(solver.kernel_variances(), np.linalg.inv(values).diagonal()[2:], rtol=1e-12)
    scale = np.r_[1.0, 1.0, np.full(SIZE, 3.0)]
    assert_allclose(np.asarray(covariance.scaled(3.0)), np.linalg.inv(values) * np.outer(scale, scale), rtol=1e-11)
    assert isinstance(JointCovariance.independent(np.ones(4), 1).kernels, LowRank)


def test_biases_are_eliminated_in_place():
    matrix = thin_matrix(3)
    precision, lost, lost_too = (
        JointPrecision(np.array([2.0]), np.full((1, SIZE), 0.1), dense(matrix)) for _ in range(3)
    )
    covariance, logdet = precision.inverse_and_logdet()
    found, found_logdet = lost.inverse_and_logdet(overwrite=True)
    assert np.shares_memory(found.kernels.values, lost.kernels.values)
    assert found_logdet == logdet
    assert_array_equal(np.asarray(found), np.asarray(covariance))
    x, solver = RNG.normal(size=SIZE + 1), lost_too.solver(overwrite=True)
    assert_array_equal(solver.solve(x), precision.solver().solve(x))
    assert_array_equal(solver.kernel_variances(overwrite=True), precision.solver().kernel_variances())


# Enough kernels that factors stay thin, whatever the outputs add in six sweeps.
N_KERNELS = 400
STRATEGIES = {"plain": (Plain(), Free()), "newton": (NewtonMeans(), NewtonWeights())}
LIKELIHOODS = {
    "binary": lambda score: Probit(np.where(score[:, :1] > 0.0, 1.0, -1.0)),
    "multiclass": lambda score: Probit(np.where(score > 0.0, 1.0, -1.0)),
    "regression": lambda score: Gaussian(score[:, :1]),
    "several responses": lambda score: Gaussian(score),
}


@pytest.mark.parametrize(
    ("strategy", "likelihood", "prior", "intermediate"),
    list(itertools.product(STRATEGIES, LIKELIHOODS, [DENSE, SPARSE], [PointMass.from_std(0.5), Gamma(2.0, 1.0)])),
)
def test_fits_are_those_of_dense_matrices(monkeypatch, strategy, likelihood, prior, intermediate):
    """Bound, weights and predictions within 1e-8, all along the path."""
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(8, N_KERNELS)), rng.normal(size=(4, N_KERNELS))
    query = DenseStack(one_feature_kernels(new, X))
    score = X[:, :3] @ rng.normal(size=(3, 3))
    pair, weights = STRATEGIES[strategy]
    block = Block(DenseStack(one_feature_kernels(X)), LIKELIHOODS[likelihood](score))
    problem = Problem([block], Priors(kernel=prior, intermediate=intermediate), pair=pair, weights=weights)
    results = []
    for few in (1, np.inf):
        monkeypatch.setattr(matrices, "_FEW", few)
        result = run(problem, max_iter=6, tol=None)
        assert isinstance(result.state.weights.covariance.kernels, LowRank if few == 1 else Dense)
        assert isinstance(result.state.blocks[0].intermediate.spread.covariance[0], LowRank if few == 1 else Dense)
        results.append((result, predict(problem, result.state, query)))
    (found, prediction), (expected, expected_prediction) = results
    assert_allclose(found.lower_bounds, expected.lower_bounds, rtol=1e-8)
    weights, expected_weights = found.state.weights, expected.state.weights
    size = np.abs(expected_weights.mean).max()
    assert_allclose(weights.mean, expected_weights.mean, rtol=1e-8, atol=1e-8 * size)
    assert_allclose(weights.covariance.diagonal(), expected_weights.covariance.diagonal(), rtol=1e-8)
    for name in ("mean", "variance", "intermediate_mean", "intermediate_variance"):
        values = getattr(expected_prediction, name)
        assert_allclose(getattr(prediction, name), values, rtol=1e-8, atol=1e-8 * np.abs(values).max())


def with_kernels(count, seed):
    """Return a problem with six samples and so many kernels."""
    X = np.random.default_rng(seed).normal(size=(6, count))
    block = Block(DenseStack(one_feature_kernels(X)), Probit(np.where(X[:, 0] > 0.0, 1.0, -1.0)))
    return Problem([block], pair=NewtonMeans(), weights=NewtonWeights())


def test_a_plain_state_of_one_form_goes_on_in_the_other(monkeypatch):
    """A warm start does not ask how its matrices were kept."""
    problem = with_kernels(N_KERNELS, seed=2)
    through = run(problem, max_iter=4, tol=None)
    half = run(problem, max_iter=2, tol=None).state
    monkeypatch.setattr(matrices, "_FEW", np.inf)
    assert_allclose(run(problem, half, max_iter=2, tol=None).lower_bound, through.lower_bound, rtol=1e-10)


def test_memory_does_not_hold_all_pairs_of_kernels():
    problem = with_kernels(4000, seed=3)
    tracemalloc.start()
    run(problem, max_iter=4, tol=None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.25 * 8 * 4000**2
