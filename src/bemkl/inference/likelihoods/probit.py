"""The paper's classification likelihood: a score on the label's side of a margin."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_ndtr, ndtr

from bemkl.arrays import Array, finite_number, outputs_first
from bemkl.distributions import PointMass, Precision, TruncatedNormal
from bemkl.inference.moments import OutputPrediction, Profile
from bemkl.inference.protocols import Rule

LARGEST_MARGIN = 1e3
"""Largest margin, in deviations of the score."""


class Scores(Protocol):
    """Normal variables of unit variance that are kept in some region."""

    @property
    def location(self) -> Array:
        """Means before truncation."""

    @property
    def log_mass(self) -> Array:
        """Logarithms of the masses that truncation keeps."""

    @property
    def mean(self) -> Array:
        """Means after truncation."""

    @property
    def variance(self) -> Array:
        """Variances after truncation."""


@dataclass(frozen=True, slots=True, eq=False)
class ProbitTargets:
    """Truncated normal factor of the scores f."""

    scores: Scores  # one entry an output and sample, shape (n_outputs, n_samples)
    target: Array  # (n_outputs, n_samples): their means

    @property
    def location(self) -> Array | None:
        """None: the factor follows from the others."""
        return None


class Probit:
    r"""
    Labels as the signs of scores that keep a margin (paper, section 3).

    .. math:: f_i \mid \eta_i \sim \mathcal{N}(\eta_i, 1), \qquad y_i f_i > \nu

    Several columns of labels are the paper's multiclass model (section 5.1): a classifier a column, all with the
    same kernel weights.

    Parameters
    ----------
    y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        Labels, -1 or +1.
    margin : float
        Margin :math:`\nu`, at least 0.

    Examples
    --------
    >>> Probit([1, -1, -1], margin=0.5).n_samples
    3
    """

    _sign: Array  # (n_outputs, n_samples): labels
    margin: float

    def __init__(self, y: npt.ArrayLike, *, margin: float = 1.0) -> None:
        self._sign = outputs_first("y", y)
        strange = np.setdiff1d(self._sign, [-1.0, 1.0])
        if strange.size:
            raise ValueError(
                f"y: expected labels -1 and +1, got the values {strange[:5].tolist()}. "
                "Code the classes as -1 and +1, one column a class where there are more than two."
            )
        self.margin = finite_number("margin", margin, least=0.0, allow_least=True, most=LARGEST_MARGIN)

    @property
    def n_samples(self) -> int:
        """Number of training samples."""
        return int(self._sign.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self._sign)

    @property
    def rehearsal(self) -> Probit | None:
        """None: there is nothing easier to start from."""
        return None

    def some(self, samples: slice) -> Self:
        """Return the same link for some of the samples."""
        part = copy(self)
        part._sign = self._sign[:, samples].copy()  # not a view of all samples
        return part

    def restored(self, location: Array | None) -> ProbitTargets:
        """
        Return the factor of the scores with the given means before truncation.

        Shapes: location (n_outputs, n_samples).
        """
        scores = self._scores(np.zeros_like(self._sign) if location is None else location)
        return ProbitTargets(scores, scores.mean)

    def _scores(self, location: Array) -> Scores:
        return TruncatedNormal(location, self._sign, self.margin)

    def start(self) -> ProbitTargets:
        """Return the scores that go with a predictor of zero."""
        return self.restored(None)

    def update(self, targets: ProbitTargets, mean: Array) -> ProbitTargets:
        """
        Update q(f) (paper, section 4.1): truncated normals around the predictor's mean.

        Shapes: mean (n_outputs, n_samples).
        """
        return self.restored(mean)

    def profile(self, targets: ProbitTargets, precision: Array, mean: Array) -> Profile:
        r"""
        Derivatives of the log mass :math:`\log\Phi(y\,\eta - \nu)`, which the bound keeps with an optimal q(f).

        Shapes: precision (n_outputs,), mean (n_outputs, n_samples).
        """
        scores = self._scores(mean)
        return Profile(scores.mean - mean, 1.0 - scores.variance)

    def fit(self, targets: ProbitTargets, mean: Array) -> float:
        r"""
        Sum the expected log density of the scores and their entropy, but for the variance of the predictor.

        .. math:: \sum_i \log Z_i + \tfrac12 (\tilde f_i - m_i)^2 - \tfrac12 (\tilde f_i - \tilde\eta_i)^2

        The variance of f cancels. The two squares differ only while the location m, where q(f) was built, is not the
        predictor's current mean; written as a product they do not cancel digits.

        Shapes: mean (n_outputs, n_samples).
        """
        return truncated_fit(targets.scores, targets.target, mean)

    def noise(self, fit: float, variance: Array) -> PointMass:
        """Return ones: the scale of a score is fixed by the model. Shapes: variance (n_outputs,)."""
        return PointMass(1.0)

    def bound_terms(self, noise: Precision, fit: float, variance: Array) -> dict[str, float]:
        r"""
        Return the expected log density of the scores plus their entropy (derivation, section 4).

        Shapes: variance (n_outputs,).
        """
        return {"output": fit - 0.5 * float(variance.sum())}

    def predict(self, noise: Precision, mean: Array, variance: Array, rule: Rule) -> OutputPrediction:
        r"""
        Turn moments of the predictor into a score and the probability of +1.

        The exact rule is :math:`\Phi(\mu / s)` with s the standard deviation of the score. The paper's rule
        renormalises :math:`\Phi((\pm\mu - \nu) / s^2)` over the two labels, **with the variance in the denominator**
        (derivation, erratum 3).

        Shapes: mean (n_outputs, n_samples), variance (n_outputs, n_samples).
        """
        score_variance = 1.0 + variance
        if rule == "exact":
            probability = ndtr(mean / np.sqrt(score_variance))
        else:
            positive = log_ndtr((mean - self.margin) / score_variance)
            negative = log_ndtr((-mean - self.margin) / score_variance)
            probability = expit(positive - negative)
        return OutputPrediction(mean, score_variance, probability)


def truncated_fit(scores: Scores, target: Array, mean: Array) -> float:
    """Sum what the bound keeps of truncated scores, as in `Probit.fit`. Shapes: target, mean (n_outputs, n_samples)."""
    m = scores.location
    squares = 0.5 * (mean - m) * (2.0 * target - m - mean)
    return float(scores.log_mass.sum() + squares.sum())


PARTS = {Probit: {"_sign": "L n"}}
