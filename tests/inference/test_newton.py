"""Bold steps: the same optimum as coordinate ascent, reached faster, and never at the price of the bound."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import VARIANTS, random_kernels, rows_of, twin
from test_joint_means import expectations

from bemkl.distributions import Gamma, PointMass
from bemkl.inference import (
    SPARSE,
    Block,
    Gaussian,
    JointMeans,
    NewtonMeans,
    NewtonWeights,
    Priors,
    Probit,
    Problem,
    SemiSupervisedProbit,
    initialise,
    lower_bound_terms,
    run,
    sweep,
)
from bemkl.inference.engine import _climb
from bemkl.inference.newton.coupling import Coupling, Samples
from bemkl.inference.newton.steps import beyond
from bemkl.inference.rows import predictor, profile_of
from bemkl.inference.weights.free import precision_of, pull_of
from bemkl.inference.weights.newton import (
    fixed_point,
    newton_mean,
    update_kernel_precision_boldly,
    update_kernel_precision_twice,
)
from bemkl.kernels import DenseStack

REGRESSIONS = [name for name, variant in VARIANTS.items() if set(variant.kinds) == {"r"}]


def bold(problem, n_steps=1):
    return replace(problem, pair=NewtonMeans(n_steps), weights=NewtonWeights())


@pytest.mark.parametrize(
    ("likelihood", "noise"),
    [
        (Probit([[1, -1], [-1, -1], [1, 1]], margin=0.7), PointMass(1.0)),
        (SemiSupervisedProbit([[1, 0], [0, -1], [0, 0]], margin=0.7), PointMass(1.0)),
        (Gaussian([[0.3, 2.0]] * 3), Gamma(1.0, np.array([1.0, 0.3]))),
    ],
)
def test_profiles_are_derivatives_of_the_bound(likelihood, noise):
    """With the targets at their optimum, the bound's term of the output has these derivatives in the means."""

    def term(mean):
        fit = likelihood.fit(likelihood.update(likelihood.start(), mean), mean)
        return likelihood.bound_terms(noise, fit, np.zeros(2))["output"]

    eta, step = np.array([[0.2, -1.5, 3.0], [2.0, 0.0, -0.4]]), 1e-4
    profile = likelihood.profile(likelihood.start(), np.broadcast_to(noise.mean, 2), eta)
    for place in np.ndindex(*eta.shape):
        move = np.zeros_like(eta)
        move[place] = step
        gradient = (term(eta + move) - term(eta - move)) / (2.0 * step)
        curvature = -(term(eta + move) - 2.0 * term(eta) + term(eta - move)) / step**2
        assert_allclose(profile.gradient[place], gradient, rtol=1e-6, atol=1e-8)
        assert_allclose(profile.curvature[place], curvature, rtol=1e-5, atol=1e-6)


def test_coupling_of_the_kernels_of_a_sample():
    """The correction of rank one, against an inverse for each sample."""
    rng = np.random.default_rng(0)
    problem = twin(VARIANTS["multiclass, shared weights"], pair=NewtonMeans()).problem
    state = run(problem, max_iter=3, tol=None).state
    weights = state.weights.moments(0)
    context, x = state.blocks[0].context(weights), rng.normal(size=rows_of(state.blocks[0]).mean.shape)
    curvature, tau = rng.uniform(size=x[:, 0].shape), context.output_precision
    found = Samples.of(Coupling.of(context), curvature).couple(x)
    for o, i in np.ndindex(*curvature.shape):
        upsilon = context.intermediate_precision[o]
        precision = upsilon * np.eye(problem.n_kernels) + tau[o] * np.asarray(weights.covariance)
        precision += curvature[o, i] * np.outer(weights.mean, weights.mean)
        expected = upsilon * (x[o, :, i] - upsilon * np.linalg.solve(precision, x[o, :, i]))
        assert_allclose(found[o, :, i], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regression_has_nothing_to_eliminate(name):
    """Responses are observed: the Newton step of the means is the update of joint means, and goes on."""
    case = twin(VARIANTS[name], pair=JointMeans())
    state = run(case.problem, case.state, max_iter=3, tol=None).state
    (joint,), (newton,) = JointMeans().steps.values(), NewtonMeans().steps.values()
    for index, before in enumerate(state.blocks):
        ordinary, further = (step(before, state.weights.moments(index)) for step in (joint, newton))
        for mean in (lambda b: b.sample.mean, lambda b: rows_of(b).mean, lambda b: rows_of(b).projection):
            assert_allclose(mean(further), beyond(mean(before), mean(ordinary)), rtol=1e-9, atol=1e-12)


def test_curvatures_of_newton_steps_are_never_negative():
    """A sample without a label is more likely on either side than between, where its log mass is convex."""
    likelihood = SemiSupervisedProbit([1, 0, 0, -1], margin=0.7)
    block = Block(DenseStack(random_kernels(np.random.default_rng(0), 4)[0]), likelihood)
    here = initialise(Problem([block])).blocks[0]
    eta = np.array([[0.3, 0.1, 4.0, -9.0]])
    raw = likelihood.profile(likelihood.start(), here.tau, eta)
    assert raw.curvature[0, 1] < -0.5
    held = profile_of(rows_of(here), here.tau, eta)
    assert_array_equal(held.gradient, raw.gradient)
    assert_array_equal(held.curvature, np.clip(raw.curvature, 0.0, 1.0))


@pytest.mark.parametrize("name", VARIANTS)
def test_newton_step_of_the_weights(name, monkeypatch):
    """Conjugate gradients against a solve with the whole matrix, with covariance or factor, and few or many kernels."""
    problem = twin(VARIANTS[name]).problem
    state = run(problem, max_iter=3, tol=None).state
    weights, evidence = state.weights, state.evidence()
    precision = precision_of(weights, evidence)
    A, kernels = np.linalg.inv(np.asarray(precision.inverse_and_logdet()[0])), slice(weights.n_biases, None)
    gradient = -A @ weights.mean
    for t, (here, biases) in enumerate(zip(state.blocks, weights.bias_slices, strict=True)):
        part, tau, moments = rows_of(here), here.tau, weights.moments(t)
        G = part.mean
        profile = profile_of(part, tau, predictor(part, moments.mean, moments.bias))
        for o, bias in enumerate(range(biases.start, biases.stop)):
            rows = np.zeros((G.shape[2], len(A)))
            rows[:, bias], rows[:, kernels] = 1.0, G[o].T
            eta = rows @ weights.mean
            gradient += rows.T @ (tau[o] * eta + profile.gradient[o])
            A = A + rows.T @ ((profile.curvature[o] - tau[o])[:, None] * rows)
    expected = weights.mean + 1.3 * np.linalg.solve(A, gradient)
    monkeypatch.setattr("bemkl.inference.weights.newton._ENOUGH", 1e-26)
    for solve, many in ((precision.inverse_and_logdet()[0].__matmul__, 200), (precision.solver().solve, 0)):
        monkeypatch.setattr("bemkl.inference.block._MANY", many)
        found = newton_mean(weights, evidence, precision @ weights.mean, solve, 1.3)
        assert_allclose(found, expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_precisions_move_twice(name, far, monkeypatch):
    """The moments between two moves, from the inverse of the whole matrix; no second move where the first is short."""
    monkeypatch.setattr("bemkl.inference.weights.newton._FAR", 0.0 if far else np.inf)
    problem = twin(VARIANTS[name]).problem
    state = run(problem, max_iter=3, tol=None).state
    weights, evidence, prior = state.weights, state.evidence(), problem.priors
    moved = update_kernel_precision_twice(weights, evidence, prior)
    once = update_kernel_precision_boldly(weights, evidence, prior)
    if not far:
        assert_array_equal(moved.kernel_precision.mean, once.kernel_precision.mean)
        assert moved.mean is weights.mean
        return
    kernels = slice(weights.n_biases, None)
    precision = np.linalg.inv(np.asarray(precision_of(once, evidence).inverse_and_logdet()[0]))
    covariance, pull = np.linalg.inv(precision), pull_of(evidence)
    mean = weights.mean + 1.3 * (covariance @ pull - weights.mean)
    squares, variances = mean[kernels] ** 2, covariance.diagonal()[kernels]
    before, first = weights.kernel_precision.mean, once.kernel_precision.mean
    second = fixed_point(prior.kernel, once.kernel_precision, 1, squares, variances).mean
    back = np.sign(first - before) != np.sign(second - first)
    assert_allclose(moved.mean, mean, rtol=1e-7, atol=1e-9)
    assert_allclose(moved.kernel_precision.mean, np.where(back, np.sqrt(first * second), second), rtol=1e-6)
    assert moved.covariance is weights.covariance


def test_second_moves_come_to_an_end():
    """The precision of a dropped kernel, whose moves go to and fro between two values, settles where both meet."""
    rng = np.random.default_rng(0)
    K, X, _ = random_kernels(rng, 60, n_kernels=30, n_features=3)
    problem = bold(Problem([Block(DenseStack(K), Probit(np.where(X[:, 0] > 0, 1, -1)))], Priors(kernel=SPARSE)))
    state = run(problem, max_iter=300, tol=None).state
    moved = update_kernel_precision_twice(state.weights, state.evidence(), problem.priors)
    assert moved.mean is state.weights.mean
    assert_allclose(moved.kernel_precision.mean, state.weights.kernel_precision.mean, rtol=0.02)


@pytest.mark.parametrize("name", VARIANTS)
def test_same_optimum_as_coordinate_ascent(name):
    """A plain sweep from where the bold ones converged changes nothing."""
    problem = twin(VARIANTS[name], pair=JointMeans()).problem
    state = run(bold(problem), max_iter=1000, tol=None).state
    after = sweep(problem, state)
    # Rounding alone is left after 1000 sweeps, some 1e-15.
    for expected, actual in zip(expectations(state), expectations(after), strict=True):
        assert_allclose(actual, expected, rtol=0.0, atol=1e-11 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", VARIANTS)
def test_the_bound_never_falls(name):
    problem = twin(VARIANTS[name], pair=JointMeans()).problem
    for seed in range(3):
        start = initialise(problem, np.random.default_rng(seed))
        path = run(bold(problem), start, max_iter=60, tol=None).lower_bounds
        bounds = np.concatenate([[sum(lower_bound_terms(problem, start).values())], path])
        sizes = np.abs(bounds[1:])
        assert (np.diff(bounds) >= -1e-9 * sizes).all()


def test_a_sweep_that_lowers_the_bound_is_repeated_with_care():
    """From far off, Newton steps overshoot; the cautious sweep takes their place."""
    rng = np.random.default_rng(0)
    K, _, _ = random_kernels(rng, 20)
    problem = Problem([Block(DenseStack(K), Probit(np.where(rng.random(20) < 0.5, 1, -1)))])
    state = run(problem, max_iter=2, tol=None).state
    weights = replace(state.weights, mean=60.0 * state.weights.mean)
    far = replace(state, weights=weights)
    bounds = run(bold(problem), far, max_iter=8, tol=None).lower_bounds
    assert (np.diff(bounds) > 0.0).all()
    reached = run(bold(problem), far, max_iter=8, tol=None).state
    # The engine's rule itself: a bold sweep is kept where it raises the bound, and else the cautious one is.
    unreachable = lower_bound_terms(problem, reached) | {"more": 1e6}
    kept, _ = _climb(bold(problem), reached, unreachable)
    careful = sweep(problem, reached)
    for expected, actual in zip(expectations(careful), expectations(kept), strict=True):
        assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize(("prior", "factor"), [((1.0, 1.0), 3), ((1e-10, 1e10), 3)])
def test_fewer_iterations(prior, factor):
    """Many kernels, separable labels: a third of the iterations, or fewer, for the bound of many joint ones."""
    rng = np.random.default_rng(1)
    K, X, _ = random_kernels(rng, 60, n_kernels=30, n_features=3)
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, 1, -1)
    problem = Problem([Block(DenseStack(K), Probit(y))], Priors(kernel=Gamma(*prior)))
    slow = run(problem, max_iter=60, tol=None).lower_bounds
    fast = run(bold(problem), max_iter=60, tol=None).lower_bounds
    needed = int(np.argmax(fast >= slow[-1])) + 1
    assert fast[-1] >= slow[-1]
    assert needed * factor <= 60
