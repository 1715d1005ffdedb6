"""Properties that hold for every problem, searched by hypothesis."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from problems import assert_no_update_falls, random_kernels, rows_of

from bemkl.distributions import Gamma, PointMass
from bemkl.inference import Block, Gaussian, JointMeans, Plain, Priors, Probit, Problem, State, initialise, run
from bemkl.inference.moments import JointCovariance
from bemkl.inference.state import handed_over
from bemkl.kernels import DenseStack

searched = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

priors = st.sampled_from([(1.0, 1.0), (1e-10, 1e10), (0.5, 3.0), (20.0, 0.1)])
deviations = st.sampled_from([None, 0.01, 0.1, 1.0, 10.0])
pairs = st.sampled_from([Plain(), JointMeans(1), JointMeans(3), JointMeans(10, good_length=1.0)])


@st.composite
def problems(draw, min_blocks=1):
    """Draw a problem with one to three blocks of any kind, size, prior and strategy."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_kernels = draw(st.integers(1, 6))
    blocks = []
    for _ in range(draw(st.integers(min_blocks, 3))):
        n_samples, n_outputs = draw(st.integers(2, 9)), draw(st.integers(1, 3))
        n_basis = draw(st.one_of(st.none(), st.integers(1, n_samples)))
        K, X, _ = random_kernels(rng, n_samples, n_basis, n_kernels)
        K *= draw(st.sampled_from([1e-2, 1.0, 1e2]))
        y = X @ rng.normal(size=(2, n_outputs)) + rng.normal(size=n_outputs)
        if draw(st.booleans()):
            likelihood = Probit(np.where(y > 0.0, 1.0, -1.0), margin=draw(st.sampled_from([0.0, 1.0, 10.0])))
        else:
            likelihood = Gaussian(y, noise=Gamma(*draw(priors)))
        blocks.append(Block(DenseStack(K), likelihood, landmarks=n_basis is not None))
    sigma = draw(deviations)
    prior = Priors(
        sample=Gamma(*draw(priors)),
        bias=Gamma(*draw(priors)),
        kernel=Gamma(*draw(priors)),
        intermediate=Gamma(1.0, 1.0) if sigma is None else PointMass.from_std(sigma),
    )
    return Problem(blocks, prior, pair=draw(pairs))


@searched
@given(problem=problems(), seed=st.one_of(st.none(), st.integers(0, 100)))
def test_no_single_update_lowers_the_bound(problem, seed):
    start = initialise(problem, None if seed is None else np.random.default_rng(seed))
    assert_no_update_falls(problem, 4, start)


@searched
@given(problem=problems(), seed=st.integers(0, 100))
def test_permuted_kernels_permute_the_weights(problem, seed):
    order = np.random.default_rng(seed).permutation(problem.n_kernels)
    blocks = [replace(block, stack=DenseStack(block.stack.values[order])) for block in problem.blocks]
    found, expected = (run(p, max_iter=3, tol=None) for p in (replace(problem, blocks=blocks), problem))
    assert_allclose(found.lower_bounds, expected.lower_bounds, rtol=1e-7)
    n_biases = sum(problem.n_outputs)
    e, e_permuted = expected.state.weights.mean[n_biases:], found.state.weights.mean[n_biases:]
    assert_allclose(e_permuted, e[order], rtol=1e-5, atol=1e-5 * np.abs(e).max())


@searched
@given(problem=problems(), seed=st.integers(0, 100))
def test_permuted_samples_permute_the_answer(problem, seed):
    rng = np.random.default_rng(seed)
    blocks, orders = [], []
    for block in problem.blocks:
        K, y = block.stack.values, block.likelihood.start().target
        order = rng.permutation(K.shape[1])
        columns = slice(None) if block.landmarks else order
        if isinstance(block.likelihood, Probit):
            likelihood = Probit(np.sign(y.T)[order], margin=block.likelihood.margin)
        else:
            likelihood = Gaussian(y.T[order], noise=block.likelihood._prior)
        blocks.append(Block(DenseStack(K[:, order][:, :, columns]), likelihood, landmarks=True))
        orders.append(order)
    found, expected = (run(p, max_iter=3, tol=None) for p in (replace(problem, blocks=blocks), problem))
    assert_allclose(found.lower_bounds, expected.lower_bounds, rtol=1e-7)
    for moved, here, order in zip(found.state.blocks, expected.state.blocks, orders, strict=True):
        f, g = rows_of(here).targets.target, rows_of(moved).targets.target
        assert_allclose(g, f[:, order], rtol=1e-5, atol=1e-5 * np.abs(f).max())


def scaled(prior, factor):
    return Gamma(prior.shape, prior.scale * factor)


@pytest.fixture(scope="module")
def start():
    rng = np.random.default_rng(11)
    K, X, _ = random_kernels(rng, 12, n_kernels=4)
    return K, X


@searched
@given(power=st.integers(-5, 5), sigma=st.sampled_from([0.1, 1.0]), pair=pairs)
def test_scaling_all_kernels_scales_the_sample_weights(start, power, sigma, pair):
    """
    K → cK with λ's scale → c²: a → a/c, and the evidence does not change.

    For powers of two all the arithmetic scales exactly, so only logarithms round differently.
    """
    (K, X), c = start, 2.0**power
    likelihood = Probit(np.where(X[:, 0] > 0.0, 1.0, -1.0))
    prior = Priors(intermediate=PointMass.from_std(sigma))
    base = Problem([Block(DenseStack(K), likelihood)], prior, pair=pair)
    other = Problem(
        [Block(DenseStack(c * K), likelihood)], replace(prior, sample=scaled(prior.sample, c**2)), pair=pair
    )
    found, expected = (run(problem, max_iter=10, tol=None) for problem in (other, base))
    assert_allclose(found.lower_bounds, expected.lower_bounds, rtol=1e-13)
    a, a_scaled = (result.state.blocks[0].sample.mean for result in (expected, found))
    assert_allclose(a_scaled * c, a, rtol=1e-13)


@searched
@given(c=st.floats(0.1, 10.0), pair=pairs)
def test_scaling_the_responses_shifts_the_bound(start, c, pair):
    """y → cy with e, b and noise scaled likewise: predictions scale, the bound falls by N log c."""
    K, X = start
    y = X[:, 0] + 0.2 * X[:, 1]
    prior = Priors(intermediate=PointMass.from_std(0.5))
    base = Problem([Block(DenseStack(K), Gaussian(y))], prior, pair=pair)
    other = Problem(
        [Block(DenseStack(K), Gaussian(c * y, noise=Gamma(1.0, c**-2)))],
        replace(prior, bias=scaled(prior.bias, c**-2), kernel=scaled(prior.kernel, c**-2)),
        pair=pair,
    )
    start_state = initialise(base)
    weights = start_state.weights
    independent = JointCovariance.independent(c**2 * weights.covariance.diagonal(), weights.n_biases)
    moved = replace(weights, mean=c * weights.mean, covariance=independent)
    # What the preconditioner remembers has another unit: both runs begin without it.
    start_state = replace(start_state, blocks=(replace(start_state.blocks[0], helper=None),))
    (block,) = handed_over(other, start_state).blocks
    block = replace(block, noise_precision=other.blocks[0].first_noise(), seen=None)
    moved_state = State((block,), moved)
    found, expected = run(other, moved_state, max_iter=10, tol=None), run(base, start_state, max_iter=10, tol=None)
    assert_allclose(found.lower_bounds, expected.lower_bounds - len(y) * np.log(c), rtol=1e-8, atol=1e-8)
    assert_allclose(found.state.weights.mean, c * expected.state.weights.mean, rtol=1e-6, atol=1e-9 * c)


@searched
@given(margin=st.floats(0.0, 3.0), pair=pairs)
def test_flipped_labels_flip_the_scores(start, margin, pair):
    K, X = start
    y = np.where(X[:, 0] > 0.3, 1.0, -1.0)
    found, expected = (
        run(Problem([Block(DenseStack(K), Probit(sign * y, margin=margin))], pair=pair), max_iter=10, tol=None)
        for sign in (-1.0, 1.0)
    )
    assert_allclose(found.lower_bounds, expected.lower_bounds, rtol=1e-11)
    assert_allclose(found.state.weights.mean[1:], expected.state.weights.mean[1:], rtol=1e-9, atol=1e-12)
    assert_allclose(found.state.weights.mean[0], -expected.state.weights.mean[0], rtol=1e-9, atol=1e-12)
    for left, right in zip(found.state.blocks, expected.state.blocks, strict=True):
        assert_allclose(rows_of(left).targets.target, -rows_of(right).targets.target, rtol=1e-9)
