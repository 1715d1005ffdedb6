"""Weights around common ones: against a dense inverse, against sampling, and both limits."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import assert_no_update_falls, random_kernels, rows_of
from scipy.stats import gamma as gamma_distribution
from scipy.stats import multivariate_normal, norm

from bemkl import BEMKLClassifier, KernelBank, KernelSpec
from bemkl.distributions import Gamma, PointMass
from bemkl.inference import (
    Block,
    Free,
    Gaussian,
    JointMeans,
    NewtonMeans,
    Plain,
    Pooled,
    Priors,
    Probit,
    Problem,
    predict,
    run,
    sweep,
)
from bemkl.inference.newton.steps import beyond
from bemkl.inference.rows import predictor
from bemkl.kernels import DenseStack

PRIORS = Priors(intermediate=PointMass.from_std(0.5))


def fixed(precision):
    """A prior that holds a precision where it is."""
    return Gamma(1e6, precision / 1e6)


def blocks(seed=0, sizes=(14, 11, 9), outputs=(1, 2, 1)):
    """Classification, classification with two outputs, regression."""
    rng, made = np.random.default_rng(seed), []
    for t, (n, count) in enumerate(zip(sizes, outputs, strict=True)):
        K, X, _ = random_kernels(rng, n)
        score = X @ rng.normal(size=(2, count)) + 0.2 * rng.normal(size=(n, count))
        likelihood = Gaussian(score) if t == 2 else Probit(np.where(score > 0.0, 1.0, -1.0))
        made.append(Block(DenseStack(K), likelihood))
    return made


def full_precision(problem, weights, evidence):
    """Precision and linear term of (e_0, b_1, e_1, b_2, e_2, ...), entry by entry."""
    P, kappa, omega = problem.n_kernels, weights.pool_precision.mean, weights.kernel_precision.mean
    size = P + sum(count + P for count in problem.n_outputs)
    A, p = np.zeros((size, size)), np.zeros(size)
    A[:P, :P] = np.diag(omega + len(evidence) * kappa)
    first, bias = P, 0
    for block, count in zip(evidence, problem.n_outputs, strict=True):
        b, e = slice(first, first + count), slice(first + count, first + count + P)
        A[b, b] = np.diag(weights.bias_precision.mean[bias : bias + count] + block.bias_precision)
        A[b, e] = block.bias_kernel_precision
        A[e, b] = A[b, e].T
        A[e, e] = np.asarray(block.kernel_precision) + np.diag(kappa)
        A[e, :P] = A[:P, e] = -np.diag(kappa)
        p[b], p[e] = block.bias_pull, block.kernel_pull
        first, bias = first + count + P, bias + count
    return A, p


def test_against_a_dense_inverse():
    problem = Problem(blocks(), PRIORS, weights=Pooled())
    state = run(problem, max_iter=3, tol=None).state
    evidence = state.evidence()
    found = problem.weights.steps["kernel_weights"](state.weights, evidence, problem.priors)
    A, p = full_precision(problem, state.weights, evidence)
    S, P = np.linalg.inv(A), problem.n_kernels
    mean, first = S @ p, P
    assert_allclose(found.centre, mean[:P], rtol=1e-9)
    assert_allclose(found.centre_variance, np.diag(S)[:P], rtol=1e-9)
    assert_allclose(found.logdet, np.linalg.slogdet(S)[1], rtol=1e-10)
    for t, count in enumerate(problem.n_outputs):
        here = slice(first, first + count + P)
        assert_allclose(found.means[t], mean[here], rtol=1e-8, atol=1e-10)
        assert_allclose(np.asarray(found.covariances[t]), S[here, here], rtol=1e-8, atol=1e-10)
        assert_allclose(found.centre_covariance[t], np.diag(S[first + count : first + count + P, :P]), rtol=1e-8)
        first += count + P


@pytest.mark.parametrize("pair", [Plain(), JointMeans()], ids=["plain", "joint"])
def test_no_single_update_lowers_the_bound(pair):
    assert_no_update_falls(Problem(blocks(1), PRIORS, pair=pair, weights=Pooled()), 25)


def test_bound_by_monte_carlo():
    """The weights' terms are the expectation of log p − log q over their factors."""
    problem = Problem(blocks(2), PRIORS, weights=Pooled(Gamma(2.0, 3.0)))
    state = run(problem, max_iter=3, tol=None).state
    before = state.weights
    w = problem.weights.steps["kernel_weights"](before, state.evidence(), problem.priors)
    A, p = full_precision(problem, before, state.evidence())
    q, rng, size, P = multivariate_normal(np.linalg.solve(A, p), np.linalg.inv(A)), np.random.default_rng(0), 100_000, 3
    draws, ratio, precisions = q.rvs(size, random_state=rng), 0.0, []
    priors = (w.bias_precision, PRIORS.bias), (w.kernel_precision, PRIORS.kernel), (w.pool_precision, w.pool_prior)
    for factor, prior in priors:
        values = rng.gamma(factor.shape, factor.scale, size=(size, len(factor.scale)))
        ratio = ratio + gamma_distribution.logpdf(values, prior.shape, scale=prior.scale).sum(axis=1)
        ratio = ratio - gamma_distribution.logpdf(values, factor.shape, scale=factor.scale).sum(axis=1)
        precisions.append(values**-0.5)
    gamma, omega, kappa = precisions
    ratio = ratio + norm.logpdf(draws[:, :P], scale=omega).sum(axis=1) - q.logpdf(draws)
    first, bias = P, 0
    for count in problem.n_outputs:
        b, e = draws[:, first : first + count], draws[:, first + count : first + count + P]
        ratio = ratio + norm.logpdf(b, scale=gamma[:, bias : bias + count]).sum(axis=1)
        ratio = ratio + norm.logpdf(e, draws[:, :P], kappa).sum(axis=1)
        first, bias = first + count + P, bias + count
    expected = sum(w.bound_terms(problem.priors).values())
    assert abs(ratio.mean() - expected) < 4.0 * ratio.std() / np.sqrt(size)


class TestLimits:
    def test_large_precisions_are_shared_weights(self):
        shared = Problem(blocks(3), PRIORS, pair=JointMeans(), weights=Free())
        pooled = replace(shared, weights=Pooled(fixed(1e8)))
        states = [run(problem, max_iter=300, tol=None).state for problem in (pooled, shared)]
        for t, block in enumerate(shared.blocks):
            found, expected = (
                predict(problem, state, block.stack, block=t)
                for problem, state in zip((pooled, shared), states, strict=True)
            )
            assert_allclose(found.mean, expected.mean, rtol=1e-3, atol=1e-3)
            assert_allclose(found.variance, expected.variance, rtol=1e-3)

    def test_small_precisions_are_separate_weights(self):
        """With the common weights held at zero, each block has the prior of the pool for itself."""
        held = replace(PRIORS, kernel=fixed(1e8))
        problem = Problem(blocks(4), held, pair=JointMeans(), weights=Pooled(fixed(0.5)))
        pooled = run(problem, max_iter=300, tol=None).state
        assert_allclose(pooled.weights.centre, 0.0, atol=1e-6)
        for t, block in enumerate(problem.blocks):
            alone = Problem([block], replace(PRIORS, kernel=fixed(0.5)), pair=JointMeans())
            expected = predict(alone, run(alone, max_iter=300, tol=None).state, block.stack)
            found = predict(problem, pooled, block.stack, block=t)
            assert_allclose(found.mean, expected.mean, rtol=1e-3, atol=1e-3)
            assert_allclose(found.variance, expected.variance, rtol=1e-3)


class TestBold:
    """Newton steps of all means and fixed points of both precisions."""

    def test_same_optimum_as_coordinate_ascent(self):
        """A plain sweep from where the bold ones converged changes nothing."""
        plain = Problem(blocks(5), PRIORS, pair=JointMeans(), weights=Pooled())
        bold = replace(plain, pair=NewtonMeans(), weights=Pooled(bold=True))
        state = run(bold, max_iter=2000, tol=None).state
        after = sweep(plain, state)
        # Rounding alone is left.
        for name in ("centre", "centre_variance", "centre_covariance"):
            expected = getattr(state.weights, name)
            assert_allclose(getattr(after.weights, name), expected, rtol=0.0, atol=1e-10 * np.abs(expected).max())
        assert_allclose(after.weights.pool_precision.mean, state.weights.pool_precision.mean, rtol=1e-10)
        assert_allclose(after.weights.kernel_precision.mean, state.weights.kernel_precision.mean, rtol=1e-10)
        for expected, found in zip(state.weights.means, after.weights.means, strict=True):
            assert_allclose(found, expected, rtol=0.0, atol=1e-10)

    def test_means_solve_the_system_with_curvatures(self):
        """Against the dense system whose targets' precisions are the profile's curvatures; and on from there."""
        problem = Problem(blocks(6), PRIORS, weights=Pooled(bold=True))
        state = run(problem, max_iter=3, tol=None).state
        weights, evidence = state.weights, state.evidence()
        found = problem.weights.steps["kernel_weights"](weights, evidence, problem.priors)
        A, _ = full_precision(problem, weights, evidence)
        p, first, P = np.zeros(len(A)), problem.n_kernels, problem.n_kernels
        for t, (here, count) in enumerate(zip(state.blocks, problem.n_outputs, strict=True)):
            moments, part = weights.moments(t), rows_of(here)
            eta, e = predictor(part, moments.mean, moments.bias), slice(first + count, first + count + P)
            profile = part.likelihood.profile(part.targets, here.tau, eta)
            pulls, changes = profile.curvature * eta + profile.gradient, profile.curvature - here.tau[:, None]
            for row, (G, pull, change) in enumerate(zip(part.mean, pulls, changes, strict=True), start=first):
                A[row, row] += change.sum()
                A[row, e] += G @ change
                A[e, row] += G @ change
                A[e, e] += (G * change) @ G.T
                p[row] = pull.sum()
                p[e] += G @ pull
            first = e.stop
        mean = np.linalg.solve(A, p)
        assert_allclose(found.centre, beyond(weights.centre, mean[:P]), rtol=1e-8)
        assert_allclose(
            np.concatenate(found.means), beyond(np.concatenate(weights.means), mean[P:]), rtol=1e-7, atol=1e-10
        )

    def test_the_bound_never_falls_and_settles_sooner(self):
        slow = Problem(blocks(5), PRIORS, pair=NewtonMeans(), weights=Pooled())
        fast = replace(slow, weights=Pooled(bold=True))
        slow_bounds, bounds = (run(problem, max_iter=200, tol=None).lower_bounds for problem in (slow, fast))
        for path in (slow_bounds, bounds):
            assert (np.diff(path) >= -1e-9 * np.abs(path[1:])).all()
        assert bounds[39] >= slow_bounds[-1] - 1e-6 * abs(slow_bounds[-1])

    def test_the_cautious_strategy_keeps_the_prior(self):
        prior = Gamma(2.0, 3.0)
        assert Pooled(prior, bold=True).cautious == Pooled(prior)


@pytest.mark.parametrize("prior", [1.0, Gamma(1.0, np.ones(2))])
def test_bad_prior(prior):
    with pytest.raises(ValueError, match="pool_prior: expected one Gamma prior"):
        Pooled(prior)


class TestClassifier:
    X = np.random.default_rng(0).normal(size=(60, 3))
    Y = np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])
    BANK = KernelBank([KernelSpec("gaussian", "each", {"width": 1.0})])

    def test_classes(self):
        model = BEMKLClassifier(self.BANK, multiclass="pooled").fit(self.X, self.Y)
        assert model.kernel_weights_.shape == (3, 3)
        assert model.score(self.X, self.Y) > 0.8
        assert_allclose(model.predict_proba(self.X).sum(axis=1), 1.0)
        assert np.isfinite(model.lower_bound_)
        assert len(model.summary()) == 9

    def test_two_classes_have_nothing_to_pool(self):
        y = self.X[:, 0] > 0.0
        found, expected = (BEMKLClassifier(self.BANK, multiclass=m).fit(self.X, y) for m in ("pooled", "shared"))
        assert found.lower_bound_ == expected.lower_bound_

    def test_prior_of_the_pool_decides_how_far_classes_may_differ(self):
        """A gamma factor has at most the mean scale * (shape + n_classes / 2), so its prior bounds the likeness."""

        def fit(scale):
            return BEMKLClassifier(self.BANK, multiclass="pooled", pool_prior=(1.0, scale)).fit(self.X, self.Y)

        spread = [np.ptp(fit(scale).kernel_weights_, axis=0).max() for scale in (1e-2, 1.0, 1e2, 1e4)]
        assert (np.diff(spread) < 0.0).all()
        assert spread[-1] < 0.05 * spread[0]
        for scale in (1.0, 1e2):
            assert (fit(scale).posterior_.weights.pool_precision.mean <= scale * 2.5).all()

    def test_where_the_weights_end_does_not_depend_on_where_they_start(self):
        """From nearly shared and from nearly separate weights, the bound rises to the same value."""
        settings = {"multiclass": "pooled", "intermediate_std": 0.1, "tol": 1e-7}
        straight = BEMKLClassifier(self.BANK, **settings).fit(self.X, self.Y)
        for scale in (1e-3, 1e4):
            model = BEMKLClassifier(self.BANK, pool_prior=(1.0, scale), warm_start=True, **settings)
            other = model.fit(self.X, self.Y).lower_bound_
            assert abs(other - straight.lower_bound_) > 1.0
            model.set_params(pool_prior=(1.0, 1.0)).fit(self.X, self.Y)
            assert_allclose(model.lower_bound_, straight.lower_bound_, rtol=1e-5)
