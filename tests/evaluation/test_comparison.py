"""Paired comparisons, against numerical integrals, simulation and the uncorrected tests."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from bemkl.evaluation.comparison import BayesianComparison, correlated_bayes, nadeau_bengio

DIFFERENCES = np.random.default_rng(5).normal(0.01, 0.02, size=12)


def posterior_by_hand(mean, values, rho):
    """
    Return the unnormalised posterior of the mean difference, from the likelihood of correlated normal differences.

    The noninformative prior of mean and variance is integrated over the variance in closed form: what is left is a
    power of the Mahalanobis distance under the correlation matrix.
    """
    n = len(values)
    correlation = np.full((n, n), rho) + (1.0 - rho) * np.eye(n)
    residuals = values - mean
    return (residuals @ np.linalg.solve(correlation, residuals)) ** (-n / 2)


@pytest.mark.parametrize("rho", [0.1, 0.3, 0.5])
def test_posterior_against_integration(rho):
    """The published posterior is that of correlated normal differences: integrate theirs numerically."""
    rope, scale = 0.01, DIFFERENCES.std()

    def mass(lower, upper):
        return quad(lambda m: posterior_by_hand(m, DIFFERENCES, rho), lower, upper, epsabs=0.0, limit=200)[0]

    far = 500.0 * scale
    pieces = np.array([mass(-far, -rope), mass(-rope, rope), mass(rope, far)])
    assert_allclose(correlated_bayes(DIFFERENCES, rho, rope), pieces / pieces.sum(), atol=1e-7)


def test_density_by_hand():
    n, rho, rope = len(DIFFERENCES), 0.25, 0.004
    scale = np.sqrt((1 / n + rho / (1 - rho)) * np.sum((DIFFERENCES - DIFFERENCES.mean()) ** 2) / (n - 1))
    constant = np.exp(gammaln(n / 2) - gammaln((n - 1) / 2)) / np.sqrt((n - 1) * np.pi) / scale

    def density(x):
        return constant * (1 + ((x - DIFFERENCES.mean()) / scale) ** 2 / (n - 1)) ** (-n / 2)

    found = correlated_bayes(DIFFERENCES, rho, rope)
    assert_allclose(found.rope, quad(density, -rope, rope)[0], rtol=1e-9)
    assert_allclose(found.left, quad(density, -np.inf, -rope)[0], rtol=1e-7)
    assert_allclose(sum(found), 1.0)


def test_without_correlation_they_are_the_ordinary_ones():
    t, p = nadeau_bengio(DIFFERENCES, 1e-12)
    ordinary = ttest_1samp(DIFFERENCES, 0.0)
    assert_allclose([t, p], [ordinary.statistic, ordinary.pvalue], rtol=1e-9)
    posterior = student(len(DIFFERENCES) - 1, DIFFERENCES.mean(), DIFFERENCES.std(ddof=1) / np.sqrt(len(DIFFERENCES)))
    expected = [posterior.cdf(-0.01), posterior.cdf(0.01) - posterior.cdf(-0.01), posterior.sf(0.01)]
    assert_allclose(correlated_bayes(DIFFERENCES, 1e-12, 0.01), expected, rtol=1e-9)


def test_the_two_agree_without_a_region():
    """With nothing equivalent, the smaller side is half the p-value: the same Student variable."""
    t, p = nadeau_bengio(DIFFERENCES, 0.3)
    comparison = correlated_bayes(DIFFERENCES, 0.3, 0.0)
    assert comparison.rope == pytest.approx(0.0, abs=1e-15)
    assert_allclose(min(comparison.left, comparison.right), p / 2)
    opposite, same_p = nadeau_bengio(-DIFFERENCES, 0.3)
    assert_allclose([opposite, same_p], [-t, p])
    mirrored = correlated_bayes(-DIFFERENCES, 0.3, 0.0)
    assert_allclose([mirrored.left, mirrored.right], [comparison.right, comparison.left])


def test_the_published_factor():
    """Ten splits, a third tested: the variance is multiplied by 1/10 + 1/2."""
    values = np.arange(10.0)
    t, _ = nadeau_bengio(values, 1.0 / 3.0)
    assert_allclose(t, 4.5 / np.sqrt((0.1 + 0.5) * values.var(ddof=1)))


def test_the_corrected_test_holds_its_level():
    """Under correlated differences with no effect, about one in twenty is significant; the plain test finds more."""
    generator, n, rho = np.random.default_rng(0), 10, 0.2
    common = np.sqrt(rho) * generator.normal(size=(1000, 1))
    samples = common + np.sqrt(1 - rho) * generator.normal(size=(1000, n))
    corrected = np.mean([nadeau_bengio(values, rho)[1] < 0.05 for values in samples])
    plain = np.mean(ttest_1samp(samples, 0.0, axis=1).pvalue < 0.05)
    assert 0.03 < corrected < 0.07
    assert plain > 0.2


@pytest.mark.parametrize(
    ("value", "expected", "t"),
    [
        (0.1, BayesianComparison(0.0, 0.0, 1.0), np.inf),
        (-0.1, BayesianComparison(1.0, 0.0, 0.0), -np.inf),
        (0.005, BayesianComparison(0.0, 1.0, 0.0), np.inf),
        (0.0, BayesianComparison(0.0, 1.0, 0.0), 0.0),
    ],
)
def test_equal_differences(value, expected, t):
    values = [value] * 7
    assert correlated_bayes(values, 0.2, 0.01) == expected
    assert nadeau_bengio(values, 0.2) == (t, 0.0 if t else 1.0)


def test_equal_up_to_rounding():
    assert correlated_bayes([0.8 - 0.7, 0.9 - 0.8, 0.4 - 0.3], 0.2, 0.01) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("differences", "share", "rope", "message"),
    [
        ([0.1], 0.2, 0.0, "two or more"),
        ([], 0.2, 0.0, "two or more"),
        ([[0.1, 0.2]], 0.2, 0.0, "two or more"),
        ([0.1, np.nan], 0.2, 0.0, "differences: expected finite"),
        ([0.1, 0.2], 0.0, 0.0, "test_share"),
        ([0.1, 0.2], 1.0, 0.0, "test_share"),
        ([0.1, 0.2], np.nan, 0.0, "test_share"),
        ([0.1, 0.2], 0.2, -0.01, "rope"),
    ],
)
def test_bad_input(differences, share, rope, message):
    with pytest.raises(ValueError, match=message):
        correlated_bayes(differences, share, rope)
    if message != "rope":
        with pytest.raises(ValueError, match=message):
            nadeau_bengio(differences, share)
