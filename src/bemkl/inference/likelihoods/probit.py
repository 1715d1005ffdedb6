"""The paper's classification likelihood: a score on the label's side of a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_ndtr, ndtr

from bemkl.arrays import Array, finite_number
from bemkl.distributions import TruncatedNormal
from bemkl.inference.likelihoods.targets import outputs_first
from bemkl.inference.moments import OutputPrediction, Profile
from bemkl.inference.protocols import Rule
from bemkl.inference.summaries import Predictor

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
class ProbitOutput:
    """Truncated normal factor of the scores f."""

    scores: Scores  # one entry an output and sample, shape (n_outputs, n_samples)
    target: Array  # (n_outputs, n_samples): their means

    @property
    def precision(self) -> Array:
        """Ones: the scale of a score is fixed by the model."""
        return np.ones(len(self.scores.location))


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

    def factor(self, location: Array) -> ProbitOutput:
        """
        Return the factor of the scores with the given means before truncation.

        Parameters
        ----------
        location : ndarray of shape (n_outputs, n_samples)
            Means before truncation.

        Returns
        -------
        ProbitOutput
            The factor.
        """
        scores = self._scores(location)
        return ProbitOutput(scores, scores.mean)

    def _scores(self, location: Array) -> Scores:
        return TruncatedNormal(location, self._sign, self.margin)

    def start(self) -> ProbitOutput:
        """
        Return the scores that go with a predictor of zero.

        Returns
        -------
        ProbitOutput
            The factor.
        """
        return self.factor(np.zeros_like(self._sign))

    def update_precision(self, output: ProbitOutput, predictor: Predictor) -> ProbitOutput:
        """
        Return the output unchanged: the precision of a score is 1.

        Parameters
        ----------
        output : ProbitOutput
            Current factor.
        predictor : Predictor
            Moments of the predictor.

        Returns
        -------
        ProbitOutput
            The same factor.
        """
        return output

    def update_target(self, output: ProbitOutput, predictor: Predictor) -> ProbitOutput:
        """
        Update q(f) (paper, section 4.1): truncated normals around the predictor's mean.

        Parameters
        ----------
        output : ProbitOutput
            Current factor.
        predictor : Predictor
            Moments of the predictor.

        Returns
        -------
        ProbitOutput
            The new factor.
        """
        return self.factor(predictor.mean)

    def profile(self, output: ProbitOutput, mean: Array) -> Profile:
        r"""
        Derivatives of the log mass :math:`\log\Phi(y\,\eta - \nu)`, which the bound keeps with an optimal q(f).

        Parameters
        ----------
        output : ProbitOutput
            Not needed here.
        mean : ndarray of shape (n_outputs, n_samples)
            Means of the predictor.

        Returns
        -------
        Profile
            The shift of the scores' means by truncation, and the variance that it takes away.
        """
        scores = self._scores(mean)
        return Profile(scores.mean - mean, np.maximum(1.0 - scores.variance, 0.0))

    def bound_terms(self, output: ProbitOutput, predictor: Predictor) -> dict[str, float]:
        r"""
        Return the expected log density of the scores plus their entropy (derivation, section 4).

        .. math:: \sum_i \log Z_i + \tfrac12 (\tilde f_i - m_i)^2 - \tfrac12 (\tilde f_i - \tilde\eta_i)^2
                  - \tfrac12 \operatorname{Var} \eta_i

        The variance of f cancels. The two squares differ only while the location m, where q(f) was built, is not the
        predictor's current mean; written as a product they do not cancel digits.

        Parameters
        ----------
        output : ProbitOutput
            Current factor.
        predictor : Predictor
            Moments of the predictor.

        Returns
        -------
        dict of str to float
            The term in nats.
        """
        m, f, eta = output.scores.location, output.target, predictor.mean
        squares = 0.5 * (eta - m) * (2.0 * f - m - eta)
        return {"output": float(np.sum(output.scores.log_mass + squares) - 0.5 * predictor.variance.sum())}

    def predict(self, output: ProbitOutput, mean: Array, variance: Array, rule: Rule) -> OutputPrediction:
        r"""
        Turn moments of the predictor into a score and the probability of +1.

        The exact rule is :math:`\Phi(\mu / s)` with s the standard deviation of the score. The paper's rule
        renormalises :math:`\Phi((\pm\mu - \nu) / s^2)` over the two labels, **with the variance in the denominator**
        (derivation, erratum 3).

        Parameters
        ----------
        output : ProbitOutput
            Fitted factor.
        mean : ndarray of shape (n_outputs, n_samples)
            Means of the predictor.
        variance : ndarray of shape (n_outputs, n_samples)
            Variances of the predictor.
        rule : {"exact", "paper"}
            Which rule.

        Returns
        -------
        OutputPrediction
            Mean and variance of the score, and the probability.
        """
        score_variance = 1.0 + variance
        if rule == "exact":
            probability = ndtr(mean / np.sqrt(score_variance))
        else:
            positive = log_ndtr((mean - self.margin) / score_variance)
            negative = log_ndtr((-mean - self.margin) / score_variance)
            probability = expit(positive - negative)
        return OutputPrediction(mean, score_variance, probability)
