"""Kernel weights with the sample weights integrated out: against one dense Hessian by differences, and planted ones."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec
from bemkl.inference import (
    SPARSE,
    Block,
    Factorized,
    Gaussian,
    Pooled,
    Priors,
    Probit,
    Problem,
    integrated_weights,
    run,
)
from bemkl.inference.rows import InMemory
from bemkl.inference.weights.free import independent_weights
from bemkl.kernels import DenseStack, gaussian

N, P = 14, 3
STEP = 1e-6
BANK = KernelBank([KernelSpec("gaussian", "each", {"width": 0.7})])


def points(seed, count=N):
    return np.random.default_rng(seed).uniform(-2.0, 2.0, size=(count, P))


def kernels(X, basis):
    return np.stack([gaussian(X[:, [m]], basis[:, [m]], 1.0) for m in range(P)])


def labels(X, n_outputs=1):
    rng = np.random.default_rng(5)
    score = np.sin(2.0 * X[:, :1]) + X[:, 1:2] ** 2 * np.arange(n_outputs) + 0.3 * rng.normal(size=(len(X), n_outputs))
    return np.where(score > 0.3, 1.0, -1.0)


def curvatures(here, weights, output):
    """Return those of one output at the predictor of the fit: second differences of the log mass of labels."""
    part = here.rows.parts[0]
    eta = weights.mean @ part.mean + weights.bias[:, None]
    if not isinstance(part.likelihood, Probit):
        return np.full(eta.shape[1], here.tau[output])
    mass = [part.likelihood.restored(eta + step).scores.log_mass[output] for step in (-1e-4, 0.0, 1e-4)]
    return -(mass[0] - 2.0 * mass[1] + mass[2]) / 1e-8


def slow_covariance(state):
    """Return the covariance of (b, e) in that of (b, e, a), with derivatives of all predictors by differences."""
    free, blocks = state.weights, state.blocks
    sizes = np.cumsum([len(free.mean), *(here.sample.mean.size for here in blocks)])
    theta = np.concatenate([free.mean, *(here.sample.mean.ravel() for here in blocks)])

    def predictors(theta):
        found = []
        for t, here in enumerate(blocks):
            a = theta[sizes[t] : sizes[t + 1]].reshape(here.sample.mean.shape)
            along = np.einsum("m,mid,od->oi", theta[free.n_biases : sizes[0]], here.block.stack.values, a)
            found.append((along + theta[free.bias_slices[t]][:, None]).ravel())
        return np.concatenate(found)

    steps = STEP * np.eye(len(theta))
    J = np.stack([predictors(theta + step) - predictors(theta - step) for step in steps], axis=1) / (2.0 * STEP)
    variance = []
    for t, here in enumerate(blocks):
        weights = free.moments(t)
        length = weights.mean @ weights.mean
        variance += [1.0 / curvatures(here, weights, o) + length / here.upsilon[o] for o in range(here.n_outputs)]
    precisions = [free.bias_precision, free.kernel_precision, *(here.sample_precision for here in blocks)]
    prior = np.concatenate([precision.mean.ravel() for precision in precisions])
    return np.linalg.inv(np.diag(prior) + (J.T / np.concatenate(variance)) @ J)[: sizes[0], : sizes[0]]


def state_of(blocks, **settings):
    return run(Problem(blocks, **settings), max_iter=40, tol=None).state


def one_block(likelihood, X, basis):
    return Block(DenseStack(kernels(X, basis)), likelihood, landmarks=True)


X = points(0)
RESPONSES = np.sin(2.0 * X[:, 0]) + 0.1 * X[:, 1]
PROBLEMS = {
    "binary": [one_block(Probit(labels(X)), X, X)],
    "regression": [one_block(Gaussian(RESPONSES), X, X)],
    "outputs": [one_block(Probit(labels(X, 3)), X, X)],
    "landmarks": [one_block(Probit(labels(X)), X, X[:5])],
    "tasks": [one_block(Probit(labels(X)), X, X), one_block(Gaussian(RESPONSES[:9]), X[:9], X[:9])],
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("sparse", [False, True])
def test_against_the_dense_hessian_of_everything(name, sparse):
    state = state_of(PROBLEMS[name], priors=Priors(kernel=SPARSE) if sparse else Priors())
    found = np.asarray(integrated_weights(state).covariance)
    expected = slow_covariance(state)
    # Second differences of a log mass have seven digits.
    assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_parts_agree_with_one():
    state = state_of(PROBLEMS["binary"])
    here = state.blocks[0]
    whole = here.rows.parts[0]

    def some(rows):
        targets = replace(whole.targets, scores=None)
        likelihood, stack = whole.likelihood.some(rows), DenseStack(whole.stack.values[:, rows])
        means = {"mean": whole.mean[:, :, rows], "projection": whole.projection[:, :, rows]}
        return replace(whole, stack=stack, likelihood=likelihood, targets=targets, first=rows.start, **means)

    parts = InMemory(tuple(some(slice(*ends)) for ends in ((0, 5), (5, 8), (8, N))))
    apart = replace(state, blocks=(replace(here, rows=parts),))
    one, other = (np.asarray(integrated_weights(each).covariance) for each in (state, apart))
    assert_allclose(other, one, rtol=1e-10, atol=1e-14)


def test_more_kernels_than_samples():
    """Thin factors and all numbers give the same."""
    rng = np.random.default_rng(1)
    many = np.stack([np.cos(np.subtract.outer(z, z)) for z in rng.normal(size=(80, 10))])
    y = np.where(rng.normal(size=10) > 0.0, 1.0, -1.0)
    state = state_of([Block(DenseStack(many), Probit(y))], weights=Factorized())
    found = integrated_weights(state)
    matrix = np.asarray(found.covariance)
    part = state.blocks[0].rows.parts[0]
    e = state.weights.mean[1:]
    combined = np.tensordot(e, many, 1)
    c = part.likelihood.profile(part.targets, np.ones(1), e @ part.mean + state.weights.mean[0]).curvature[0]
    variance = np.diag(1.0 / c + e @ e / state.blocks[0].upsilon[0])
    middle = np.linalg.inv(variance + combined @ np.diag(1.0 / state.blocks[0].sample_precision.mean[0]) @ combined.T)
    J = np.vstack([np.ones(10), part.projection[0]])
    prior = np.concatenate([state.weights.bias_precision.mean, state.weights.kernel_precision.mean])
    assert_allclose(matrix, np.linalg.inv(np.diag(prior) + J @ middle @ J.T), rtol=1e-7, atol=1e-12)


def test_pooled_weights_of_one_block_are_free_ones_with_both_variances():
    state = state_of(PROBLEMS["binary"], weights=Pooled())
    weights = state.weights
    free = independent_weights(weights.means[0], np.ones(1 + P), (1,), Priors())
    prior = np.concatenate([free.bias_precision.mean, free.kernel_precision.mean])
    information = np.linalg.inv(integrated_weights(replace(state, weights=free)).covariance) - np.diag(prior)
    common, own = weights.kernel_precision.mean, weights.pool_precision.mean
    prior = np.concatenate([weights.bias_precision.mean, 1.0 / (1.0 / common + 1.0 / own)])
    found = integrated_weights(state).covariances[0]
    assert_allclose(found, np.linalg.inv(information + np.diag(prior)), rtol=1e-7, atol=1e-12)


def planted(seed):
    """Three of ten features matter; each has a kernel."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(150, 10))
    return X, np.sin(2.0 * X[:, :3]).sum(axis=1) + 0.3 * rng.normal(size=150)


@pytest.mark.parametrize("settings", [{}, {"kernel_prior": "sparse"}, {"weights": "factorized"}], ids=str)
@pytest.mark.parametrize("kind", [BEMKLClassifier, BEMKLRegressor])
def test_intervals_of_planted_weights(kind, settings):
    off = []
    for seed in range(5):
        X, y = planted(seed)
        model = kind(BANK, **settings).fit(X, y if kind is BEMKLRegressor else y > 0.0)
        low, high = model.weight_intervals()
        off.append((low > 0.0) | (high < 0.0))
    found, others = np.mean(off, axis=0)[:3], np.mean(off, axis=0)[3:]
    assert found.mean() >= 0.85
    assert others.mean() <= 0.07  # 35 intervals: at most two, where the fit's own are off zero in 5 to 20


def test_nonnegative_weights_keep_their_slope():
    X, y = planted(0)
    fitted = BEMKLClassifier(BANK, weights="nonnegative").fit(X, y > 0.0)._fitted[0]
    before, after, mean = fitted.weights.marginals, fitted.integrated.marginals, fitted.kernel_weights
    slopes = [(factor.location - mean) / factor.deviation**2 for factor in (before, after)]
    assert_allclose(*slopes, rtol=1e-10)
    assert (after.deviation > before.deviation).all()
    assert ((after.location > 1.96 * after.deviation) == (np.arange(10) < 3)).all()


def test_planted_kernels_are_on_and_others_off():
    inclusions = []
    for seed in range(3):
        X, y = planted(seed)
        inclusions.append(BEMKLClassifier(BANK, weights="spike_slab").fit(X, y > 0.0).kernel_inclusion_)
    on = np.mean(np.array(inclusions) > 0.5, axis=0)
    assert (on[:3] == 1.0).all()
    assert on[3:].mean() <= 0.07
