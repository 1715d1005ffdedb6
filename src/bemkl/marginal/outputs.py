"""From a predictor to responses, labels and classes, with what leave-one-out predictions say of its confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, ndtri, softmax

from bemkl.arrays import Array

_TRUST = np.array([0.5, 1.0])
"""Deviations of the normal priors of a shift, and of the logarithm of a slope: few samples say little of either."""
_LOGISTIC = 1.7
"""Slope at which the logistic function is next to the normal distribution function."""
_COVERAGE = 0.95
"""Share of errors that a deviation's interval should hold."""
_FEW = 20
"""Samples that count as much as knowing nothing of the tails."""
_EXPECTED, _FIRM = np.array([np.log(15.0), 0.0]), np.array([0.5, 1.0])
"""Means and deviations of the normal priors of log t and of s: where all samples are told apart, t has no end."""


class Predicted(NamedTuple):
    """What is said of new samples, one column an output."""

    mean: Array  # (n_samples, n_outputs): scores or responses
    variance: Array  # (n_samples, n_outputs): their variances, noise included
    probability: Array | None  # (n_samples, n_outputs): of +1, or of each class; None for responses


class Output(Protocol):
    """The step from a predictor to what was observed."""

    @property
    def scale(self) -> Array:
        """What predictors are multiplied by to be scores, shape (n_outputs,)."""

    @property
    def shift(self) -> Array:
        """What is added to them then, shape (n_outputs,)."""

    def predict(self, mean: Array, variance: Array) -> Predicted:
        """Turn (n_samples, n_outputs) moments of the predictor into scores and probabilities."""


@dataclass(frozen=True, slots=True, eq=False)
class Responses:
    """Responses with normal noise, and deviations that hold on samples left out."""

    noise: Array  # (n_outputs,): variances
    stretch: Array  # (n_outputs,): what deviations are multiplied by

    @classmethod
    def calibrated(cls, noise: Array, errors: Array) -> Responses:
        """
        Learn from standardised errors of predictions of each sample by the other ones.

        Deviations are stretched so that 95 % intervals hold as many of these errors, and by less where there are few.

        Shapes: noise (n_outputs,), errors (n_samples, n_outputs).
        """
        n_samples = len(errors)
        rank = min(int(np.ceil(_COVERAGE * (n_samples + 1))), n_samples) - 1
        reach = np.sort(np.abs(errors), axis=0)[rank] / ndtri(0.5 + 0.5 * _COVERAGE)
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(reach), -1.0)
        return cls(noise, np.exp(logs * n_samples / (n_samples + _FEW)))

    @property
    def scale(self) -> Array:
        """Ones: the predictor is the response."""
        return np.ones_like(self.noise)

    @property
    def shift(self) -> Array:
        """Zeros."""
        return np.zeros_like(self.noise)

    def predict(self, mean: Array, variance: Array) -> Predicted:
        """Add the noise. Shapes: mean (n_samples, n_outputs), variance (n_samples, n_outputs)."""
        return Predicted(mean, self.stretch**2 * (variance + self.noise), None)


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    r"""
    Labels of two classes each, with :math:`P(+1) = 1 / (1 + e^{-a (\mu + \delta) / \sqrt{1 + \sigma^2}})`.

    The logistic function has longer tails than the normal one: what is surely wrong costs less.
    """

    shift: Array  # (n_outputs,): the shifts δ
    slope: Array  # (n_outputs,): the slopes a

    @classmethod
    def calibrated(cls, sign: Array, mean: Array, variance: Array) -> Labels:
        """
        Learn from predictions of each sample by the other ones.

        Shapes: sign (n_samples, n_outputs), mean (n_samples, n_outputs), variance (n_samples, n_outputs).
        """
        found = [_shift_and_slope(*columns) for columns in zip(sign.T, mean.T, variance.T, strict=True)]
        shift, slope = np.array(found).T
        return cls(shift, slope)

    @property
    def scale(self) -> Array:
        """Ones: scores are predictors, shifted."""
        return np.ones_like(self.slope)

    def predict(self, mean: Array, variance: Array) -> Predicted:
        """Return probabilities of +1. Shapes: mean (n_samples, n_outputs), variance (n_samples, n_outputs)."""
        score = mean + self.shift
        return Predicted(score, 1.0 + variance, expit(self.slope * score / np.sqrt(1.0 + variance)))


def _shift_and_slope(sign: Array, mean: Array, variance: Array) -> tuple[float, float]:
    """Fit both numbers by their log density. Shapes: sign, mean, variance (n_samples,)."""
    length = 1.0 / np.sqrt(1.0 + variance)

    def cost(at: Array) -> tuple[float, Array]:
        slope = _LOGISTIC * np.exp(at[1])
        depth = sign * slope * (mean + at[0]) * length
        pull = expit(-depth)
        gradient = -np.array([np.sum(pull * sign * slope * length), np.sum(pull * depth)]) + at / _TRUST**2
        return -float(log_expit(depth).sum()) + 0.5 * float(np.sum((at / _TRUST) ** 2)), gradient

    shift, log_slope = minimize(cost, np.zeros(2), jac=True, method="L-BFGS-B").x
    return float(shift), _LOGISTIC * float(np.exp(log_slope))


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    r"""
    One class of several, by scores that are responses to its indicator.

    .. math:: p(c) \propto \exp(t\,f_c + s \log \pi_c)

    with the response f of the indicator, and the share of the class in training.
    """

    share: Array  # (n_classes,): shares π of the classes
    size: float  # what indicators less their shares were divided by
    temperature: float  # the number t
    tilt: float  # the number s

    prior_precision = np.diag(_FIRM**-2.0)
    """Precisions of the normal priors of log t and s."""

    @classmethod
    def calibrated(cls, label: npt.NDArray[np.intp], share: Array, size: float, mean: Array) -> tuple[Self, float]:
        """
        Learn from predictions of each sample by the other ones; return the log probability, with its prior, as well.

        Shapes: label (n_samples,), share (n_classes,), mean (n_samples, n_classes).
        """
        scores, logs, rows = size * mean + share, np.log(share), np.arange(len(label))

        def cost(at: Array) -> tuple[float, Array]:
            temperature, away = np.exp(at[0]), at - _EXPECTED
            found = log_softmax(temperature * scores + at[1] * logs, axis=1)
            wrong = np.exp(found)
            wrong[rows, label] -= 1.0
            gradient = np.array([temperature * np.vdot(wrong, scores), float((wrong @ logs).sum())])
            penalty = 0.5 * float(np.sum((away / _FIRM) ** 2))
            return penalty - float(found[rows, label].sum()), gradient + away / _FIRM**2

        best = minimize(cost, _EXPECTED, jac=True, method="L-BFGS-B")
        return cls(share, size, float(np.exp(best.x[0])), float(best.x[1])), -float(best.fun)

    @property
    def scale(self) -> Array:
        """Scores of one unit are what the exponential takes."""
        return np.full(len(self.share), self.temperature * self.size)

    @property
    def shift(self) -> Array:
        """Scores of classes that nothing is known of."""
        shift: Array = self.temperature * self.share + self.tilt * np.log(self.share)
        return shift

    def probability(self, mean: Array) -> Array:
        """Return probabilities of the classes. Shapes: mean (n_samples, n_classes)."""
        probability: Array = softmax(self.scale * mean + self.shift, axis=1)
        return probability

    def slopes(self, mean: Array) -> Array:
        """Return what one more of log t and of s adds to t f + s log π, over t. Shapes: returns (2, n, n_classes)."""
        tilts = np.broadcast_to(np.log(self.share) / self.temperature, mean.shape)
        return np.stack([self.size * mean + self.share, tilts])

    def predict(self, mean: Array, variance: Array) -> Predicted:
        """Return probabilities. Shapes: mean (n_samples, n_classes), variance (n_samples, n_classes)."""
        return Predicted(self.scale * mean + self.shift, self.scale**2 * variance, self.probability(mean))


def indicators(label: npt.NDArray[np.intp], n_classes: int) -> tuple[Array, Array, float]:
    """
    Return responses that tell the classes, their shares, and what the responses were divided by.

    Shapes: label (n_samples,); returns responses (n_samples, n_classes), share (n_classes,).
    """
    hits = np.eye(n_classes)[label]
    share = hits.mean(axis=0)
    size = float(np.sqrt(np.mean((hits - share) ** 2)))
    return (hits - share) / size, share, size
