"""Variants that are special cases of each other give the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import random_kernels

from bemkl.distributions import Gamma, PointMass
from bemkl.inference import Block, Gaussian, JointMeans, Plain, Priors, Probit, Problem, predict, run
from bemkl.kernels import DenseStack

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(params=[Plain(), JointMeans()], ids=["plain", "joint"])
def pair(request):
    return request.param


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    K, X, _ = random_kernels(rng, 14, n_kernels=5)
    responses = np.column_stack([X[:, 0], X[:, 1] - X[:, 0], np.sin(X[:, 1])]) + 0.1 * rng.normal(size=(14, 3))
    return K, responses, np.where(responses > 0.0, 1.0, -1.0)


def fit(blocks, pair, priors=None):
    problem = Problem(blocks, priors or Priors(intermediate=PointMass.from_std(0.5)), pair=pair)
    return problem, run(problem, max_iter=15, tol=None)


def assert_same(found, expected):
    assert_allclose(found.lower_bounds, expected.lower_bounds, **EXACT)
    assert_allclose(found.state.weights.mean, expected.state.weights.mean, **EXACT)
    assert_allclose(found.state.weights.covariance, expected.state.weights.covariance, **EXACT)


def test_one_shared_output_is_binary(data, pair):
    """Both spellings are one model; test_golden runs the author's binary program's files as one-column matrices."""
    K, _, labels = data
    _, one_column = fit([Block(DenseStack(K), Probit(labels[:, :1]))], pair)
    _, flat = fit([Block(DenseStack(K), Probit(labels[:, 0]))], pair)
    assert_same(one_column, flat)


@pytest.mark.parametrize("kind", ["labels", "responses"])
def test_two_blocks_on_the_same_data_are_one_block_with_two_outputs(data, pair, kind):
    K, responses, labels = data
    stack = DenseStack(K)
    if kind == "labels":
        make, y, priors = Probit, labels, None
    else:
        make, y, priors = Gaussian, responses, Priors(intermediate=Gamma(1.0, 1.0))
    _, apart = fit([Block(stack, make(y[:, 0])), Block(stack, make(y[:, 1]))], pair, priors)
    _, together = fit([Block(stack, make(y[:, :2]))], pair, priors)
    assert_same(apart, together)


def test_one_task_is_the_single_model(data, pair):
    """A second task whose responses are pure noise leaves the first where it is alone."""
    K, responses, _ = data
    task = Block(DenseStack(K), Gaussian(responses[:, 0]))
    silent = Block(DenseStack(K[:, :9, :9]), Gaussian(np.ones(9), noise=Gamma(1e10, 1e-30)))
    priors = Priors(intermediate=Gamma(1.0, 1.0))
    _, alone = fit([task], pair, priors)
    _, beside = fit([task, silent], pair, priors)
    assert_allclose(beside.state.weights.mean[2:], alone.state.weights.mean[1:], rtol=1e-9, atol=1e-12)
    assert_allclose(beside.state.weights.mean[0], alone.state.weights.mean[0], rtol=1e-9, atol=1e-12)
    moved, here = beside.state.blocks[0].sample, alone.state.blocks[0].sample
    assert_allclose(moved.mean, here.mean, rtol=1e-8, atol=1e-10)


def test_order_of_tasks_does_not_matter(data, pair):
    K, responses, labels = data
    a, b = Block(DenseStack(K), Probit(labels[:, 0])), Block(DenseStack(K[:, :9, :9]), Gaussian(responses[:9, 1]))
    _, forward = fit([a, b], pair)
    _, backward = fit([b, a], pair)
    assert_allclose(forward.lower_bounds, backward.lower_bounds, **EXACT)
    assert_allclose(forward.state.weights.mean[2:], backward.state.weights.mean[2:], **EXACT)


def test_all_samples_as_landmarks_are_the_dense_model(data, pair):
    """Landmarks in another order than the samples only rename the sample weights."""
    K, _, labels = data
    order = np.random.default_rng(0).permutation(K.shape[2])
    likelihood = Probit(labels[:, 0])
    problem, dense = fit([Block(DenseStack(K), likelihood)], pair)
    landmark_problem, landmarks = fit([Block(DenseStack(K[:, :, order]), likelihood, landmarks=True)], pair)
    assert_allclose(landmarks.lower_bounds, dense.lower_bounds, rtol=1e-11)
    assert_allclose(
        landmarks.state.blocks[0].sample.mean, dense.state.blocks[0].sample.mean[:, order], rtol=0, atol=1e-10
    )
    new = np.random.default_rng(1).normal(size=(5, 3, K.shape[2]))
    expected = predict(problem, dense.state, DenseStack(new))
    found = predict(landmark_problem, landmarks.state, DenseStack(new[:, :, order]))
    assert_allclose(found.probability, expected.probability, atol=1e-10)
    assert_allclose(found.variance, expected.variance, rtol=1e-9)


def test_a_learned_precision_with_a_sharp_prior_is_a_fixed_one(data, pair):
    K, _, labels = data
    blocks = [Block(DenseStack(K), Probit(labels))]
    _, fixed = fit(blocks, pair, Priors(intermediate=PointMass(4.0)))
    _, sharp = fit(blocks, pair, Priors(intermediate=Gamma(4e10, 1e-10)))
    assert_allclose(sharp.state.weights.mean, fixed.state.weights.mean, rtol=1e-5)
    assert_allclose(sharp.lower_bound, fixed.lower_bound, rtol=1e-5)


def test_warm_start_continues_the_run(data, pair):
    K, _, labels = data
    problem, whole = fit([Block(DenseStack(K), Probit(labels))], pair)
    first = run(problem, max_iter=6, tol=None)
    second = run(problem, first.state, max_iter=9, tol=None)
    assert np.array_equal(np.concatenate([first.lower_bounds, second.lower_bounds]), whole.lower_bounds)


def test_a_state_of_one_strategy_starts_the_other(data):
    K, _, labels = data
    problem, joint = fit([Block(DenseStack(K), Probit(labels))], JointMeans())
    plain = run(replace(problem, pair=Plain()), joint.state, max_iter=5, tol=None)
    assert plain.lower_bounds[0] >= joint.lower_bound
