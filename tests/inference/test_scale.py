"""The common scale in closed form, against a search over scales with the exact bound."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import VARIANTS, rows_of, total, twin
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_breast_cancer

from bemkl.distributions import Gamma, PointMass
from bemkl.inference import (
    DENSE,
    SPARSE,
    Block,
    Free,
    Gaussian,
    NewtonMeans,
    NewtonWeights,
    Plain,
    Priors,
    Probit,
    Problem,
    initialise,
    lower_bound_terms,
    run,
    sweep,
)
from bemkl.inference.rows import mean_sums, predictor
from bemkl.inference.state import starting_scale
from bemkl.inference.updates import _root, _scaled, update_scale
from bemkl.kernels import DenseStack, paper_bank


@dataclass(frozen=True)
class Longer(NewtonWeights):
    """Weights that start so many times as long."""

    times: float = 1.0

    def start(self, *arguments):
        return super().start(*arguments).scaled(self.times, spread=True)


def bold(name, seed=0):
    return replace(twin(VARIANTS[name], seed).problem, pair=NewtonMeans(), weights=NewtonWeights())


def bound(problem, state):
    return total(lower_bound_terms(problem, state))


def predictor_of(state, index):
    moments = state.weights.moments(index)
    return predictor(rows_of(state.blocks[index]), moments.mean, moments.bias)


def best(problem, state, *, spread):
    """Return the bound of the best scale, found by search."""
    found = minimize_scalar(
        lambda log: -bound(problem, _scaled(state, np.exp(log), spread=spread)),
        bounds=(-2.0, 2.0),
        method="bounded",
        options={"xatol": 1e-7},
    )
    return -found.fun


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", VARIANTS)
def test_against_a_search(name, seed):
    """From a state in the middle of a run, where the scale is not right yet."""
    problem = bold(name, seed)
    state = run(problem, max_iter=2, tol=None).state
    state = sweep(replace(problem, weights=problem.weights.cautious), state)
    learned = isinstance(problem.priors.intermediate, Gamma)
    highest = best(problem, state, spread=learned)
    reached = bound(problem, update_scale(problem, state))
    if learned:  # means are moved after everything was transformed
        assert reached >= highest - 1e-7
    else:
        assert_allclose(reached, highest, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_bound_rises_and_the_predictor_stays(name):
    problem = bold(name)
    state = run(problem, max_iter=1, tol=None).state
    for factor in (0.2, 0.7, 1.0, 3.0):
        for spread in (False, isinstance(problem.priors.intermediate, Gamma)):
            moved = _scaled(state, factor, spread=spread)
            reached = update_scale(problem, moved)
            assert bound(problem, reached) >= bound(problem, moved) - 1e-9
            for index in range(len(problem.blocks)):
                found, expected = (predictor_of(some, index) for some in (reached, state))
                assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", [name for name, variant in VARIANTS.items() if variant.sigma_g is None])
def test_pushing_everything_leaves_the_rest_of_the_bound(name):
    """Only the terms of the gamma priors change when all factors are transformed."""
    problem = bold(name)
    state = run(problem, max_iter=3, tol=None).state
    before, after = (lower_bound_terms(problem, s) for s in (state, _scaled(state, 1.7, spread=True)))
    priors = {"sample_precision", "intermediate_precision", "kernel_precision"}
    rest = [sum(value for key, value in terms.items() if key not in priors) for terms in (before, after)]
    assert_allclose(rest[0], rest[1], rtol=1e-10)
    for key in priors:
        assert before[key] != after[key]


def test_a_converged_state_has_the_right_scale():
    problem = bold("binary")
    state = run(problem, max_iter=500, tol=None).state
    reached = update_scale(problem, state)
    assert_allclose(reached.weights.mean, state.weights.mean, rtol=1e-6)


def test_roots():
    assert _root(1.0, 0.0, 1.0) == pytest.approx(1.0)
    assert _root(1.0, 0.0, 16.0) == pytest.approx(2.0)
    for A, X, E in [(2.0, 5.0, 3.0), (2.0, -5.0, 3.0), (1e-8, -1.0, 1e-3), (1e8, 1e3, 1e-8)]:
        c = _root(A, X, E)
        assert 2.0 * A * c + X == pytest.approx(2.0 * E / c**3, rel=1e-6)
    # Beyond the range of numbers there is no optimum to find, and no error either.
    assert 0.0 < _root(1.0, 1e308, 1e-300) < 1e-100
    ends = [(1e-300, -1e308, 1.0), (1e-310, 0.0, 1.0), (1e-300, 0.0, 1e300), (1e300, 0.0, 1e-300), (1e10, 0.0, 1e-320)]
    for A, X, E in [*ends, (2.0**-1000, -(2.0**10), 1.0), (1e308, -1e308, 1e308)]:
        assert _root(A, X, E) > 0.0
    assert _root(0.0, 0.0, 1.0) == 1.0
    assert _root(np.nan, 0.0, 1.0) == 1.0


def many(likelihood, prior=DENSE, n_kernels=50):
    """Return a problem with many random kernels of the likelihood's samples."""
    factors = np.random.default_rng(0).normal(size=(n_kernels, likelihood.n_samples, 2))
    block = Block(DenseStack(factors @ factors.transpose(0, 2, 1)), likelihood)
    return Problem([block], Priors(kernel=prior, intermediate=PointMass.from_std(0.7)), NewtonWeights(), NewtonMeans())


LABELS = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0])


def test_the_length_to_start_with():
    """One output: 20 over the precision of the prior and that of 9 samples with deviations of 0.7."""
    expected = (20.0 / (1.0 + 9 * 0.7**2)) ** (1 / 3)
    problem = many(Probit(LABELS))
    assert starting_scale(problem) == pytest.approx(expected)
    assert np.linalg.norm(initialise(problem).weights.moments(0).mean) == pytest.approx(expected)
    drawn = [
        initialise(problem, np.random.default_rng(0)).weights,
        Free().start(50, (1,), problem.priors, np.random.default_rng(0)),
    ]
    assert_allclose(drawn[0].moments(0).mean, expected * drawn[1].moments(0).mean)


def test_the_noise_of_responses_counts():
    responses = 3.0 * LABELS
    noise = many(Gaussian(responses)).blocks[0].first_noise().mean
    assert starting_scale(many(Gaussian(responses))) == pytest.approx((20.0 / (1.0 + 9 * noise[0] * 0.7**2)) ** (1 / 3))


@pytest.mark.parametrize("name", VARIANTS)
def test_the_papers_iteration_starts_with_a_length_of_one(name):
    problem = replace(bold(name), pair=Plain(), weights=Free())
    assert np.linalg.norm(problem.weights.start(3, problem.n_outputs, problem.priors, None).moments(0).mean) == (
        pytest.approx(1.0)
    )


@pytest.mark.parametrize(("deviation", "prior"), [(1.0, DENSE), (0.1, DENSE), (1.0, SPARSE)])
def test_the_length_raises_the_bound_of_the_first_sweeps(deviation, prior):
    """Against a start with weights of length 1, on 120 samples of a real set."""
    X, y = load_breast_cancer(return_X_y=True)
    block = Block(paper_bank().fit_factored(X[:120, :8]), Probit(2.0 * y[:120] - 1.0, margin=1.0))
    priors = Priors(kernel=prior, intermediate=PointMass.from_std(deviation))
    problem = Problem([block], priors, NewtonWeights(), NewtonMeans())
    one = replace(problem, weights=Longer(times=1.0 / starting_scale(problem)))
    assert np.linalg.norm(initialise(one).weights.moments(0).mean) == pytest.approx(1.0)
    ours, others = (run(some, max_iter=3, tol=None).lower_bounds for some in (problem, one))
    assert (ours > others).all()


@pytest.mark.parametrize(
    ("name", "spread"),
    [("binary", False), ("multiclass, shared weights", False), ("regression, several outputs", True)],
)
def test_sums_over_samples_follow_the_scale(name, spread):
    """What is not computed again is what would be."""
    problem = twin(VARIANTS[name]).problem
    here = run(problem, max_iter=2, tol=None).state.blocks[0]
    found = here.scaled(1.7, spread=spread).intermediate.sums
    expected = mean_sums(rows_of(here.scaled(1.7, spread=spread)), [True] * here.n_outputs)
    assert_allclose(found.total, expected.total, rtol=1e-12)
    assert_allclose(found.residual, expected.residual, rtol=1e-12)
    for one, other in zip(found.scatter, expected.scatter, strict=True):
        assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-12)
