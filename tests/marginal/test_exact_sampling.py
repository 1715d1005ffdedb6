"""The marginal posterior of labels against exact sampling of the paper's model, on two small real sets."""

from dataclasses import replace

import numpy as np
import pytest
from collapsed_gibbs import Problem, sample_given_weights, sample_weights_too, weights_under
from marginal_problems import labels_model
from numpy.testing import assert_allclose
from scipy.special import ndtr
from sklearn.datasets import load_breast_cancer, load_iris

from bemkl.kernels import KernelBank, KernelSpec
from bemkl.marginal.climb import climb

N_TRAIN = 60
NOISE = 3.0
"""Deviation of scores around their predictor, most of it from the intermediate outputs."""


def breast_cancer():
    """Return samples, signs, and kernels of the means, the errors and the extremes of ten measurements."""
    X, y = load_breast_cancer(return_X_y=True)
    of_a_kind = [[f"x{column}" for column in range(first, first + 10)] for first in (0, 10, 20)]
    return X, y, [KernelSpec("gaussian", columns, {"width": [2.0, 6.0]}) for columns in of_a_kind]


def iris():
    """Return the two kinds that overlap, and kernels of each measurement and of all."""
    X, y = load_iris(return_X_y=True)
    return X[y > 0], y[y > 0] - 1, [KernelSpec("gaussian", "each", {"width": [0.5, 2.0]}), KernelSpec("linear", "all")]


@pytest.fixture(scope="module", params=[breast_cancer, iris], ids=lambda load: load.__name__)
def fitted(request):
    """A problem with its model, the fit of its weights, and the signs of the new samples."""
    X, y, specs = request.param()
    order = np.random.default_rng(0).permutation(len(X))
    train, new = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + 200]
    bank = KernelBank(specs, standardise=True, scaling="spherical")
    kernels = bank.fit_transform(X[train]).dense().values
    sign = 2.0 * y - 1.0
    problem = Problem(kernels, bank.transform(X[new]).dense().values, sign[train])
    model = labels_model(kernels, bank.kernel_names_, sign[train])
    return problem, model, climb(model, max_iter=100, tol=1e-4).place, sign[new]


def plain_probabilities(problem, model, place):
    """Return probabilities of +1 of the new samples, not calibrated."""
    predictor = place.look.priors[0].predictor(place.look.posteriors[0].condition)
    cross = np.tensordot(model.weights(place.parameters), problem.new, 1)
    mean = (cross @ predictor.dual + predictor.intercept)[:, 0]
    return ndtr(mean / np.sqrt(1.0 + predictor.variance(cross, np.zeros(len(mean)))))


def log_loss(positive, sign):
    return -np.log(np.where(sign > 0.0, positive, 1.0 - positive)).mean()


def test_probabilities_given_the_weights_are_those_of_sampling(fitted):
    """Intermediate outputs change the unit of scores alone, so e has to be longer by as much."""
    problem, model, place, _ = fitted
    weights = np.sqrt(model.amplitudes(place.parameters)[0]) * model.weights(place.parameters)
    e, zeta = NOISE * weights, NOISE**2 * model.bias(place.parameters)
    with_outputs = replace(problem, deviation=np.sqrt((NOISE**2 - 1.0) / (e @ e)))
    drawn = sample_given_weights(with_outputs, e, zeta, np.random.default_rng(0), sweeps=600)
    apart = np.abs(drawn.mean(axis=0) - plain_probabilities(*fitted[:3]))
    # The means of a hundred chains have standard errors of 0.01 at most, and 0.002 on average.
    assert apart.mean() < 0.004
    assert apart.max() < 0.03


def test_probabilities_at_the_best_weights_are_near_those_averaged_over_weights(fitted):
    """One chain is off by 0.015 on average; the maximum stands for weights that differ by factors."""
    problem, model, place, sign = fitted
    rng = np.random.default_rng(0)
    drawn = sample_weights_too(problem, *weights_under(model, place.spreads), rng, sweeps=800).mean(axis=0)
    ours = plain_probabilities(*fitted[:3])
    assert np.abs(drawn - ours).mean() < 0.04
    assert abs(log_loss(drawn, sign) - log_loss(ours, sign)) < 0.06


def test_the_sampler_is_right():
    """Against draws from the prior of everything, weighted by the probability of five labels."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 1))
    kernels = np.exp(-((X - X[:5, 0]) ** 2) / np.array([0.5, 4.0])[:, None, None])
    problem = Problem(kernels[:, :5], kernels[:, 5:], np.array([1.0, -1.0, 1.0, 1.0, -1.0]), deviation=0.5)

    def weights_of(z):
        return np.exp(z[:2] + 1.0), np.exp(z[2])

    scale = np.array([1.0, 1.0, 2.0])
    found = sample_weights_too(problem, weights_of, scale, rng, sweeps=2000).mean(axis=0)
    known = sample_given_weights(problem, np.ones(2), 1.0, rng).mean(axis=0)
    z, v = rng.normal(size=(3, 40_000)), rng.normal(size=(6, 40_000))
    assert_allclose(found, weighted(problem, *weights_of(z), v), atol=0.03)
    assert_allclose(known, weighted(problem, np.ones((2, 1)), np.ones(1), v), atol=0.01)


def weighted(problem, e, zeta, v):
    """Average probabilities over draws from the prior with the labels' probabilities as weights, one column a draw."""
    every = np.concatenate([problem.kernels, problem.new], axis=1)
    eta = sum(e * (kernel @ v[:-1]) for e, kernel in zip(e, every, strict=True)) / np.sqrt(5.0) + np.sqrt(zeta) * v[-1]
    positive = ndtr(eta / np.sqrt(1.0 + problem.deviation**2 * np.square(e).sum(axis=0)))
    likelihood = np.where(problem.sign[:, None] > 0.0, positive[:5], 1.0 - positive[:5]).prod(axis=0)
    return positive[5:] @ likelihood / likelihood.sum()
