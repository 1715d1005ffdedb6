"""What was observed of the training samples: likelihoods to fit, and the step from predictors to what is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.marginal.approximation import Approximation
from bemkl.marginal.criteria import Criterion, Evidence, LeftOutClasses
from bemkl.marginal.likelihoods import Gaussian, Likelihood, Probit
from bemkl.marginal.outputs import Classes, Labels, Output, Responses, indicators

_SIGNAL_OF_LABELS = 1.0
"""Expected logarithm of the variance of a predictor of labels: most probabilities away from one half."""
_NOISE_OF_INDICATORS = 0.1
"""Variance of the noise of standardised indicators."""
_PARTNERS = 8
"""Samples of the other label that are left out with each one, in turn."""


class Observed(Protocol):
    """What was observed of the training samples."""

    @property
    def likelihoods(self) -> Sequence[Likelihood]:
        """Units of outputs: those of one unit have their noise in common."""

    @property
    def criterion(self) -> Criterion:
        """What parameters are judged by."""

    @property
    def signal(self) -> float:
        """Expected logarithm of the variance of a predictor."""

    def output(self, posteriors: Sequence[Approximation], own: Sequence[Array]) -> Output:
        """Return the step from predictors to what is asked of new samples, given the likelihoods' parameters."""

    def log_density(self, posteriors: Sequence[Approximation], output: Output) -> Array:
        """Return log densities of samples predicted by the others, summed over the outputs, shape (n_samples,)."""


@dataclass(frozen=True, slots=True, eq=False)
class ObservedResponses:
    """Responses, each with noise of its own."""

    values: Array  # (n_samples, n_outputs): standardised

    criterion = Evidence()

    @property
    def likelihoods(self) -> list[Likelihood]:
        """One unit an output."""
        return [Gaussian(column[:, None]) for column in self.values.T]

    @property
    def signal(self) -> float:
        """Responses are standardised."""
        return 0.0

    def output(self, posteriors: Sequence[Approximation], own: Sequence[Array]) -> Responses:
        """Take the noise that was learned, and calibrate on predictions of each sample by the others."""
        noise = np.exp(np.concatenate(own))
        mean, variance = _joined(posterior.left_out() for posterior in posteriors)
        return Responses.calibrated(noise, (self.values - mean) / np.sqrt(variance + noise))

    def log_density(self, posteriors: Sequence[Approximation], output: Output) -> Array:
        """Return normal log densities. Shapes: returns (n_samples,)."""
        predicted = output.predict(*_joined(posterior.left_out() for posterior in posteriors))
        squares = (self.values - predicted.mean) ** 2 / predicted.variance
        density: Array = -0.5 * (squares + np.log(2.0 * np.pi * predicted.variance)).sum(axis=1)
        return density


@dataclass(frozen=True, slots=True, eq=False)
class ObservedLabels:
    """Labels of two classes, or several of them a sample."""

    sign: Array  # (n_samples, n_outputs): -1 and +1

    criterion = Evidence()

    @property
    def likelihoods(self) -> list[Likelihood]:
        """One unit an output."""
        return [Probit(column) for column in self.sign.T]

    @property
    def signal(self) -> float:
        """Scores are a few deviations of their noise."""
        return _SIGNAL_OF_LABELS

    def output(self, posteriors: Sequence[Approximation], own: Sequence[Array]) -> Labels:
        """Calibrate on predictions of each sample by the others."""
        return Labels.calibrated(self.sign, *self._left_out(posteriors))

    def log_density(self, posteriors: Sequence[Approximation], output: Output) -> Array:
        """Return log probabilities of the labels. Shapes: returns (n_samples,)."""
        positive = output.predict(*self._left_out(posteriors)).probability
        assert positive is not None, "labels have probabilities"
        density: Array = _logs(np.where(self.sign > 0.0, positive, 1.0 - positive)).sum(axis=1)
        return density

    def _left_out(self, posteriors: Sequence[Approximation]) -> tuple[Array, Array]:
        """Predict each sample by the others, without a partner of the other label if there is one, column by column."""
        units = zip(posteriors, self.sign.T, strict=True)
        return _joined(
            posterior.left_out() if np.ptp(sign) == 0.0 else posterior.left_out_with(_partners(sign))
            for posterior, sign in units
        )


@dataclass(frozen=True, slots=True, eq=False)
class ObservedClasses:
    """One class of several, a sample: regression on indicators, judged by the probabilities that come of it."""

    label: npt.NDArray[np.intp]  # (n_samples,): positions of the classes
    n_classes: int

    @property
    def likelihoods(self) -> list[Likelihood]:
        """
        All indicators are one unit: a single factor serves every class.

        Predictions of samples left out do not change where covariance and noise do so together: the noise is given.
        """
        return [Gaussian(indicators(self.label, self.n_classes)[0], _NOISE_OF_INDICATORS)]

    @property
    def criterion(self) -> LeftOutClasses:
        """Indicators are no responses with normal noise: what counts are the probabilities of samples left out."""
        _, share, size = indicators(self.label, self.n_classes)
        return LeftOutClasses(self.label, share, size)

    @property
    def signal(self) -> float:
        """Indicators are standardised."""
        return 0.0

    def output(self, posteriors: Sequence[Approximation], own: Sequence[Array]) -> Classes:
        """Calibrate on predictions of each sample by the others."""
        output, _ = self.criterion.output(posteriors[0])
        return output

    def log_density(self, posteriors: Sequence[Approximation], output: Output) -> Array:
        """Return log probabilities of the classes. Shapes: returns (n_samples,)."""
        mean, variance = posteriors[0].left_out()
        probability = output.predict(mean, np.broadcast_to(variance[:, None], mean.shape)).probability
        assert probability is not None, "classes have probabilities"
        return _logs(probability[np.arange(len(mean)), self.label])


def _joined(parts: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Put moments of units beside each other. Shapes: parts (n, n_outputs), (n,); returns (n, n_all), (n, n_all)."""
    mean, variance = zip(*parts, strict=True)
    return np.hstack(mean), np.column_stack(variance)


def _logs(probability: Array) -> Array:
    """Return logarithms, finite where what happened was thought impossible. Shapes: as the probabilities."""
    logs: Array = np.log(np.maximum(probability, np.finfo(np.float64).tiny))
    return logs


def _partners(sign: Array) -> npt.NDArray[np.intp]:
    """Return samples with the other one of two labels for each one, in turn. Shapes: sign (n,); returns (n, n_each)."""
    partners = np.empty((len(sign), _PARTNERS), dtype=np.intp)
    for label in (-1.0, 1.0):
        here, others = np.flatnonzero(sign == label), np.flatnonzero(sign != label)
        turns = np.arange(len(here) * _PARTNERS).reshape(len(here), -1)
        partners[here] = others[turns % len(others)]
    return partners
