"""The run: stopping, warnings, named terms, restarts, and the seams that plug-ins use."""

import sys
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import VARIANTS, total, twin

from bemkl.distributions import PointMass
from bemkl.exceptions import BoundDecreasedWarning, ConvergenceWarning
from bemkl.inference import (
    Block,
    Free,
    JointMeans,
    NewtonMeans,
    Priors,
    Probit,
    Problem,
    initialise,
    iterate,
    lower_bound_terms,
    predict,
    run,
)
from bemkl.inference.predict import fitted_block
from bemkl.kernels import DenseStack, gaussian


@pytest.fixture
def problem():
    return twin(VARIANTS["mixed tasks"], pair=JointMeans()).problem


def test_stops_when_the_bound_settles(problem):
    result = run(problem, max_iter=5000, tol=1e-5)
    assert result.converged
    assert result.n_iter < 5000
    changes = np.abs(np.diff(result.lower_bounds)) / np.abs(result.lower_bounds[1:])
    assert changes[-1] <= 1e-5
    assert (changes[:-1] > 1e-5).all()


def test_warns_when_iterations_run_out(problem):
    with pytest.warns(ConvergenceWarning, match="max_iter was reached after 2 iterations"):
        result = run(problem, max_iter=2, tol=1e-12)
    assert not result.converged
    assert result.n_iter == 2


def test_without_a_tolerance_does_all_iterations_and_does_not_warn(problem):
    assert run(problem, max_iter=7, tol=None).n_iter == 7


def test_named_terms_sum_to_the_bound(problem):
    result = run(problem, max_iter=3, tol=None)
    assert_allclose(total(result.bound_terms[-1]), result.lower_bound)
    assert_allclose(result.lower_bound, total(lower_bound_terms(problem, result.state)))


def test_random_starts_differ_and_repeat(problem):
    one, again, other = (initialise(problem, np.random.default_rng(seed)).weights.mean for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    bounds = run(problem, initialise(problem, np.random.default_rng(1)), max_iter=30, tol=None).lower_bounds
    assert np.diff(bounds).min() >= 0.0


@dataclass(frozen=True)
class Wrong(Free):
    """A weight strategy whose update is not an ascent step."""

    @property
    def steps(self):
        def overshoot(weights, evidence, priors):
            return replace(weights, mean=3.0 * weights.mean)

        return {**Free().steps, "overshoot": overshoot}


def test_alarm_when_the_bound_falls(problem):
    with pytest.warns(BoundDecreasedWarning, match="not an ascent step"):
        run(replace(problem, weights=Wrong()), max_iter=20, tol=None)


class Broken(Probit):
    """A likelihood whose bound is lost."""

    def bound_terms(self, noise, fit, variance):
        return {"output": np.nan}


class Colliding(Probit):
    """A likelihood that names its term like one of the engine's."""

    def bound_terms(self, noise, fit, variance):
        return {"intermediate": super().bound_terms(noise, fit, variance)["output"]}


@dataclass(frozen=True)
class Doubled(Free):
    """A weight strategy that names a step like one of the engine's."""

    @property
    def steps(self):
        return {"sample_precision": next(iter(Free().steps.values()))}


def tiny(likelihood):
    return Problem([Block(DenseStack(np.stack([np.eye(4), np.ones((4, 4))])), likelihood([1.0, -1.0, 1.0, 1.0]))])


def test_a_lost_bound_stops_the_run():
    with pytest.raises(FloatingPointError, match=r"not finite: \{'output': nan\}"):
        run(tiny(Broken), max_iter=3, tol=None)


def test_terms_of_the_same_name_add_up():
    found, expected = (run(tiny(likelihood), max_iter=3, tol=None) for likelihood in (Colliding, Probit))
    assert_allclose(found.lower_bounds, expected.lower_bounds)


def test_steps_of_the_same_name_are_refused(problem):
    with pytest.raises(ValueError, match="names of their own"):
        run(replace(problem, weights=Doubled()))


def test_iterate_shows_every_state(problem):
    """A consumer can stop where it likes and keeps what was learned so far."""
    state, terms = list(islice(iterate(problem), 3))[-1]
    result = run(problem, max_iter=3, tol=None)
    assert terms == result.bound_terms[-1]
    assert np.array_equal(state.weights.mean, result.state.weights.mean)


@pytest.mark.parametrize("name", ["binary", "regression"])
def test_a_warm_start_fits_the_new_targets(name):
    """A state of other labels or responses is a start like any other: the end is that of a fresh run."""
    old, new = (twin(VARIANTS[name], seed).problem for seed in (0, 0))
    likelihood = old.blocks[0].likelihood
    flipped = type(likelihood)(-np.sign(likelihood.start().target.T))
    new = replace(new, blocks=[replace(old.blocks[0], likelihood=flipped)], pair=JointMeans())
    warm = run(new, run(replace(old, pair=JointMeans()), max_iter=50, tol=None).state, max_iter=3000, tol=None)
    cold = run(new, max_iter=3000, tol=None)
    assert_allclose(warm.lower_bound, cold.lower_bound, rtol=1e-6)
    assert np.diff(warm.lower_bounds).min() >= -1e-10 * np.abs(warm.lower_bounds).max()


class Flipped(Probit):
    """A likelihood from outside the package: the engine needs nothing but the protocol."""

    def __init__(self, y):
        super().__init__(-np.asarray(y))


def test_a_new_likelihood_needs_no_change_in_the_engine():
    K = np.stack([np.eye(6), np.ones((6, 6))])
    y = np.array([1.0, 1.0, -1.0, 1.0, -1.0, -1.0])
    found, expected = (
        run(Problem([Block(DenseStack(K), likelihood)]), max_iter=10, tol=None)
        for likelihood in (Flipped(y), Probit(-y))
    )
    assert np.array_equal(found.lower_bounds, expected.lower_bounds)


def test_rows_are_predicted_independently(problem, monkeypatch):
    """A row's prediction does not depend on the rows beside it, and row blocks do not show."""
    state = run(problem, max_iter=5, tol=None).state
    K = twin(VARIANTS["mixed tasks"]).queries[0]
    whole = predict(problem, state, DenseStack(K))
    for i in range(K.shape[1]):
        one = predict(problem, state, DenseStack(K[:, [i]]))
        assert_allclose(one.probability[0], whole.probability[i], rtol=1e-12)
        assert_allclose(one.variance[0], whole.variance[i], rtol=1e-12)
    monkeypatch.setattr(sys.modules["bemkl.inference.sample_spread"], "_BLOCK_BYTES", 1)
    assert_allclose(predict(problem, state, DenseStack(K)).variance, whole.variance, rtol=1e-12)


@pytest.mark.parametrize("rule", ["exact", "paper"])
def test_variances_of_intermediate_outputs_only_where_they_are_wanted(problem, rule):
    state = run(problem, max_iter=5, tol=None).state
    stack = DenseStack(twin(VARIANTS["mixed tasks"]).queries[0])
    some = fitted_block(state).predict(stack, rule)
    assert some.intermediate_variance is None
    assert np.array_equal(some.variance, predict(problem, state, stack, predictive=rule).variance)


@pytest.mark.parametrize("pair", [JointMeans(), NewtonMeans()], ids=["joint", "newton"])
def test_a_start_with_another_known_deviation(pair):
    """A known precision is the problem's, not that of the state a run starts from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    block = Block(DenseStack(np.stack([gaussian(X, X, width) for width in (0.5, 2.0)])), Probit(np.sign(X[:, 0])))
    coarse, fine = (Problem([block], Priors(intermediate=PointMass.from_std(std)), pair=pair) for std in (1.0, 0.1))
    started = run(fine, run(coarse, max_iter=5, tol=None).state, max_iter=600, tol=None)
    assert float(started.state.blocks[0].intermediate_precision.mean) == pytest.approx(100.0)
    assert_allclose(started.lower_bound, run(fine, max_iter=600, tol=None).lower_bound, rtol=1e-6)
