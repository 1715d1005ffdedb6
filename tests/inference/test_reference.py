"""The engine against slow loops straight from the equations, for every variant."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import VARIANTS, rows_of, total, twin

from bemkl.inference import JointMeans, Plain, lower_bound_terms, predict, sweep
from bemkl.kernels import DenseStack

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture(params=VARIANTS)
def variant(request):
    return VARIANTS[request.param]


@pytest.fixture(params=["plain", "joint"])
def pair(request):
    """Twins with the paper's updates, and with means solved together: to the end, as the dense solve does."""
    return {"plain": {"pair": Plain()}, "joint": {"pair": JointMeans(n_steps=100, good_length=1.0), "joint": True}}[
        request.param
    ]


@pytest.mark.parametrize("seed", [0, 1])
def test_states_and_bounds(variant, pair, seed):
    twins = twin(variant, seed, **pair)
    state, slow_state = twins.state, twins.slow_state
    for _ in range(6):
        state = sweep(twins.problem, state)
        twins.slow.sweep(slow_state)
        compare_states(twins.problem, state, slow_state)
        found = total(lower_bound_terms(twins.problem, state))
        assert_allclose(found, twins.slow.bound(slow_state), **TOLERANCE)


def compare_states(problem, state, slow_state):
    weights = state.weights
    assert_allclose(weights.mean, slow_state.be, **TOLERANCE)
    assert_allclose(weights.covariance, slow_state.Sbe, **TOLERANCE)
    assert_allclose(weights.kernel_precision.scale, slow_state.ome[1], **TOLERANCE)
    assert_allclose(weights.bias_precision.scale, slow_state.gam[1], **TOLERANCE)
    for block, here, s in zip(problem.blocks, state.blocks, slow_state.blocks, strict=True):
        assert_allclose(here.sample_precision.scale, s.lam[1], **TOLERANCE)
        assert_allclose(here.sample.mean, s.a, **TOLERANCE)
        for o, covariance in enumerate(s.Sa):
            assert_allclose(here.sample.precision_factor(block.stack.gram(), o).inverse(), covariance, **TOLERANCE)
        assert_allclose(rows_of(here).mean, s.G, **TOLERANCE)
        assert_allclose(here.intermediate.spread.covariance, s.Sg, **TOLERANCE)
        if hasattr(s, "m"):
            assert_allclose(rows_of(here).targets.scores.location, s.m, **TOLERANCE)
        else:
            assert_allclose(here.noise_precision.scale, s.eps[1], **TOLERANCE)


def test_bound_between_updates(variant):
    """The bound is exact for any state, not only at the end of a sweep."""
    twins = twin(variant)
    assert_allclose(
        total(lower_bound_terms(twins.problem, twins.state)), twins.slow.bound(twins.slow_state), **TOLERANCE
    )


@pytest.mark.parametrize("rule", ["exact", "paper"])
def test_predictions(variant, rule):
    twins = twin(variant)
    state = twins.state
    for _ in range(4):
        state = sweep(twins.problem, state)
        twins.slow.sweep(twins.slow_state)
    for t, query in enumerate(twins.queries):
        found = predict(twins.problem, state, DenseStack(query), block=t, predictive=rule)
        expected = twins.slow.predict(twins.slow_state, t, query, exact=rule == "exact")
        assert_allclose(found.mean.T, expected.f, **TOLERANCE)
        assert_allclose(found.variance.T, expected.f_var, **TOLERANCE)
        assert_allclose(found.intermediate_mean.transpose(2, 1, 0), expected.g, **TOLERANCE)
        assert_allclose(found.intermediate_variance.transpose(2, 1, 0), expected.g_var, **TOLERANCE)


def test_full_covariances_are_never_needed(variant):
    """What the state keeps of q(a), variances, log-determinant and trace, is that of the full covariance."""
    twins = twin(variant)
    state = sweep(twins.problem, twins.state)
    for block, here in zip(twins.problem.blocks, state.blocks, strict=True):
        gram, sample = block.stack.gram(), here.sample
        for o in range(here.n_outputs):
            covariance = here.sample.precision_factor(gram, o).inverse()
            assert_allclose(sample.variance[o], np.diag(covariance), **TOLERANCE)
            assert_allclose(sample.logdet[o], np.linalg.slogdet(covariance)[1], **TOLERANCE)
            assert_allclose(sample.trace[o], np.trace(gram @ covariance), **TOLERANCE)
