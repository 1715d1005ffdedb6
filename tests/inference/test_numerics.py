"""Numbers that hold in the tails and at the edges of what a user can pass."""

import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from golden_cases import FOLDER
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from problems import assert_no_update_falls, located

from bemkl._numerics.linalg import Cholesky, add_products, add_times, inverse_and_logdet
from bemkl._numerics.special import inverse_mills, log_ndtr, truncated_excess, truncated_variance
from bemkl.distributions import Gamma, PointMass, TruncatedNormal
from bemkl.inference import (
    DENSE,
    SPARSE,
    Block,
    Gaussian,
    JointMeans,
    Plain,
    Priors,
    Probit,
    Problem,
    initialise,
    predict,
    run,
    sweep,
)
from bemkl.kernels import DenseStack, gaussian


class TestTruncatedNormal:
    def test_table_of_sixty_digit_values(self):
        """Full double precision to a depth of 300 standard deviations; the table is rounded to doubles itself."""
        with np.load(FOLDER / "truncated_normal_moments.npz") as table:
            factors = [
                TruncatedNormal(loc, y, float(margin))
                for loc, y, margin in zip(table["loc"], table["y"], table["margin"], strict=True)
            ]
            for key, name in (("mean", "mean"), ("var", "variance"), ("entropy", "entropy")):
                found = np.array([getattr(factor, name) for factor in factors])
                assert_allclose(found, table[key], rtol=1e-13, err_msg=key)
            found = np.array([factor.log_mass for factor in factors])
            assert_allclose(found, table["log_normalization"], rtol=1e-13, atol=1e-80)

    @settings(deadline=None, derandomize=True)
    @given(location=st.floats(-1e6, 1e6), sign=st.sampled_from([-1.0, 1.0]), margin=st.floats(0.0, 10.0))
    def test_mean_is_on_the_right_side(self, location, sign, margin):
        factor = TruncatedNormal(np.array([location]), np.array([sign]), margin)
        assert sign * factor.mean[0] > margin
        assert 0.0 < factor.variance[0] <= 1.0

    def test_gradient_of_log_mass(self):
        t = np.concatenate([np.linspace(-40.0, 8.0, 97), [-50.0, 30.0]])
        step = 1e-5
        slope = (log_ndtr(t + step) - log_ndtr(t - step)) / (2 * step)
        assert_allclose(inverse_mills(t), slope, rtol=1e-7, atol=1e-12)

    def test_branches_meet(self):
        t = np.array([-4.0 - 1e-13, -4.0 + 1e-13])
        for function in (truncated_excess, truncated_variance):
            below, above = function(t)
            assert_allclose(below, above, rtol=1e-11)


class TestInverse:
    def test_graded_diagonal(self):
        """Precisions over 20 orders of magnitude keep their digits."""
        rng = np.random.default_rng(0)
        scale = np.logspace(-10, 10, 12)
        correlation = np.eye(12) + 0.05 * (A := rng.normal(size=(12, 12))) @ A.T
        matrix = correlation * np.sqrt(scale)[:, None] * np.sqrt(scale)
        inverse, logdet = inverse_and_logdet(matrix, "weights")
        expected = np.linalg.inv(correlation) / np.sqrt(scale)[:, None] / np.sqrt(scale)
        assert_allclose(inverse, expected, rtol=1e-10)
        assert_allclose(logdet, -np.linalg.slogdet(correlation)[1] - np.log(scale).sum(), atol=1e-10)
        factor, x = Cholesky.of(matrix, "weights"), rng.normal(size=12) / np.sqrt(scale)
        assert_allclose(factor.inverse_diagonal(), inverse.diagonal(), rtol=1e-12)
        assert_allclose(factor.solve(matrix @ x), x, rtol=1e-10)

    @pytest.mark.parametrize("size", [1, 64, 65, 127, 128, 129, 300])
    def test_blocks_of_any_size(self, size):
        """Triangles are inverted by halves, and the half that LAPACK leaves out is copied block by block."""
        A = np.random.default_rng(size).normal(size=(size, size))
        matrix = A @ A.T + size * np.eye(size)
        inverse, _ = inverse_and_logdet(matrix, "weights")
        assert_array_equal(inverse, inverse.T)
        assert_allclose(inverse @ matrix, np.eye(size), atol=1e-13)
        factor = Cholesky.of(matrix, "weights")
        before, diagonal = factor.factor.copy(), factor.inverse_diagonal()
        assert_allclose(diagonal, inverse.diagonal(), rtol=1e-12)
        assert_array_equal(factor.factor, before)
        assert_array_equal(factor.inverse_diagonal(overwrite=True), diagonal)

    @pytest.mark.parametrize("size", [5, 300])
    @pytest.mark.parametrize("rank", ["full", "half"])
    def test_a_matrix_that_may_be_lost(self, size, rank):
        """The same numbers in its place, also where the first factor fails and another is tried."""
        columns = np.random.default_rng(0).normal(size=(size, size if rank == "full" else size // 2))
        matrix = columns @ columns.T + np.diag(np.full(size, 1e-3 if rank == "full" else 0.0))
        (expected, logdet), lost = inverse_and_logdet(matrix, "weights"), matrix.copy()
        inverse, same = inverse_and_logdet(lost, "weights", overwrite=True)
        assert_array_equal(inverse, expected)
        assert same == logdet
        assert np.shares_memory(inverse, lost)
        indefinite = np.full((size, size), 2.0) - np.eye(size)
        with pytest.raises(np.linalg.LinAlgError, match="smallest eigenvalue is -1"):
            Cholesky.of(indefinite, "weights", overwrite=True)

    @pytest.mark.parametrize("shape", [(7,), (1, 7), (2, 3, 7)])
    def test_roots(self, shape):
        """Squared lengths after a product with a root are quadratic forms; what is multiplied stays as it was."""
        A = np.random.default_rng(0).normal(size=(7, 7))
        matrix, rows = A @ A.T + np.diag(10.0 ** np.arange(7)), np.random.default_rng(1).normal(size=shape)
        factor, before = Cholesky.of(matrix, "weights"), rows.copy()
        white = factor.whitener()(rows)
        assert white.shape == shape
        assert_allclose(np.sum(white**2, axis=-1), np.sum(rows * (rows @ np.linalg.inv(matrix)), axis=-1), rtol=1e-11)
        columns = rows.reshape(-1, 7).T
        rooted = factor.root_times(columns)
        assert_allclose(np.sum(rooted**2, axis=0), np.sum(columns * (matrix @ columns), axis=0), rtol=1e-12)
        assert_array_equal(rows, before)

    def test_singular_to_rounding(self):
        column = np.linspace(1.0, 2.0, 30)[:, None]
        inverse, logdet = inverse_and_logdet(column @ column.T, "weights")
        assert np.isfinite(inverse).all()
        assert np.isfinite(logdet)

    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            (np.array([[1.0, 2.0], [2.0, 1.0]]), "precision of the weights .* smallest eigenvalue is -1"),
            (np.array([[1.0, np.nan], [np.nan, 1.0]]), "not finite"),
            (np.eye(300) + np.nan * (np.eye(300, k=-290) + np.eye(300, k=290)), "not finite"),
            (np.where(np.eye(200, k=3) + np.eye(200, k=-3) > 0.0, -np.inf, np.eye(200)), "not finite"),
            (np.diag([1.0, -1.0]), "no positive diagonal"),
        ],
    )
    def test_refusals(self, matrix, message):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            inverse_and_logdet(matrix, "weights")


def test_groups_of_outputs_bound_the_memory():
    """Forty outputs of one kernel are forty groups; only one group's covariance is held at a time."""
    rng = np.random.default_rng(0)
    K = gaussian(X := rng.normal(size=(200, 2)), X, 1.0)[None]
    problem = Problem([Block(DenseStack(K), Probit(rng.choice([-1.0, 1.0], size=(200, 40))))])
    state = initialise(problem)
    tracemalloc.start()
    sweep(problem, state)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * K.nbytes  # forty covariances alone are 40 times the kernel


def awkward_kernels(n_samples=24):
    """Nearly diagonal, smooth, nearly constant, duplicated, zero, constant and almost duplicated kernels."""
    X = np.random.default_rng(0).normal(size=(n_samples, 3))
    base = [gaussian(X, X, width) for width in (0.1, 1.0, 10.0, 1000.0)]
    extra = [base[1], np.zeros_like(base[0]), np.ones_like(base[0]), base[2] + 1e-9]
    return np.stack(base + extra), X


@pytest.mark.parametrize("pair", [Plain(), JointMeans()], ids=["plain", "joint"])
@pytest.mark.parametrize("deviation", [1e-3, 1.0, 1e3, None])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_extreme_scales(scale, deviation, pair):
    """σ_g from 1e-3 to 1e3, kernels 1e-3 to 1e3, margins 0 and 10, sparse and dense priors: finite, and never down."""
    K, X = awkward_kernels()
    labels = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    likelihoods = [Probit(labels, margin=0.0), Probit(labels, margin=10.0), Gaussian(100.0 * X[:, 0])]
    intermediate = Gamma(1.0, 1.0) if deviation is None else PointMass.from_std(deviation)
    for likelihood, kernel, sample in itertools.product(likelihoods, (DENSE, SPARSE), (DENSE, SPARSE)):
        priors = Priors(sample=sample, kernel=kernel, intermediate=intermediate)
        problem = Problem([Block(DenseStack(scale * K), likelihood)], priors, pair=pair)
        state = assert_no_update_falls(problem, 5, initialise(problem))
        found = predict(problem, state, DenseStack(scale * K[:, :3]))
        assert np.isfinite(found.mean).all()
        assert (found.variance > 0.0).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("deviation", [1e-3, 1e-2])
def test_nearly_singular_kernels_with_a_small_deviation(seed, deviation):
    """Condition numbers of 1e10 in q(a): a fall is below 1e-10 of the size of the terms, as everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 2))
    K = np.stack([gaussian(X, X, width) for width in rng.uniform(0.5, 20.0, size=10)])
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=100) > 0.0, 1.0, -1.0)
    priors = Priors(intermediate=PointMass.from_std(deviation))
    for pair in (Plain(), JointMeans()):
        problem = Problem([Block(DenseStack(K), Probit(y))], priors, pair=pair)
        assert_no_update_falls(problem, 8, initialise(problem))


@pytest.mark.parametrize("score", [-50.0, 50.0])
def test_a_mislabelled_outlier_stays_labelled(score):
    """A sample 50 deviations on the wrong side keeps its label and its full pull (derivation, erratum 4)."""
    K, X = awkward_kernels()
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    likelihood = Probit(y, margin=1.0)
    problem = Problem([Block(DenseStack(K), likelihood)])
    location = np.where(y * score > 0.0, -score, score)[None, :] * np.where(np.arange(len(y)) == 3, 1.0, 0.01)
    targets = likelihood.restored(location)
    assert (y * targets.target > 1.0).all()
    assert np.isfinite(targets.scores.log_mass).all()
    state = initialise(problem)
    state = replace(state, blocks=(located(state.blocks[0], location),))
    bounds = run(problem, state, max_iter=30, tol=None).lower_bounds
    assert np.isfinite(bounds).all()
    assert np.diff(bounds).min() >= -1e-10 * np.abs(bounds).max()


@pytest.mark.parametrize("mean", [-50.0, 50.0])
@pytest.mark.parametrize("rule", ["exact", "paper"])
def test_probabilities_of_extreme_scores(mean, rule):
    likelihood = Probit([1.0, -1.0], margin=10.0)
    found = likelihood.predict(PointMass(1.0), np.array([[mean]]), np.array([[0.0]]), rule).probability
    assert_allclose(found, 1.0 if mean > 0.0 else 0.0, atol=1e-12)
    assert np.isfinite(found).all()


def test_a_zero_kernel_gets_no_weight():
    K, X = awkward_kernels()
    problem = Problem([Block(DenseStack(K), Gaussian(X[:, 0]))], Priors(kernel=SPARSE))
    weights = run(problem, max_iter=200, tol=None).state.weights
    assert abs(weights.mean[1 + 5]) < 1e-6


def test_duplicated_kernels_share_their_weight():
    K, X = awkward_kernels()
    problem = Problem([Block(DenseStack(K[[0, 1, 1, 2]]), Gaussian(X[:, 0]))])
    e = run(problem, max_iter=50, tol=None).state.weights.mean[1:]
    assert_allclose(e[1], e[2], rtol=1e-8)


def test_single_precision_kernels_are_double_precision_arithmetic():
    """A float32 stack keeps its dtype, and gives to the last digits what its values give in float64."""
    K, X = awkward_kernels()
    single = K.astype(np.float32)
    results = []
    for kernels in (single, single.astype(np.float64)):
        stack = DenseStack(kernels)
        assert stack.values.dtype == kernels.dtype
        problem = Problem([Block(stack, Probit(np.where(X[:, 0] > 0.0, 1.0, -1.0)))])
        result = run(problem, max_iter=20, tol=None)
        results.append((result, predict(problem, result.state, DenseStack(kernels[:, :4]))))
    (left, left_prediction), (right, right_prediction) = results
    assert_allclose(left.lower_bounds, right.lower_bounds, rtol=1e-11)
    assert_allclose(left_prediction.probability, right_prediction.probability, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("turned", [False, True])
def test_sums_in_place(dtype, turned):
    """Whatever the order in memory and the precision, the array itself changes."""
    rng = np.random.default_rng(0)
    total = rng.normal(size=(2, 3, 4)).astype(dtype)
    total = np.asfortranarray(total) if turned else total
    part, factors = rng.normal(size=(2, 4, 3)).transpose(0, 2, 1), np.array([2.0, 0.0])
    expected = total + factors[:, None, None] * part
    add_times(total, factors, part)
    assert_allclose(total, expected, rtol=1e-6 if dtype == np.float32 else 1e-15)


@pytest.mark.parametrize("order", ["C", "F"])
def test_products_are_added_in_place(order):
    rng = np.random.default_rng(0)
    total, left, right = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3)), rng.normal(size=(2, 4))
    expected = total + left[:, :, None] * right[:, None, :]
    total = np.asarray(total, order=order)
    add_products(total, left, right)
    assert_allclose(total, expected, rtol=1e-14)
