"""Joint means: the same fixed point as the paper's updates, reached in fewer sweeps, never down."""

from dataclasses import replace

import numpy as np
import pytest
from golden_cases import Case
from numpy.testing import assert_allclose, assert_array_equal
from problems import VARIANTS, total, twin

from bemkl import KernelBank, KernelSpec
from bemkl.distributions import PointMass
from bemkl.inference import (
    Block,
    Free,
    Gaussian,
    JointMeans,
    NewtonMeans,
    NewtonWeights,
    Plain,
    Priors,
    Probit,
    Problem,
    lower_bound_terms,
    run,
    sweep,
)
from bemkl.inference.coupling import _ENOUGH, Coupling
from bemkl.inference.moves import Move, Plane, _added, dot
from bemkl.inference.pair_factors import loss_of_staying, sample_factor
from bemkl.kernels import DenseStack

SMOOTH = KernelBank(
    [KernelSpec("gaussian", "each", {"width": [0.5, 1.0, 2.0]}), KernelSpec("polynomial", "each", {"degree": 2})]
)

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
        return Move(mean.copy(), projection[:, None], coupled[:, None])

    r = np.where(np.einsum("ld,ld->l", r, x)[:, None] > 0.0, r, -r)
    first = move(x)
    plane = Plane.of(r, first, dot(first.projection, first.coupled), move(y), lam)
    length, share = plane.best(np.zeros(n_outputs))
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


class TestRoughly:
    """What bold steps do without where there are many samples."""

    @pytest.fixture(params=[0.1, 1.0])
    def case(self, request):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 4))
        y = np.stack([np.sign(X[:, 0] * X[:, 1]), np.sign(X[:, 2] + 0.3)], axis=1)
        stack = SMOOTH.fit_factored(X)
        priors = Priors(intermediate=PointMass.from_std(request.param))
        problem = Problem([Block(stack, Probit(y, margin=1.0))], priors, NewtonWeights(), NewtonMeans())
        return problem, run(problem, max_iter=3, tol=None).state

    def test_energy(self, case):
        """From a few samples, within some percent of the sum over all of them."""
        problem, state = case
        context, pair = state.context(problem, 0), state.blocks[0].pair
        coupling = Coupling.of(context, context.profile(context.target).curvature)
        x = pair.projection
        exact = dot(x, coupling.couple(x))
        assert_allclose(coupling.energy(x), exact, rtol=0.05)
        assert_allclose(coupling.energy(x[1:], slice(1, 2)), coupling.energy(x)[1:], rtol=1e-12)
        few = Coupling.of(replace(context, target=context.target[:, :60]), coupling.curvature[:, :60])
        assert_allclose(few.energy(x[:, :, :60]), dot(x[:, :, :60], few.couple(x[:, :, :60])), rtol=1e-12)
        assert 60 < 2 * _ENOUGH < x.shape[2]  # all of the few, and some of the others

    def test_rank_one(self, case):
        """The thin product of a move is the one with the approximate matrix, an output and a sample at a time."""
        problem, state = case
        context, x = state.context(problem, 0), state.blocks[0].pair.projection
        coupling = Coupling.of(context, context.profile(context.target).curvature)
        left, right, across = coupling.rank_one_factors(x)
        along, _ = coupling.rank_one
        e = context.weights.mean
        for o, i in ((0, 0), (0, 7), (1, 299)):
            matrix = along[o, i] * np.outer(e, e) + across[o] * np.eye(len(e))
            assert_allclose(left[o] @ right[o, :, i] + across[o] * x[o, :, i], matrix @ x[o, :, i], rtol=1e-10)

    def test_means_are_close_to_their_optimum(self, case):
        """The projections after the same step, with the exact coupling: the distance is a small part of the step."""
        problem, state = case
        (update,) = NewtonMeans(relaxation=1.0).steps.values()
        context, before = state.context(problem, 0), state.blocks[0].pair
        after = update(problem.blocks[0].stack, before, context)
        predictor = context.weights.mean @ before.intermediate.mean + context.weights.bias[:, None]
        profile = context.profile(predictor)
        coupling = Coupling.of(context, profile.curvature)
        upsilon = context.intermediate_precision[:, None, None]
        left, right = coupling.pull(profile, predictor)
        optimum = after.projection - coupling.couple(after.projection) / upsilon + left @ right
        step = np.linalg.norm(after.intermediate.mean - before.intermediate.mean)
        assert 0.0 < np.linalg.norm(after.intermediate.mean - optimum) < 0.02 * step

    def test_covariances_that_stay(self, case):
        """The loss is bounded from above; what stays is what was there, and a new state asks for a new one."""
        problem, state = case
        rng = np.random.default_rng(1)
        context, sample, gram = state.context(problem, 0), state.blocks[0].pair.sample, problem.blocks[0].stack.gram()
        for size in (1e-4, 1e-2, 0.3):
            lam = sample.diagonal * np.exp(size * rng.normal(size=sample.diagonal.shape))
            upsilon = sample.scale * (1.0 + 1e-3 * size)
            bound = loss_of_staying(sample, lam, upsilon)
            for o in range(2):
                before = np.linalg.inv(np.diag(sample.diagonal[o]) + sample.scale[o] * gram)
                product = (np.diag(lam[o]) + upsilon[o] * gram) @ before
                loss = 0.5 * (np.trace(product) - len(gram) - np.linalg.slogdet(product)[1])
                assert 0.0 <= loss <= bound[o] + 1e-9
        moved = replace(context, sample_precision=lam)
        mixed = sample_factor(
            problem.blocks[0].stack, moved, lambda o, _: sample.mean[o], sample, np.array([True, False])
        )
        fresh = sample_factor(problem.blocks[0].stack, moved, lambda o, _: sample.mean[o])
        for name in ("variance", "logdet", "trace", "diagonal", "scale"):
            assert_array_equal(getattr(mixed, name)[0], getattr(sample, name)[0])
            assert_array_equal(getattr(mixed, name)[1], getattr(fresh, name)[1])

    @pytest.mark.parametrize("deviation", [0.3, 1.0])
    def test_same_optimum(self, deviation, monkeypatch):
        """Where rough steps converge, a plain sweep changes nothing, and exact ones end in the same place."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(140, 2))
        block = Block(SMOOTH.fit_factored(X), Probit(np.sign(X[:, 0] + 0.5 * rng.normal(size=140))))
        priors = Priors(intermediate=PointMass.from_std(deviation))
        bold = Problem([block], priors, NewtonWeights(), NewtonMeans())
        rough = run(bold, max_iter=1500, tol=None)
        monkeypatch.setattr("bemkl.inference.joint_means._MANY", 141)
        exact = run(bold, max_iter=1500, tol=None)
        assert not np.array_equal(rough.lower_bounds[:5], exact.lower_bounds[:5])
        plain = sweep(replace(bold, pair=Plain(), weights=Free()), rough.state)
        for other in (exact.state, plain):
            for found, expected in zip(expectations(other), expectations(rough.state), strict=True):
                assert_allclose(found, expected, rtol=0.0, atol=1e-6 * max(1.0, np.abs(expected).max()))
        assert_allclose(rough.lower_bound, exact.lower_bound, rtol=1e-11)


@pytest.mark.parametrize(("share", "fresh"), [(0.1, False), (25.0, True)])
def test_rounding_is_not_enlarged_by_long_moves_that_nearly_cancel(share, fresh):
    """Where a move takes 25 times the means, the rounding of their products would be 25 times as large, each sweep."""
    rng = np.random.default_rng(3)
    stack = DenseStack(rng.normal(size=(3, 6, 6)))
    problem = Problem([Block(stack, Gaussian(rng.normal(size=6)), landmarks=True)], Priors(), pair=JointMeans())
    state = run(problem, max_iter=2, tol=None).state
    context = state.context(problem, 0)
    coupling = Coupling.of(context, np.ones((1, 6)))
    mean = rng.normal(size=(1, 6))
    rounded = stack.project(mean) + 1e-6
    here, step = Move(mean, rounded, coupling.couple(rounded)), Move(-share * mean, -share * stack.project(mean))
    moved = _added(stack, coupling, slice(None), (step, np.ones(1)), (here, np.array([share])))
    assert_allclose(moved.mean, 0.0, atol=1e-12)
    assert_allclose(moved.projection, 0.0 if fresh else share * 1e-6, rtol=1e-6, atol=1e-12)
