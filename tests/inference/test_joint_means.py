"""Joint means: the same fixed point as the paper's updates, reached in fewer sweeps, never down."""

from dataclasses import replace

import numpy as np
import pytest
from golden_cases import Case
from numpy.testing import assert_allclose, assert_array_equal
from problems import VARIANTS, rows_of, total, twin

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
from bemkl.inference.newton.coupling import _ENOUGH, Coupling, Samples
from bemkl.inference.newton.joint_means import _loss_of_staying
from bemkl.inference.newton.steps import Steps, dot, look
from bemkl.inference.pair import sample_factor
from bemkl.inference.rows import predictor, put
from bemkl.inference.updates import sweep_updates
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
        yield block.sample.mean
        yield block.sample.variance
        yield rows_of(block).mean
        yield rows_of(block).targets.target
        yield block.tau


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
    for name in problem.pair.steps:
        state = sweep_updates(problem)[name](problem, state)
    return state


def test_grouping_of_outputs_does_not_matter():
    """With one kernel and fewer samples than basis points every output is a group of its own."""
    rng = np.random.default_rng(0)
    K, y = rng.normal(size=(1, 4, 6)), rng.choice([-1.0, 1.0], size=(4, 3))
    together = Problem([Block(DenseStack(K), Probit(y))], pair=JointMeans(n_steps=50, good_length=1.0))
    apart = replace(together, blocks=[Block(DenseStack(K), Probit(y[:, o])) for o in range(3)])
    found, expected = (run(problem, max_iter=5, tol=None) for problem in (together, apart))
    assert_allclose(found.lower_bounds, expected.lower_bounds, rtol=1e-12)


def model_at(block, a):
    """Return rows with the quadratic model at given means of a, the precisions of these, and the dense matrices."""
    state = run(Problem([block], pair=JointMeans()), max_iter=2, tol=None).state
    here, (n_outputs, n_basis) = state.blocks[0], a.shape
    context = here.context(state.weights.moments(0))
    rows, _ = here.rows.run(put, a, rows_of(here).mean)
    rows, _ = rows.run(look, Coupling.of(context), True)
    (part,), lam = rows.parts, context.sample_precision
    projections = (part.stack.project(np.tile(unit, (n_outputs, 1))) for unit in np.eye(n_basis))
    columns = [part.stack.backproject(part.work.samples.couple(projection)) for projection in projections]
    return rows, lam, np.stack(columns, axis=2) + lam[:, :, None] * np.eye(n_basis)


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize(("length", "n_samples"), [(1.0, 7), (100.0, 80)])
def test_a_step_is_the_best_in_its_plane(length, n_samples, approximate):
    """
    Against a solve of the two equations of each output; parallel moves, and none, leave the one move alone.

    Approximate steps are exact for few samples, and where they are far too long or too short: the rest follows.
    """
    rng = np.random.default_rng(0)
    block = Block(DenseStack(rng.normal(size=(3, n_samples, 5))), Probit(rng.choice([-1.0, 1.0], size=(n_samples, 4))))
    r, x, y = rng.normal(size=(3, 4, 5))
    y[1], y[2] = 0.0, -2.0 * x[2]
    rows, lam, matrices = model_at(block, y)
    r = np.where(np.einsum("ld,ld->l", r, x)[:, None] > 0.0, r, -r)
    x *= (dot(r, x) / np.einsum("ld,lde,le->l", x, matrices, x) / length)[:, None]
    solvers = [lambda _, row=row: row for row in x]
    rows, moved, gain = Steps(1, 3.0, approximate, n_samples).climb(rows, slice(None), y, r, lam, solvers)
    for o, matrix in enumerate(matrices):
        plane = x[o][None] if o in (1, 2) else np.stack([x[o], y[o]])
        lengths = np.linalg.solve(plane @ matrix @ plane.T, plane @ r[o])
        assert_allclose(moved[o], lengths @ plane, rtol=1e-8)
        assert_allclose(gain[o], 0.5 * lengths @ plane @ r[o], rtol=1e-8)


@pytest.mark.parametrize("name", VARIANTS)
def test_enough_steps_solve_the_system(name):
    """More steps than unknowns leave nothing: another update with the same neighbours does not move the means."""
    twins = twin(VARIANTS[name])
    problem = replace(twins.problem, pair=JointMeans(n_steps=60, good_length=1.0))
    once = sweep_pair(problem, twins.state)
    twice = sweep_pair(problem, once)
    for before, after in zip(once.blocks, twice.blocks, strict=True):
        scale = np.abs(before.sample.mean).max()
        assert_allclose(after.sample.mean, before.sample.mean, rtol=0.0, atol=1e-7 * scale)


class TestApproximateSteps:
    """What bold steps do without where there are many samples."""

    @pytest.fixture(params=[0.1, 1.0])
    def case(self, request):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 4))
        y = np.stack([np.sign(X[:, 0] * X[:, 1]), np.sign(X[:, 2] + 0.3)], axis=1)
        stack = SMOOTH.fit_factored(X)
        priors = Priors(intermediate=PointMass.from_std(request.param))
        problem = Problem([Block(stack, Probit(y, margin=1.0))], priors, NewtonWeights(), NewtonMeans())
        state = run(problem, max_iter=3, tol=None).state
        here, weights = state.blocks[0], state.weights.moments(0)
        return here, weights, Coupling.of(here.context(weights))

    def test_energy(self, case):
        """From a few samples, within some percent of the sum over all of them."""
        here, _, coupling = case
        part, few = rows_of(here), slice(60)
        curvature = part.likelihood.profile(part.targets, here.tau, part.targets.target).curvature
        samples, some, x = Samples.of(coupling, curvature), Samples.of(coupling, curvature[:, few]), part.projection
        energy = samples.energy(x, slice(None), 0, 300).total(300)
        assert_allclose(energy, dot(x, samples.couple(x)), rtol=0.05)
        assert_allclose(samples.energy(x[1:], slice(1, 2), 0, 300).total(300), energy[1:], rtol=1e-12)
        x = x[:, :, few]
        assert_allclose(some.energy(x, slice(None), 0, 60).total(60), dot(x, some.couple(x)), rtol=1e-12)
        assert 60 < 2 * _ENOUGH < 300  # all of the few, and some of the others

    def test_approximate_coupling(self, case):
        """The thin product of a step is the one with the approximate matrix, an output and a sample at a time."""
        here, weights, coupling = case
        part, e = rows_of(here), weights.mean
        x = part.projection
        samples = Samples.of(coupling, part.likelihood.profile(part.targets, here.tau, part.targets.target).curvature)
        left, right, across = samples.approximate_coupling(x, slice(None))
        for o, i in ((0, 0), (0, 7), (1, 299)):
            matrix = samples.along[o, i] * np.outer(e, e) + coupling.across[o] * np.eye(len(e))
            assert_allclose(left[o] @ right[o, :, i] + across[o] * x[o, :, i], matrix @ x[o, :, i], rtol=1e-10)

    def test_means_are_close_to_their_optimum(self, case):
        """What the approximate coupling makes of a step is what the exact one does, but for a small part of it."""
        here, weights, coupling = case
        (update,) = NewtonMeans(step_length=1.0).steps.values()
        before, after = rows_of(here), rows_of(update(here, weights))
        eta = predictor(before, weights.mean, weights.bias)
        profile = before.likelihood.profile(before.targets, here.tau, eta)
        samples = Samples.of(coupling, profile.curvature)
        left, right = samples.pull(profile, eta)
        upsilon, step = here.upsilon[:, None, None], after.projection - before.projection
        settled = after.projection - samples.couple(before.projection) / upsilon + left @ right
        left, right, across = samples.approximate_coupling(step, slice(None))
        assert_allclose(after.mean, settled - (left @ right + across[:, None, None] * step) / upsilon, atol=1e-12)
        distance = np.linalg.norm(after.mean - settled + samples.couple(step) / upsilon)
        assert 0.0 < distance < 0.02 * np.linalg.norm(after.mean - before.mean)

    def test_covariances_that_stay(self, case):
        """The loss is bounded from above; what stays is what was there, and a new state asks for a new one."""
        here, rng = case[0], np.random.default_rng(1)
        sample, kernels = here.sample, here.block.kernels
        gram = kernels.gram
        for size in (1e-4, 1e-2, 0.3):
            lam = sample.diagonal * np.exp(size * rng.normal(size=sample.diagonal.shape))
            upsilon = sample.scale * (1.0 + 1e-3 * size)
            bound = _loss_of_staying(sample, lam, upsilon)
            for o in range(2):
                before = np.linalg.inv(np.diag(sample.diagonal[o]) + sample.scale[o] * gram)
                product = (np.diag(lam[o]) + upsilon[o] * gram) @ before
                loss = 0.5 * (np.trace(product) - len(gram) - np.linalg.slogdet(product)[1])
                assert 0.0 <= loss <= bound[o] + 1e-9
        fresh = sample_factor(kernels, lam, here.upsilon, lambda o, _: sample.mean[o])
        staying = np.array([True, False])
        mixed = sample_factor(kernels, lam, here.upsilon, lambda o, _: sample.mean[o], sample, staying)
        for name in ("variance", "logdet", "trace", "diagonal", "scale"):
            assert_array_equal(getattr(mixed, name)[0], getattr(sample, name)[0])
            assert_array_equal(getattr(mixed, name)[1], getattr(fresh, name)[1])

    @pytest.mark.parametrize("deviation", [0.3, 1.0])
    def test_same_optimum(self, deviation, monkeypatch):
        """Where approximate steps converge, a plain sweep changes nothing, and exact ones end in the same place."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(140, 2))
        block = Block(SMOOTH.fit_factored(X), Probit(np.sign(X[:, 0] + 0.5 * rng.normal(size=140))))
        priors = Priors(intermediate=PointMass.from_std(deviation))
        bold = Problem([block], priors, NewtonWeights(), NewtonMeans())
        approximate = run(bold, max_iter=1500, tol=None)
        monkeypatch.setattr("bemkl.inference.newton.joint_means._MANY", 141)
        exact = run(bold, max_iter=1500, tol=None)
        assert not np.array_equal(approximate.lower_bounds[:5], exact.lower_bounds[:5])
        plain = sweep(replace(bold, pair=Plain(), weights=Free()), approximate.state)
        for other in (exact.state, plain):
            for found, expected in zip(expectations(other), expectations(approximate.state), strict=True):
                assert_allclose(found, expected, rtol=0.0, atol=1e-6 * max(1.0, np.abs(expected).max()))
        assert_allclose(approximate.lower_bound, exact.lower_bound, rtol=1e-11)


@pytest.mark.parametrize(("share", "fresh"), [(0.1, False), (25.0, True)])
def test_rounding_is_not_enlarged_by_long_moves_that_nearly_cancel(share, fresh):
    """Where a move takes 25 times the means, the rounding of their products would be 25 times as large, each sweep."""
    rng = np.random.default_rng(3)
    mean, best = rng.normal(size=(2, 1, 6))
    block = Block(DenseStack(rng.normal(size=(3, 6, 6))), Gaussian(rng.normal(size=6)), landmarks=True)
    rows, lam, (matrix,) = model_at(block, mean)

    def rounded(part):
        projection = part.projection + 1e-6
        work = replace(part.work, coupled=part.work.samples.couple(projection))
        return replace(part, projection=projection, work=work), None

    best -= (best @ matrix @ mean.T) / (mean @ matrix @ mean.T) * mean
    step = best - share * mean
    rows, moved, _ = Steps(1, 3.0, False, 6).climb(
        rows.run(rounded)[0], slice(None), mean, best @ matrix, lam, [lambda _: step[0]]
    )
    _, taken = np.linalg.lstsq(np.concatenate([step, mean]).T, moved[0], rcond=None)[0]
    assert taken == pytest.approx(share, rel=1e-3)
    (part,) = rows.parts
    error = part.work.total.projection - part.stack.project(moved)
    assert_allclose(error, 0.0 if fresh else taken * 1e-6, rtol=1e-6, atol=1e-12)
