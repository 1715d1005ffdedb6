"""Factorised and nonnegative weights: slow references, the bound, limits, sampling, planted combinations."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import VARIANTS, assert_no_update_falls, one_feature_kernels, rows_of, total, twin
from reference import SlowFactorized, SlowNonnegative
from sampling import log_ratio
from scipy.stats import truncnorm

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec
from bemkl.distributions import Gamma, PointMass
from bemkl.inference import (
    SPARSE,
    Block,
    Factorized,
    Free,
    Gaussian,
    JointMeans,
    NewtonMeans,
    Nonnegative,
    Plain,
    Priors,
    Probit,
    Problem,
    SpikeSlab,
    initialise,
    lower_bound_terms,
    run,
    sweep,
)
from bemkl.inference.rows import put
from bemkl.inference.state import look_again
from bemkl.inference.weights.free import precision_of, pull_of
from bemkl.inference.weights.nonnegative import nonnegative_weights
from bemkl.kernels import DenseStack, gaussian

STRATEGIES = {"factorized": (Factorized(), SlowFactorized), "nonnegative": (Nonnegative(), SlowNonnegative)}


def with_start(case, strategy):
    """Give both versions the strategy's own starting weights."""
    problem = case.problem
    weights = strategy.start(problem.n_kernels, problem.n_outputs, problem.priors, None)
    case.slow_state.be, case.slow_state.Sbe = weights.mean.copy(), np.asarray(weights.covariance)
    if hasattr(weights, "location"):
        case.slow_state.loc, case.slow_state.dev = weights.location, weights.deviation
    return replace(case.state, weights=weights)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_against_the_slow_reference(strategy, name):
    weights, slow_model = STRATEGIES[strategy]
    case = twin(VARIANTS[name], slow_model=slow_model, weights=weights)
    state = with_start(case, weights)
    for _ in range(4):
        state = sweep(case.problem, state)
        case.slow.sweep(case.slow_state)
    assert_allclose(state.weights.mean, case.slow_state.be, rtol=1e-8, atol=1e-10)
    assert_allclose(np.asarray(state.weights.covariance), case.slow_state.Sbe, rtol=1e-8, atol=1e-12)
    assert_allclose(total(lower_bound_terms(case.problem, state)), case.slow.bound(case.slow_state), rtol=1e-9)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize(
    "weights", [Factorized(), Factorized(bold=True), Nonnegative(), Nonnegative(n_passes=1)], ids=str
)
@pytest.mark.parametrize("pair", [Plain(), JointMeans()], ids=["plain", "joint"])
def test_no_single_update_lowers_the_bound(name, weights, pair):
    """Bold steps are the engine's to judge."""
    problem = twin(VARIANTS[name], pair=pair, weights=weights.cautious).problem
    assert_no_update_falls(problem, 12)
    if weights.cautious is not weights:
        bounds = run(replace(problem, weights=weights), max_iter=30, tol=None).lower_bounds
        assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()


@pytest.mark.parametrize("name", ["binary", "regression", "mixed tasks"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_bound_by_monte_carlo(strategy, name):
    problem = twin(VARIANTS[name], weights=STRATEGIES[strategy][0]).problem
    state = run(problem, max_iter=5, tol=None).state
    draws = log_ratio(problem, state, 40_000, np.random.default_rng(0))
    expected = total(lower_bound_terms(problem, state))
    assert abs(draws.mean() - expected) < 3.0 * draws.std() / np.sqrt(len(draws))


class TestFactorized:
    def test_means_are_those_of_the_joint_factor(self):
        problem = twin(VARIANTS["multiclass, shared weights"]).problem
        state = run(problem, max_iter=5, tol=None).state
        evidence = state.evidence()
        found, expected = (
            strategy.steps["kernel_weights"](state.weights, evidence, problem.priors)
            for strategy in (Factorized(), Free())
        )
        assert_allclose(found.mean, expected.mean, rtol=1e-9)
        precision = np.linalg.inv(np.asarray(expected.covariance))
        assert_allclose(found.covariance.diagonal(), 1.0 / precision.diagonal(), rtol=1e-9)
        free, apart = (
            total(lower_bound_terms(problem, replace(state, weights=weights))) for weights in (expected, found)
        )
        assert apart < free  # a smaller family

    def test_bold_steps_end_where_careful_ones_do(self):
        problem = twin(VARIANTS["binary"], pair=JointMeans(), weights=Factorized()).problem
        careful = run(problem, max_iter=3000, tol=None)
        bold = run(replace(problem, pair=NewtonMeans(), weights=Factorized(bold=True)), max_iter=300, tol=None)
        assert_allclose(bold.lower_bound, careful.lower_bound, rtol=1e-9)
        assert_allclose(bold.state.weights.mean, careful.state.weights.mean, rtol=1e-4, atol=1e-7)


class TestNonnegative:
    def test_far_from_zero_it_is_the_factorised_normal(self):
        ones = np.ones(3)
        precisions = Gamma(1.0, ones[:1]), Gamma(1.0, ones)
        weights = nonnegative_weights((ones[:1], ones[:1]), (40.0 * ones, 1.1 * ones), precisions, [1])
        assert_allclose(weights.mean[1:], 40.0)
        assert_allclose(weights.covariance.diagonal()[1:], 1.1**2)
        assert_allclose(weights.logdet, 3 * np.log(1.1**2), rtol=1e-12)

    @pytest.mark.parametrize("prior", [Gamma(1.0, 1.0), SPARSE])
    def test_no_weight_is_ever_negative(self, prior):
        """Not even where the intermediate outputs of a kernel speak for the opposite of the labels."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 4))
        K = np.stack([gaussian(x[:, None], x[:, None], 1.0) for x in X.T])
        problem = Problem([Block(DenseStack(K), Probit(np.sign(X[:, 0])))], Priors(kernel=prior), weights=Nonnegative())
        state = initialise(problem)
        for _ in range(20):
            state = sweep(problem, state)
            assert state.weights.mean[1:].min() > 0.0
        here, against = state.blocks[0], np.array([-1.0, 1.0, 1.0, 1.0])[:, None]
        rows, _ = here.rows.run(put, here.sample.mean, against * rows_of(here).mean)
        rows, (means, targets) = rows.run(look_again, state.weights.moments(0))
        intermediate = replace(here.intermediate, sums=means)
        turned = replace(state, blocks=(replace(here, intermediate=intermediate, rows=rows, targets=targets),))
        free, kept = (
            strategy.steps["kernel_weights"](state.weights, turned.evidence(), problem.priors).mean[1:]
            for strategy in (Factorized(), Nonnegative())
        )
        assert free[0] < 0.0 < kept.min()

    def test_planted_combination(self):
        """Two of six kernels carry the responses, one three times as much."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-2.0, 2.0, size=(120, 6))
        K = np.stack([gaussian(x[:, None], x[:, None], 0.6) for x in X.T])
        a = rng.normal(size=120)
        y = 3.0 * K[1] @ a + 1.0 * K[4] @ a
        y = (y - y.mean()) / y.std() + 0.05 * rng.normal(size=120)
        priors = Priors(kernel=SPARSE, intermediate=PointMass.from_std(0.1))
        problem = Problem([Block(DenseStack(K), Gaussian(y))], priors)
        state = run(replace(problem, weights=Nonnegative(), pair=JointMeans()), max_iter=300, tol=None).state
        weights = state.weights.mean[1:] / state.weights.mean[1:].sum()
        assert set(np.argsort(-weights)[:2]) == {1, 4}
        assert_allclose(weights[[1, 4]], [0.75, 0.25], atol=0.1)

    def test_moments_against_a_gibbs_sampler(self):
        """
        Conditional on everything else, the exact posterior is a truncated multivariate normal. The factorised form has
        its means within 10 % of the largest one here, and variances that are too small, down to half.
        """
        rng = np.random.default_rng(0)
        problem = twin(VARIANTS["binary"], weights=Nonnegative(n_passes=50)).problem
        state = run(problem, max_iter=20, tol=None).state
        evidence = state.evidence()
        found = Nonnegative(n_passes=200).steps["kernel_weights"](state.weights, evidence, problem.priors)
        precision, pull = precision_of(state.weights, evidence), pull_of(evidence)
        A = np.block([[np.diag(precision.corner), precision.link], [precision.link.T, np.asarray(precision.kernels)]])
        draws = gibbs(A, pull, 1, 20_000, rng)
        mean, variance = draws.mean(axis=0), draws.var(axis=0)
        assert np.abs(found.mean - mean).max() < 0.1 * np.abs(mean).max()
        ratio = found.covariance.diagonal() / variance
        assert (ratio < 1.1).all()
        assert (ratio > 0.4).all()

    @pytest.mark.parametrize("n_passes", [0, 1.5])
    def test_bad_input(self, n_passes):
        with pytest.raises(ValueError, match="n_passes: expected"):
            Nonnegative(n_passes=n_passes)


def gibbs(A, pull, n_free, size, rng):
    """Draw from a normal distribution with precision A, entries from n_free on kept positive."""
    x, draws = np.ones(len(A)), np.empty((size, len(A)))
    uniform = rng.uniform(size=(size, len(A)))
    for i in range(size):
        for m in range(len(A)):
            location = (pull[m] - A[m] @ x + A[m, m] * x[m]) / A[m, m]
            deviation = A[m, m] ** -0.5
            lower = -location / deviation if m >= n_free else -np.inf
            x[m] = location + deviation * truncated(uniform[i, m], lower)
        draws[i] = x
    return draws


def truncated(u, lower):
    """Return the quantile of a standard normal variable kept above a threshold."""
    return float(truncnorm._ppf(u, lower, np.inf))


@pytest.mark.parametrize("weights", [Factorized(bold=True), Nonnegative(), SpikeSlab()], ids=str)
def test_thousands_of_kernels_take_no_square_matrix(weights):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 500))
    problem = Problem(
        [Block(DenseStack(one_feature_kernels(X)), Probit(np.sign(X[:, 0])))], weights=weights, pair=NewtonMeans()
    )
    state = run(problem, max_iter=3, tol=None).state
    assert state.weights.moments(0).covariance.factor.shape[1] == 0
    assert state.blocks[0].intermediate.spread.covariance[0].factor.shape[1] == 1


class TestEstimators:
    X = np.random.default_rng(0).normal(size=(60, 3))
    Y = np.where(X[:, 0] * X[:, 1] > 0.0, "same", "different")
    BANK = KernelBank([KernelSpec("gaussian", on, {"width": 1.0}) for on in ([0, 1], [0, 2], [1, 2], [2])])

    @pytest.mark.parametrize("weights", ["free", "nonnegative", "factorized", "spike_slab"])
    @pytest.mark.parametrize("acceleration", ["newton", None])
    def test_classifier(self, weights, acceleration):
        model = BEMKLClassifier(self.BANK, weights=weights, acceleration=acceleration, max_iter=50, tol=None)
        model.fit(self.X, self.Y)
        assert model.score(self.X, self.Y) > 0.9
        assert np.argmax(np.abs(model.kernel_weights_)) == 0
        assert hasattr(model, "kernel_inclusion_") == (weights == "spike_slab")

    @pytest.mark.parametrize("weights", ["free", "nonnegative", "factorized", "spike_slab"])
    def test_regressor(self, weights):
        y = np.sin(self.X[:, 0] * self.X[:, 1])
        model = BEMKLRegressor(self.BANK, weights=weights, max_iter=100, tol=None).fit(self.X, y)
        assert model.score(self.X, y) > 0.5
        assert 0 in model.selected_kernels_

    def test_inclusion(self):
        model = BEMKLClassifier(self.BANK, weights="spike_slab").fit(self.X, self.Y)
        assert_array_equal(model.selected_kernels_, np.flatnonzero(model.kernel_inclusion_ > 0.5))
        assert model.kernel_inclusion_[0] > 0.9
        assert not hasattr(model.set_params(weights="free").fit(self.X, self.Y), "kernel_inclusion_")
        classes = np.digitize(self.X[:, 0], [-0.5, 0.5])
        separate = BEMKLClassifier(self.BANK, weights="spike_slab", multiclass="ovr").fit(self.X, classes)
        assert separate.kernel_inclusion_.shape == (3, 4)
        table = separate.summary().reset_index()
        for row in range(12):
            label, name = table["class"][row], table["kernel"][row]
            expected = separate.kernel_inclusion_[int(label), separate.kernel_names_.index(name)]
            assert_allclose(table["inclusion"][row], expected, atol=1e-4)

    def test_a_warm_start_keeps_the_family(self):
        model = BEMKLClassifier(self.BANK, weights="nonnegative", warm_start=True).fit(self.X, self.Y)
        with pytest.raises(ValueError, match="warm_start: the last fit was of another problem"):
            model.set_params(weights="free").fit(self.X, self.Y)
        model.set_params(weights="nonnegative").fit(self.X, self.Y)
