"""Joint means: the same fixed point as the paper's updates, reached in fewer sweeps, never down."""

from dataclasses import replace

import numpy as np
import pytest
from golden_cases import Case
from numpy.testing import assert_allclose
from problems import VARIANTS, total, twin

from bemkl.inference import Block, JointMeans, Plain, Probit, Problem, lower_bound_terms, run, sweep
from bemkl.inference.joint_means import _best_in_plane, _Move
from bemkl.kernels import DenseStack

PLAIN_SWEEPS = {
    "binary_nonsparse_n30_p4_sg1_margin0": 2000,
    "regression_nonsparse_n30_p4": 4000,
    "multioutput_nonsparse_n30_p5_l2": 4000,
    "multitask_nonsparse_t3_p5": 2000,
}


def expectations(state):
    """Return the numbers that a fixed point has to share."""
    yield state.weights.mean
    yield np.asarray(state.weights.covariance)
    yield state.weights.kernel_precision.mean
    for block in state.blocks:
        yield block.pair.sample_mean
        yield block.pair.sample.variance
        yield block.pair.intermediate_mean
        yield block.output.target
        yield block.output.precision


@pytest.mark.parametrize(("name", "n_plain"), PLAIN_SWEEPS.items())
def test_same_fixed_point(name, n_plain):
    """From the author's start, thousands of plain sweeps end where far fewer joint ones have been long before."""
    case = Case(name)
    plain, joint = case.problem(Plain()), case.problem(JointMeans())
    state = case.start(plain)
    far = run(plain, state, max_iter=n_plain, tol=None)
    near = run(joint, state, max_iter=1500, tol=None)
    for found, expected in zip(expectations(near.state), expectations(far.state), strict=True):
        assert_allclose(found, expected, rtol=0.0, atol=1e-6 * max(1.0, np.abs(expected).max()))
    assert_allclose(near.lower_bound, far.lower_bound, rtol=1e-12)


@pytest.mark.parametrize("name", VARIANTS)
def test_plain_stays_where_joint_converged(name):
    """A fixed point of one map is a fixed point of the other."""
    problem = twin(VARIANTS[name], pair=JointMeans()).problem
    found = run(problem, max_iter=1000, tol=None).state
    steps = [
        np.abs(sweep(replace(problem, pair=pair), found).weights.mean - found.weights.mean).max()
        for pair in (Plain(), JointMeans())
    ]
    assert steps[0] <= max(1e-9, steps[1])


@pytest.mark.parametrize("n_steps", [1, 2, 3, 10])
@pytest.mark.parametrize("name", VARIANTS)
def test_any_number_of_steps_raises_the_bound(name, n_steps):
    problem = twin(VARIANTS[name], pair=JointMeans(n_steps, good_length=1.0)).problem
    bounds = run(problem, max_iter=40, tol=None).lower_bounds
    assert np.diff(bounds).min() >= -1e-10 * np.abs(bounds).max()


@pytest.mark.parametrize("name", VARIANTS)
def test_one_update_beats_the_two_plain_ones(name):
    """From the same state, solving the means together cannot end below updating them in turn."""
    twins = twin(VARIANTS[name])
    joint = replace(twins.problem, pair=JointMeans(n_steps=100, good_length=1.0))
    plain_bound, joint_bound = (
        total(lower_bound_terms(problem, sweep_pair(problem, twins.state))) for problem in (twins.problem, joint)
    )
    assert joint_bound >= plain_bound - 1e-9 * abs(plain_bound)


def sweep_pair(problem, state):
    blocks = []
    for index, (block, here) in enumerate(zip(problem.blocks, state.blocks, strict=True)):
        pair = here.pair
        for step in problem.pair.steps.values():
            pair = step(block.stack, pair, state.context(problem, index))
        blocks.append(replace(here, pair=pair))
    return replace(state, blocks=tuple(blocks))


def test_grouping_of_outputs_does_not_matter():
    """With one kernel and fewer samples than basis points every output is a group of its own."""
    rng = np.random.default_rng(0)
    K, y = rng.normal(size=(1, 4, 6)), rng.choice([-1.0, 1.0], size=(4, 3))
    together = Problem([Block(DenseStack(K), Probit(y))], pair=JointMeans(n_steps=50, good_length=1.0))
    apart = replace(together, blocks=[Block(DenseStack(K), Probit(y[:, o])) for o in range(3)])
    found, expected = (run(problem, max_iter=5, tol=None) for problem in (together, apart))
    assert_allclose(found.lower_bounds, expected.lower_bounds, rtol=1e-12)


def test_a_step_is_the_best_in_its_plane():
    """Against a solve of the two equations of each output; parallel moves, and none, leave the one move alone."""
    rng = np.random.default_rng(0)
    n_outputs, n_basis, n_entries = 4, 5, 7
    H = np.stack([A @ A.T for A in rng.normal(size=(n_outputs, n_basis, n_basis))])
    K = rng.normal(size=(n_outputs, n_entries, n_basis))
    lam = rng.uniform(1.0, 2.0, size=(n_outputs, n_basis))
    # K'MK of the model, for a matrix M that makes it H.
    M = [np.linalg.pinv(k.T) @ h @ np.linalg.pinv(k) for k, h in zip(K, H, strict=True)]
    r, x, y = rng.normal(size=(3, n_outputs, n_basis))
    y[1], y[2] = 0.0, -2.0 * x[2]

    def move(mean):
        projection = np.einsum("led,ld->le", K, mean)
        coupled = np.stack([m @ p for m, p in zip(M, projection, strict=True)])
        return _Move(mean.copy(), projection[:, None], coupled[:, None])

    r = np.where(np.einsum("ld,ld->l", r, x)[:, None] > 0.0, r, -r)
    length, share = _best_in_plane(r, move(x), move(y), lam, np.zeros(n_outputs))
    for o in range(n_outputs):
        full = H[o] + np.diag(lam[o])
        if o in (1, 2):
            assert_allclose([length[o], share[o]], [r[o] @ x[o] / (x[o] @ full @ x[o]), 0.0], rtol=1e-8)
            continue
        plane = np.stack([x[o], y[o]])
        assert_allclose([length[o], share[o]], np.linalg.solve(plane @ full @ plane.T, plane @ r[o]), rtol=1e-8)


@pytest.mark.parametrize("name", VARIANTS)
def test_enough_steps_solve_the_system(name):
    """More steps than unknowns leave nothing: another update with the same neighbours does not move the means."""
    twins = twin(VARIANTS[name])
    problem = replace(twins.problem, pair=JointMeans(n_steps=60, good_length=1.0))
    once = sweep_pair(problem, twins.state)
    twice = sweep_pair(problem, once)
    for before, after in zip(once.blocks, twice.blocks, strict=True):
        scale = np.abs(before.pair.sample_mean).max()
        assert_allclose(after.pair.sample_mean, before.pair.sample_mean, rtol=0.0, atol=1e-7 * scale)
