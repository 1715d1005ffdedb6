"""The evidence, its gradient and its curvature, against other ways to the same numbers."""

from itertools import pairwise

import numpy as np
import pytest
from marginal_problems import (
    COLUMNS,
    EQUAL,
    LIKELIHOODS,
    MATRICES,
    PREDICTOR,
    PRIORS,
    RESPONSES,
    RNG,
    SIGNS,
    N,
    X,
    model_of,
    somewhere,
)
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from bemkl.kernels import DenseStack
from bemkl.marginal.approximation import approximate
from bemkl.marginal.covariance import FullCovariance, LowRankCovariance
from bemkl.marginal.criteria import Evidence
from bemkl.marginal.functions import SampleWeights, SumOfProcesses
from bemkl.marginal.kernels import SumOfKernels
from bemkl.marginal.likelihoods import Gaussian, Probit

NOISE = np.log(0.3)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("prior", PRIORS)
class TestDerivatives:
    def test_gradient(self, prior, likelihood):
        model = model_of(prior, LIKELIHOODS[likelihood])
        parameters = somewhere(model)

        def value(at):
            return model.look(at, [None]).value

        steps = 1e-5 * np.eye(len(parameters))
        slopes = [(value(parameters + step) - value(parameters - step)) / 2e-5 for step in steps]
        # Inner steps end where the bound changes by 1e-9 a sample: the quotient has about the root of that.
        assert_allclose(model.look(parameters, [None]).gradient, slopes, rtol=1e-4, atol=2e-4)

    def test_curvature_is_that_of_the_expected_evidence(self, prior, likelihood):
        """Against the trace, with derivatives of the covariance by differences."""
        model = model_of(prior, LIKELIHOODS[likelihood])
        parameters = somewhere(model)
        look = model.look(parameters, [None])
        residual = look.posteriors[0].condition.residual_times(np.eye(N))

        def covariance(at):
            prior_at = model.units[0].prior.at(model.weights(at), model.amplitudes(at)[0], model.bias(at))
            features = getattr(prior_at.covariance, "features", None)
            matrix = prior_at.covariance.values if features is None else features @ features.T
            own = model.own(at)[0]
            return matrix + np.exp(own[0]) * np.eye(N) if len(own) else matrix

        steps = 1e-5 * np.eye(len(parameters))
        slopes = [residual @ (covariance(parameters + s) - covariance(parameters - s)) / 2e-5 for s in steps]
        outputs = LIKELIHOODS[likelihood].n_outputs
        expected = 0.5 * outputs * np.array([[np.vdot(one.T, other) for other in slopes] for one in slopes])
        assert_allclose(model.curvature(parameters, look), expected, rtol=1e-4, atol=1e-4)


def test_curvature_of_many_samples_is_nearly_exact(monkeypatch):
    model = model_of("sum", LIKELIHOODS["probit"])
    parameters = somewhere(model)
    look = model.look(parameters, [None])
    exact = model.curvature(parameters, look)
    monkeypatch.setattr("bemkl.marginal.criteria._EXACT", 10)
    drawn = model.curvature(parameters, look)
    assert_allclose(drawn, drawn.T)
    # 48 directions: relative errors of a trace are at most about the root of 2 / 48.
    assert np.linalg.norm(drawn - exact) < 0.25 * np.linalg.norm(exact)


@pytest.mark.parametrize("name", ["sum", "kernel", "samples"])
def test_responses_are_those_of_scikit_learn(name):
    """Evidence, means and deviations of its process with the same combined kernel, or linear in the same features."""
    kinds = [RBF([0.8, 1e3, 1e3]), RBF([1e3, 0.8, 1e3]), RBF(1.3), DotProduct(0.5)]
    weights, bias, noise = np.array([0.5, 0.2, 0.7, 0.1]), 0.4, np.exp(NOISE)
    new = np.random.default_rng(1).normal(size=(20, 3))
    kernels = SumOfKernels.of(DenseStack(np.array([kind(X) for kind in kinds])), columns=range(4))
    cross = np.tensordot(weights, [kind(new, X) for kind in kinds], 1)
    prior = {
        "sum": SumOfProcesses(kernels),
        "kernel": SampleWeights.of_mean_kernel(kernels, kernels, np.full(4, 0.25)),
        "samples": SampleWeights.independent(kernels),
    }[name]
    if name == "sum":
        train, query, kernel = X, new, ConstantKernel(bias)
        for weight, kind in zip(weights, kinds, strict=True):
            kernel = kernel + ConstantKernel(weight) * kind
    else:
        train, query = kernels.combine(weights) @ prior.root, cross @ prior.root
        kernel = DotProduct(np.sqrt(bias))
    reference = GaussianProcessRegressor(kernel + WhiteKernel(noise), alpha=0.0, optimizer=None).fit(train, RESPONSES)
    here = prior.at(weights, 1.0, bias)
    found = approximate(here.covariance, Gaussian(RESPONSES[:, None]), np.array([NOISE]))
    assert_allclose(found.bound, reference.log_marginal_likelihood_value_, rtol=1e-10)
    predictor = here.predictor(found.condition)
    mean, std = reference.predict(query, return_std=True)
    assert_allclose((cross @ predictor.dual + predictor.intercept)[:, 0], mean, rtol=1e-8, atol=1e-10)
    own = weights @ [kind.diag(new) for kind in kinds]
    assert_allclose(predictor.variance(cross, own) + noise, std**2, rtol=1e-10)


@pytest.mark.parametrize("name", ["kernel", "sum"])
def test_one_kernel_is_the_ordinary_gaussian_process(name):
    """With one kernel, functions of the mean kernel and the sum are processes with that kernel: evidence and slope."""
    alone = SumOfKernels.of(DenseStack(MATRICES[:1]), columns=[0])
    one = np.ones(1)
    prior = SumOfProcesses(alone) if name == "sum" else SampleWeights.of_mean_kernel(alone, alone, one)
    kernel = ConstantKernel(2.0) * RBF([0.5, 1e6, 1e6]) + ConstantKernel(0.5)
    scaled = X / X.std(axis=0)
    reference = GaussianProcessRegressor(kernel + WhiteKernel(np.exp(NOISE)), alpha=0.0, optimizer=None)
    value, slopes = reference.fit(scaled, RESPONSES).log_marginal_likelihood(
        reference.kernel_.theta, eval_gradient=True
    )
    here = prior.at(one, 2.0, 0.5)
    found = approximate(here.covariance, Gaussian(RESPONSES[:, None]), np.array([NOISE]))
    # The mean kernel is inverted with a jitter of 1e-8 of its diagonal.
    assert_allclose(found.bound, value, rtol=1e-10 if name == "sum" else 1e-5)
    slope = here.gradient(Evidence().worth(found).pull)[0] / prior.degree
    assert_allclose(slope, slopes[0], rtol=1e-8 if name == "sum" else 1e-4)


@pytest.mark.parametrize("name", ["sum", "kernel", "samples"])
def test_copies_of_kernels_that_share_a_weight_change_nothing(name):
    every, some = SumOfKernels.of(DenseStack(MATRICES), COLUMNS), [0, 6]
    copied = SumOfKernels.of(DenseStack(np.concatenate([MATRICES, MATRICES[some]])), [*COLUMNS, "copy", "copies"])
    shared = np.concatenate([EQUAL, 0.3 * EQUAL[some]])
    shared[some] *= 0.7
    found = []
    for kernels, weights in ((every, EQUAL), (copied, shared)):
        prior = {
            "sum": SumOfProcesses(kernels),
            "kernel": SampleWeights.of_mean_kernel(kernels, kernels, weights),
            "samples": SampleWeights.independent(kernels),
        }[name].at(weights, 3.0, 1.0)
        posterior = approximate(prior.covariance, Probit(SIGNS), np.empty(0))
        found.append((posterior, prior.gradient(Evidence().worth(posterior).pull)))
    (one, slope), (other, copied_slope) = found
    assert_allclose(other.bound, one.bound, rtol=1e-8)
    assert_allclose(other.condition.mean, one.condition.mean, atol=1e-5)
    assert_allclose(copied_slope, np.concatenate([slope, slope[some]]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["sum", "kernel", "samples"])
def test_covariances_are_those_of_what_is_generated(name):
    """
    Draws of each generative model, with a bias and noise.

    The paper's: sample weights a, intermediate outputs with noise of their own, their combination with weights e. The
    other ones: sample weights with the covariance of the mean kernel's, or a function for each kernel.
    """
    rng, draws, deviation = np.random.default_rng(0), 40_000, 0.3
    e = rng.uniform(0.5, 1.5, size=len(MATRICES)) * EQUAL
    drawn = np.sqrt(0.5) * rng.normal(size=(draws, 1)) + rng.normal(size=(draws, 5))
    noise = 1.0
    if name == "sum":
        for weight, matrix in zip(e, MATRICES, strict=True):
            values, vectors = np.linalg.eigh(matrix[:5, :5])
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            drawn += np.sqrt(weight) * rng.normal(size=(draws, 5)) @ root.T
    else:
        a = rng.normal(size=(draws, N)) @ PRIORS[name].root.T
        for weight, matrix in zip(e, MATRICES, strict=True):
            drawn += weight * (a @ matrix[:5].T + deviation * rng.normal(size=(draws, 5)))
        noise += deviation**2 * (e @ e)
    covariance = PRIORS[name].at(e, 1.0, 0.5).covariance
    matrix = covariance.values if name == "sum" else covariance.features @ covariance.features.T
    expected = matrix[:5, :5] + noise * np.eye(5)
    # Five standard errors of each of the fifteen covariances of draws.
    variance = expected.diagonal()
    error = np.sqrt((np.outer(variance, variance) + expected**2) / draws)
    assert np.abs((drawn.T @ drawn / draws - expected) / error).max() < 5.0


@pytest.mark.parametrize("name", ["sum", "kernel", "samples"])
def test_landmarks_at_all_samples_change_nothing(name):
    every = np.arange(N)
    kernels = PRIORS["sum"].kernels
    prior = PRIORS["sum by landmarks"]
    if name == "sum":
        prior = type(prior)(kernels, kernels.among(every), kernels.diagonals)
        found = approximate(prior.at(EQUAL, 1.0, 1.0).covariance, Probit(SIGNS), np.empty(0)).bound
        whole = approximate(PRIORS["sum"].at(EQUAL, 1.0, 1.0).covariance, Probit(SIGNS), np.empty(0)).bound
        assert_allclose(found, whole, rtol=1e-5)  # the jitter of 1e-8 is seen through its inverse
        return
    features = PRIORS[name].at(EQUAL, 1.0, 1.0).covariance.features
    low_rank = approximate(LowRankCovariance(features), Probit(SIGNS), np.empty(0))
    full = approximate(FullCovariance(features @ features.T), Probit(SIGNS), np.empty(0))
    assert_allclose(low_rank.bound, full.bound, rtol=1e-9)
    assert_allclose(low_rank.condition.variance, full.condition.variance, rtol=1e-6)


class TestLabels:
    def test_bound_of_one_sample_is_below_quadrature_and_close(self):
        found = approximate(FullCovariance(np.array([[2.0]])), Probit([1.0]), np.empty(0)).bound
        mass = quad(lambda z: norm.pdf(z) * ndtr(np.sqrt(2.0) * z), -9, 9)[0]
        assert found < np.log(mass) < found + 0.05

    def test_bound_of_two_samples_is_below_quadrature_and_close(self):
        covariance, sign = np.array([[2.0, 1.2], [1.2, 1.5]]), np.array([1.0, -1.0])
        found = approximate(FullCovariance(covariance), Probit(sign), np.empty(0)).bound
        nodes, masses = np.polynomial.hermite_e.hermegauss(100)
        predictors = np.linalg.cholesky(covariance) @ np.array(np.meshgrid(nodes, nodes)).reshape(2, -1)
        likelihood = ndtr(sign[:, None] * predictors).prod(axis=0)
        mass = likelihood @ np.outer(masses, masses).ravel() / (2.0 * np.pi)
        assert found < np.log(mass) < found + 0.1

    def test_bound_is_below_annealed_importance_sampling(self):
        covariance = PRIORS["sum"].at(EQUAL, 4.0, 1.0).covariance.values[:40, :40]
        found = approximate(FullCovariance(covariance), Probit(SIGNS[:40]), np.empty(0)).bound
        estimate, error = annealed(covariance, SIGNS[:40], np.random.default_rng(0))
        assert found < estimate + 2.0 * error
        assert found > estimate - 1.0

    def test_posterior_is_that_of_elliptical_slice_sampling(self):
        covariance = PRIORS["sum"].at(EQUAL, 2.0, 1.0).covariance.values
        found = approximate(FullCovariance(covariance), Probit(SIGNS), np.empty(0)).condition
        draws = sliced(covariance, SIGNS, np.random.default_rng(0), 6000)[1000:]
        # Some hundreds of independent draws, and a Gaussian for what is a little skewed.
        deviation = np.sqrt(found.variance)
        assert np.abs((draws.mean(axis=0) - found.mean[:, 0]) / deviation).max() < 0.3
        assert_allclose(draws.std(axis=0), deviation, rtol=0.2)

    def test_inner_steps_raise_the_bound(self):
        covariance = FullCovariance(PRIORS["sum"].at(EQUAL, 50.0, 1.0).covariance.values)
        likelihood, here, bounds = Probit(SIGNS), None, []
        for _ in range(3):
            found = approximate(covariance, likelihood, np.empty(0), here)
            here = found.sites
            bounds.append(found.bound)
        assert np.all(np.diff(bounds) >= -1e-7)
        assert found.steps < 30

    def test_extreme_covariances_have_finite_answers(self):
        for amplitude in (1e-8, 1e8):
            covariance = FullCovariance(PRIORS["sum"].at(EQUAL, amplitude, 1.0).covariance.values)
            found = approximate(covariance, Probit(SIGNS), np.empty(0))
            assert np.isfinite(found.bound)
            assert np.isfinite(found.left_out()[0]).all()


class TestLeavingOut:
    def test_responses_exactly(self):
        covariance = PRIORS["sum"].at(EQUAL, 1.0, 1.0).covariance.values
        mean, variance = approximate(
            FullCovariance(covariance), LIKELIHOODS["two outputs"], np.array([NOISE])
        ).left_out()
        y = LIKELIHOODS["two outputs"].y
        for i in (0, 7):
            rest = np.delete(np.arange(N), i)
            inverse = np.linalg.inv(covariance[np.ix_(rest, rest)] + np.exp(NOISE) * np.eye(N - 1))
            cross = covariance[i, rest]
            assert_allclose(mean[i], cross @ inverse @ y[rest], rtol=1e-8)
            assert_allclose(variance[i], covariance[i, i] - cross @ inverse @ cross, rtol=1e-8)

    @pytest.mark.parametrize("form", ["full", "low rank"])
    def test_labels_nearly(self, form):
        """Against fits without the sample: the others' sites hardly move."""
        features = PRIORS["samples"].at(EQUAL, 30.0, 1.0).covariance.features
        matrix = features @ features.T
        whole = FullCovariance(matrix) if form == "full" else LowRankCovariance(features)
        mean, variance = approximate(whole, Probit(SIGNS), np.empty(0)).left_out()
        for i in (0, 7, 20):
            rest = np.delete(np.arange(N), i)
            without = approximate(FullCovariance(matrix[np.ix_(rest, rest)]), Probit(SIGNS[rest]), np.empty(0))
            cross = matrix[i, rest]
            left = matrix[i, i] - cross @ without.condition.residual_times(cross[:, None])[:, 0]
            assert_allclose(mean[i, 0], cross @ without.condition.alpha[:, 0], atol=0.1 * np.sqrt(left))
            assert_allclose(variance[i], left, rtol=0.15)

    @pytest.mark.parametrize("form", ["full", "low rank"])
    def test_with_partners_exactly(self, form):
        features = PRIORS["samples"].at(EQUAL, 30.0, 1.0).covariance.features
        covariance, y = features @ features.T, RESPONSES
        whole = FullCovariance(covariance) if form == "full" else LowRankCovariance(features)
        partners = np.column_stack([(np.arange(N) + 1) % N, (np.arange(N) + 5) % N])
        mean, variance = approximate(whole, Gaussian(y[:, None]), np.array([NOISE])).left_out_with(partners)
        expected = []
        for partner in partners[3]:
            rest = np.setdiff1d(np.arange(N), [3, partner])
            inverse = np.linalg.inv(covariance[np.ix_(rest, rest)] + np.exp(NOISE) * np.eye(N - 2))
            cross = covariance[3, rest]
            expected.append([cross @ inverse @ y[rest], covariance[3, 3] - cross @ inverse @ cross])
        assert_allclose([mean[3, 0], variance[3]], np.mean(expected, axis=0), rtol=1e-8)

    def test_noise_that_is_next_to_nothing(self):
        covariance = PRIORS["sum"].at(EQUAL, 1.0, 1.0).covariance.values
        mean, variance = approximate(
            FullCovariance(covariance), Gaussian(PREDICTOR[:, None]), np.array([-20.0])
        ).left_out()
        rest = np.arange(1, N)
        inverse = np.linalg.inv(covariance[np.ix_(rest, rest)] + np.exp(-20.0) * np.eye(N - 1))
        assert_allclose(mean[0, 0], covariance[0, rest] @ inverse @ PREDICTOR[rest], rtol=1e-3)
        assert variance.min() > 0.0


def sliced(covariance, sign, rng, count):
    """Draw predictors of labels by elliptical slice sampling."""
    root = np.linalg.cholesky(covariance + 1e-9 * np.eye(len(sign)))
    here, draws = np.zeros(len(sign)), np.empty((count, len(sign)))
    for row in draws:
        here = _slice(here, root, lambda f: np.log(ndtr(sign * f) + 1e-300).sum(), rng)
        row[:] = here
    return draws


def annealed(covariance, sign, rng, chains=12, steps=150):
    """Return the logarithm of the evidence of labels by annealed importance sampling, with its standard error."""
    root = np.linalg.cholesky(covariance + 1e-9 * np.eye(len(sign)))
    temperatures = np.linspace(0.0, 1.0, steps) ** 3
    logs = []
    for _ in range(chains):
        here, log_weight = root @ rng.normal(size=len(sign)), 0.0
        for cold, warm in pairwise(temperatures):
            log_weight += (warm - cold) * np.log(ndtr(sign * here) + 1e-300).sum()
            here = _slice(here, root, lambda f, t=warm: t * np.log(ndtr(sign * f) + 1e-300).sum(), rng)
        logs.append(log_weight)
    weights = np.exp(np.array(logs) - max(logs))
    return max(logs) + np.log(weights.mean()), weights.std() / weights.mean() / np.sqrt(chains)


def _slice(here, root, log_density, rng):
    """Take one elliptical slice."""
    other, level = root @ rng.normal(size=len(here)), log_density(here) + np.log(rng.uniform())
    angle = rng.uniform(0.0, 2.0 * np.pi)
    low, high = angle - 2.0 * np.pi, angle
    while True:
        there = here * np.cos(angle) + other * np.sin(angle)
        if log_density(there) > level:
            return there
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = rng.uniform(low, high)


def test_draws_have_the_covariance_they_claim():
    for name in ("sum", "samples"):
        condition = approximate(PRIORS[name].at(EQUAL, 10.0, 1.0).covariance, Probit(SIGNS), np.empty(0)).condition
        exact = condition.residual_draws(np.eye(N))
        assert_allclose(exact @ exact.T, condition.residual_times(np.eye(N)), atol=1e-8)


def test_weights_do_not_depend_on_the_order_of_samples():
    order = RNG.permutation(N)
    covariance = PRIORS["sum"].at(EQUAL, 2.0, 1.0).covariance.values
    one = approximate(FullCovariance(covariance), Probit(SIGNS), np.empty(0))
    other = approximate(FullCovariance(covariance[np.ix_(order, order)]), Probit(SIGNS[order]), np.empty(0))
    assert_allclose(other.bound, one.bound, rtol=1e-10)
    assert_allclose(other.condition.mean, one.condition.mean[order], atol=1e-8)
