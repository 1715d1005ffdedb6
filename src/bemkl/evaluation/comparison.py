"""Whether one method is better than another, from their scores on the same random splits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from bemkl.arrays import Array, finite_array, finite_number, fraction

# Differences that agree up to this share of the largest one are the same number with other rounding.
_ROUNDING = 1e-12


class BayesianComparison(NamedTuple):
    """
    Probabilities that one method is worse than another, as good for practical purposes, and better.

    Parameters
    ----------
    left : float
        Probability that the mean difference is below minus the width of the region of practical equivalence.
    rope : float
        Probability that it is within that region.
    right : float
        Probability that it is above.
    """

    left: float
    rope: float
    right: float


def nadeau_bengio(differences: npt.ArrayLike, test_share: float) -> tuple[float, float]:
    r"""
    Return the corrected resampled t-test of differences of scores [1]_.

    Training sets of random splits overlap, so that the scores of n splits are worth less than n independent ones. With
    the mean and the variance (over n - 1) of the differences,

    .. math:: t = \frac{\bar d}{\sqrt{(1 / n + n_{test} / n_{train}) \, s^2}}

    has a Student distribution with n - 1 degrees of freedom where the methods are equally good.

    Parameters
    ----------
    differences : array_like of shape (n_splits,)
        Score of one method minus that of the other, on the same split.
    test_share : float
        Share of the samples that each split tests on, between 0 and 1.

    Returns
    -------
    t : float
        The statistic; infinite where all differences are the same and not zero, and 0 where they all are zero.
    p : float
        Two-sided p-value.

    Raises
    ------
    ValueError
        If there are fewer than two differences, one is not finite, or the share is not between 0 and 1.

    References
    ----------
    .. [1] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52, 2003.

    Examples
    --------
    >>> t, p = nadeau_bengio([0.02, 0.01, 0.03, 0.02, 0.01], test_share=0.2)
    >>> round(t, 3), round(p, 3)
    (3.207, 0.033)
    """
    values, share = _differences(differences), fraction("test_share", test_share)
    mean, scale = _location(values, share)
    if scale == 0.0:
        return (float(np.copysign(np.inf, mean)), 0.0) if mean else (0.0, 1.0)
    return mean / scale, float(2.0 * student.sf(abs(mean) / scale, len(values) - 1))


def correlated_bayes(differences: npt.ArrayLike, test_share: float, rope: float) -> BayesianComparison:
    r"""
    Return the Bayesian correlated t-test of differences of scores [1]_, [2]_.

    Differences of any two splits have the correlation :math:`\rho`, for which the share of test samples is the usual
    guess. The posterior of their mean is then Student's with n - 1 degrees of freedom, about the mean of the
    differences, with the scale

    .. math:: \sqrt{\left(\frac{1}{n} + \frac{\rho}{1 - \rho}\right) s^2}

    Parameters
    ----------
    differences : array_like of shape (n_splits,)
        Score of one method minus that of the other, on the same split.
    test_share : float
        Share of the samples that each split tests on, between 0 and 1.
    rope : float
        Half the width of the region of practical equivalence: differences of at most this size do not matter.

    Returns
    -------
    BayesianComparison
        Probabilities that the first method is worse, as good, and better. Where all differences are the same, one of
        them is 1.

    Raises
    ------
    ValueError
        If there are fewer than two differences, one is not finite, the share is not between 0 and 1, or the region's
        width is negative.

    References
    ----------
    .. [1] G. Corani and A. Benavoli, "A Bayesian approach for comparing cross-validated algorithms on multiple data
       sets", Machine Learning 100, 2015.
    .. [2] A. Benavoli, G. Corani, J. Demšar and M. Zaffalon, "Time for a change: a tutorial for comparing multiple
       classifiers through Bayesian analysis", Journal of Machine Learning Research 18, 2017.

    Examples
    --------
    >>> comparison = correlated_bayes([0.02, 0.01, 0.03, 0.02, 0.01], test_share=0.2, rope=0.01)
    >>> [round(probability, 3) for probability in comparison]
    [0.004, 0.11, 0.886]
    """
    values, share = _differences(differences), fraction("test_share", test_share)
    width = finite_number("rope", rope, least=0.0, allow_least=True)
    mean, scale = _location(values, share)
    if scale == 0.0:
        return BayesianComparison(float(mean < -width), float(abs(mean) <= width), float(mean > width))
    left = float(student.cdf(-width, len(values) - 1, mean, scale))
    right = float(student.sf(width, len(values) - 1, mean, scale))
    return BayesianComparison(left, max(0.0, 1.0 - left - right), right)


def _differences(differences: npt.ArrayLike) -> Array:
    values = finite_array("differences", differences)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(
            f"differences: expected one number for each of two or more splits, got shape {values.shape}. "
            "One split has no variance: repeat the experiment."
        )
    return values


def _location(values: Array, share: float) -> tuple[float, float]:
    """Return the mean of the differences and its deviation, with the splits' correlation; 0 for equal differences."""
    if np.ptp(values) <= _ROUNDING * np.abs(values).max():
        return float(values.mean()), 0.0
    return float(values.mean()), float(np.sqrt((1.0 / len(values) + share / (1.0 - share)) * values.var(ddof=1)))
