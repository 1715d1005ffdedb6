"""Closed forms of the gamma factor and of a known precision, against numerical integrals."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import gamma as gamma_distribution

from bemkl.distributions import Gamma, PointMass


def expectation(function, shape, scale):
    density = gamma_distribution(shape, scale=scale)
    return quad(lambda x: function(x) * density.pdf(x), 0.0, density.isf(1e-14), limit=400)[0]


@pytest.mark.parametrize(("shape", "scale"), [(1.5, 0.4), (3.0, 2.0), (20.0, 0.1)])
def test_gamma_moments(shape, scale):
    factor = Gamma(shape, scale)
    assert_allclose(factor.mean, expectation(lambda x: x, shape, scale), rtol=1e-7)
    assert_allclose(factor.log_mean, expectation(np.log, shape, scale), rtol=1e-6)
    assert_allclose(factor.inverse_mean, expectation(lambda x: 1.0 / x, shape, scale), rtol=1e-5)


def test_an_infinite_inverse_mean():
    assert_allclose(Gamma(np.array([0.5, 1.0, 2.0]), 1.0).inverse_mean, [np.inf, np.inf, 1.0])


def test_gamma_divergence():
    q, p = Gamma(2.5, 0.7), Gamma(1.2, 1.9)
    logs = [gamma_distribution(float(f.shape), scale=float(f.scale)).logpdf for f in (q, p)]
    assert_allclose(q.divergence(p), expectation(lambda x: logs[0](x) - logs[1](x), 2.5, 0.7), rtol=1e-6)
    assert q.divergence(q) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("prior_shape", [1e-10, 0.3, 15.0, 25.0, 1e4, 1e10, 1e50])
@pytest.mark.parametrize("more", [0.0, 0.5, 40.0])
@pytest.mark.parametrize("ratio", [1e-3, 0.999, 1.0 + 1e-6, 7.0])
def test_gamma_divergence_keeps_its_digits(prior_shape, more, ratio):
    """The textbook's terms grow with the shape and cancel; here they do so with 120 digits."""
    with mpmath.workdps(120):
        a, b = mpmath.mpf(prior_shape + more), mpmath.mpf(prior_shape)
        # The mean as the factor has it: a last digit of it is worth more than the result where shapes are huge.
        q, p = Gamma(prior_shape + more, ratio / (prior_shape + more)), Gamma(prior_shape, 1.0 / prior_shape)
        m = mpmath.mpf(float(q.mean / p.mean))
        exact = (a - b) * mpmath.digamma(a) - mpmath.loggamma(a) + mpmath.loggamma(b) + b - a
        exact += b * mpmath.log(a / b) + b * (m - 1 - mpmath.log(m))
    assert_allclose(q.divergence(p), float(exact), rtol=1e-10, atol=1e-14)


def test_gamma_posterior_is_conjugate():
    """Prior times the likelihood of three normal values is proportional to the posterior."""
    prior, values = Gamma(1.3, 0.8), np.array([0.4, -1.1, 2.0])
    posterior = prior.posterior(len(values), np.sum(values**2))
    x = np.array([0.2, 0.9, 3.0])
    log_joint = gamma_distribution.logpdf(x, 1.3, scale=0.8) + 1.5 * np.log(x) - 0.5 * x * np.sum(values**2)
    log_posterior = gamma_distribution.logpdf(x, posterior.shape, scale=posterior.scale)
    assert_allclose(np.diff(log_joint), np.diff(log_posterior), rtol=1e-12)


def test_divergences_add_up_over_entries():
    prior = Gamma(1.0, 1.0)
    together = prior.posterior(1, np.array([0.5, 2.0])).divergence(prior)
    assert together == pytest.approx(sum(prior.posterior(1, square).divergence(prior) for square in (0.5, 2.0)))


def test_a_known_precision_learns_nothing():
    known = PointMass.from_std(0.5)
    assert known.posterior(100, 3.0) is known
    assert known.divergence(known) == 0.0
    assert_allclose([known.mean, known.log_mean, known.inverse_mean], [4.0, np.log(4.0), 0.25])
