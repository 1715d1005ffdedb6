"""Closed forms against samples from q: the bound, and the predictive moments."""

import numpy as np
import pytest
from problems import VARIANTS, total, twin
from sampling import draw_new, log_ratio

from bemkl.inference import lower_bound_terms, predict, sweep
from bemkl.kernels import DenseStack

DRAWS = 40_000


def fitted(name, sweeps=5):
    twins = twin(VARIANTS[name])
    state = twins.state
    for _ in range(sweeps):
        state = sweep(twins.problem, state)
    return twins, state


def standard_errors_off(draws, expected):
    """How many standard errors the mean of draws (size, ...) is away from the expected value, entry by entry."""
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    return np.abs(draws.mean(axis=0) - expected) / error


@pytest.mark.parametrize("name", VARIANTS)
def test_bound(name):
    twins, state = fitted(name)
    draws = log_ratio(twins.problem, state, DRAWS, np.random.default_rng(1))
    assert standard_errors_off(draws, total(lower_bound_terms(twins.problem, state))) <= 3.0


def test_bound_of_an_unfinished_state():
    """Also where q(f) was built around another predictor than the current one."""
    twins, state = fitted("binary", sweeps=0)
    draws = log_ratio(twins.problem, state, DRAWS, np.random.default_rng(2))
    assert standard_errors_off(draws, total(lower_bound_terms(twins.problem, state))) <= 3.0


@pytest.mark.parametrize("name", VARIANTS)
def test_predictive_moments(name):
    """Averages over the new samples within 3 standard errors; each of the hundreds of entries within 4.5."""
    twins, state = fitted(name)
    rng = np.random.default_rng(3)
    for t, query in enumerate(twins.queries):
        found = predict(twins.problem, state, DenseStack(query), block=t)
        for o in range(found.mean.shape[1]):
            draws = draw_new(twins.problem, state, query, t, o, DRAWS, rng)
            for sample, mean, variance in (
                (draws.f, found.mean[:, o], found.variance[:, o]),
                (draws.g, found.intermediate_mean[:, :, o].T, found.intermediate_variance[:, :, o].T),
            ):
                for values, expected in ((sample, mean), ((sample - mean) ** 2, variance)):
                    assert standard_errors_off(values, expected).max() <= 4.5
                    assert standard_errors_off(values.reshape(DRAWS, -1).mean(axis=1), expected.mean()) <= 3.0


@pytest.mark.parametrize("name", ["binary", "binary, learned deviation", "multiclass, shared weights"])
def test_exact_probability_is_closer_than_the_printed_one(name):
    """
    P(f > 0) under q has no closed form: f is a product of Gaussians. The normal approximation with exact moments is
    within 0.02 of it here, and closer than the printed rule on average.
    """
    twins, state = fitted(name, sweeps=30)
    query = twins.queries[0]
    exact, paper = (predict(twins.problem, state, DenseStack(query), predictive=rule) for rule in ("exact", "paper"))
    draws = [
        draw_new(twins.problem, state, query, 0, o, DRAWS, np.random.default_rng(4)).f
        for o in range(exact.mean.shape[1])
    ]
    truth = np.stack([(f > 0.0).mean(axis=0) for f in draws], axis=1)
    assert np.abs(exact.probability - truth).max() < 0.02
    assert np.abs(exact.probability - truth).mean() < np.abs(paper.probability - truth).mean()
