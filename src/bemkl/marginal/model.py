r"""
What the marginal posterior learns, and what that is worth: the evidence, with the predictor integrated out.

The parameters are, in this order, the logarithms of the amplitude and of the variance of the bias, the likelihoods'
own, and the effects that kernel weights are made of (docs/marginal.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array
from bemkl.marginal.approximation import SETTLED, Approximation, Sites, approximate
from bemkl.marginal.criteria import Criterion, Worth
from bemkl.marginal.effects import Effects
from bemkl.marginal.functions import FunctionPrior, PriorAt
from bemkl.marginal.likelihoods import Likelihood

_AMPLITUDE_DEVIATION, _BIAS_DEVIATION, _OWN_DEVIATION = 3.0, 2.0, 4.0
"""Deviations of the normal priors of logarithms: amplitude, variance of the bias, parameters of likelihoods."""
_SPREAD_DEVIATION = 1.5
"""Deviation of the normal prior of the logarithm of a spread."""

AMPLITUDE, _BIAS, _OWN = 0, 1, 2
"""Places of the parameters that are common to all units, and of the first one of the likelihoods."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Samples with observations that one posterior of a predictor explains: a response, a label, or all classes."""

    prior: FunctionPrior
    likelihood: Likelihood
    criterion: Criterion


@dataclass(frozen=True, eq=False)
class Look:
    """What one set of parameters is worth, with the posteriors of the predictors there."""

    model: Model
    parameters: Array  # (n_parameters,)
    priors: tuple[PriorAt, ...]  # one a unit
    posteriors: tuple[Approximation, ...]  # one a unit
    worths: tuple[Worth, ...]  # one a unit

    @property
    def value(self) -> float:
        """Sum over the units of what they are judged by."""
        return sum(worth.value for worth in self.worths)

    @lazy_property
    def kernel_slopes(self) -> Array:
        """Slopes of the value in the weights, the amplitude left as it is. Shapes: returns (n_kernels,)."""
        each = zip(self.priors, self.worths, strict=True)
        slopes: Array = np.sum([prior.gradient(worth.pull) for prior, worth in each], axis=0)
        return slopes

    @lazy_property
    def gradient(self) -> Array:
        """Slopes of the value, which take a pass over the kernels. Shapes: returns (n_parameters,)."""
        return self.model.gradient(self)

    @property
    def sites(self) -> tuple[Sites, ...]:
        """What stands for the likelihoods."""
        return tuple(posterior.sites for posterior in self.posteriors)

    @property
    def steps(self) -> int:
        """Conditions computed."""
        return sum(posterior.steps for posterior in self.posteriors)


@dataclass(frozen=True, eq=False)
class Model:
    """Units that share kernel weights."""

    units: Sequence[Unit]
    effects: Effects
    sizes: Array  # (n_kernels,): what each kernel is divided by, so that weights compare
    unit_amplitude: float  # at which equal weights give predictors of variance one, averaged over the samples
    signal: float = 0.0  # expected logarithm of the predictor's variance
    spread: float = 1.0  # where spreads start
    shown: Array | float = 1.0  # (n_kernels,): zeros for kernels that are left out
    settled: float = SETTLED  # change of the bound, a sample, at which the inner steps of a look end

    @classmethod
    def of(
        cls, units: Sequence[Unit], effects: Effects, sizes: Array, *, signal: float = 0.0, spread: float = 1.0
    ) -> Self:
        """Measure the amplitude. Shapes: sizes (n_kernels,)."""
        equal = 1.0 / (len(sizes) * sizes)
        variances = [unit.prior.at(equal, 1.0, 0.0).covariance.prior_variance.mean() for unit in units]
        largest = float(np.mean(variances))
        return cls(units, effects, sizes, 1.0 / largest if largest > 0.0 else 1.0, signal, spread)

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return len(self.sizes)

    @lazy_property
    def start(self) -> Array:
        """Parameters to begin with: equal weights. Shapes: returns (n_parameters,)."""
        own = [unit.likelihood.start for unit in self.units]
        return np.concatenate([[self.signal, 0.0], *own, np.zeros(self.effects.design.shape[1])])

    @property
    def n_common(self) -> int:
        """Number of parameters before the effects."""
        return len(self.start) - int(self.effects.design.shape[1])

    def prior_precision(self, spreads: Array) -> Array:
        """Precisions of the parameters' normal priors. Shapes: spreads (n_kinds,); returns (n_parameters,)."""
        deviation = np.full(len(self.start), _OWN_DEVIATION)
        deviation[:_OWN] = _AMPLITUDE_DEVIATION, _BIAS_DEVIATION
        deviation[self.n_common :] = spreads[self.effects.kind]
        return deviation**-2.0

    def log_prior(self, parameters: Array, spreads: Array) -> float:
        """Log density of parameters and spreads, but for a constant. Shapes: spreads (n_kinds,)."""
        precision, away = self.prior_precision(spreads), parameters - self.start
        hyper = -0.5 * float(np.sum(np.log(spreads / self.spread) ** 2)) / _SPREAD_DEVIATION**2
        return hyper + 0.5 * float(np.log(precision).sum() - precision @ away**2)

    def weights(self, parameters: Array) -> Array:
        """Return kernel weights, without the amplitude. Shapes: returns (n_kernels,)."""
        summed = self.effects.design @ parameters[self.n_common :]
        weights: Array = self.shown * np.exp(summed) / (self.n_kernels * self.sizes)
        return weights

    def amplitude(self, parameters: Array) -> float:
        """Return what combined kernels are multiplied by."""
        return float(np.exp(parameters[AMPLITUDE])) * self.unit_amplitude

    def bias(self, parameters: Array) -> float:
        """Return the variance of the bias."""
        return float(np.exp(parameters[_BIAS]))

    def _own(self, parameters: Array) -> Iterator[tuple[Unit, slice]]:
        """Yield units with the places of their likelihoods' parameters."""
        first = _OWN
        for unit in self.units:
            last = first + len(unit.likelihood.start)
            yield unit, slice(first, last)
            first = last

    def own(self, parameters: Array) -> list[Array]:
        """Return each likelihood's own parameters."""
        return [parameters[places] for _, places in self._own(parameters)]

    def variances(self, parameters: Array) -> tuple[Array, Array]:
        """
        Return what covariances are sums with: the kernels' coefficients, variances of the bias and of units' noise.

        Last come their derivatives. Shapes: returns (n_variances,), (n_variances, n_parameters).
        """
        n_kernels = self.n_kernels
        values = np.zeros(n_kernels + 1 + len(self.units))
        values[:n_kernels] = self.amplitude(parameters) * self.weights(parameters)
        values[n_kernels] = self.bias(parameters)
        slopes = np.zeros((len(values), len(parameters)))
        slopes[:n_kernels, AMPLITUDE] = values[:n_kernels] / self.units[0].prior.degree
        slopes[:n_kernels, self.n_common :] = self.effects.design * values[:n_kernels, None]
        slopes[n_kernels, _BIAS] = values[n_kernels]
        for place, (unit, own) in enumerate(self._own(parameters), start=n_kernels + 1):
            if unit.likelihood.gaussian and own.stop > own.start:
                values[place] = slopes[place, own.start] = np.exp(parameters[own.start])
        return values, slopes

    def look(self, parameters: Array, sites: Sequence[Sites | None]) -> Look:
        """Judge parameters, from where the sites were."""
        weights, amplitude, bias = self.weights(parameters), self.amplitude(parameters), self.bias(parameters)
        priors, posteriors, worths = [], [], []
        for (unit, places), start in zip(self._own(parameters), sites, strict=True):
            prior = unit.prior.at(weights, amplitude, bias)
            found = approximate(prior.covariance, unit.likelihood, parameters[places], start, self.settled)
            priors.append(prior)
            posteriors.append(found)
            worths.append(unit.criterion.worth(found))
        return Look(self, parameters, tuple(priors), tuple(posteriors), tuple(worths))

    def gradient(self, look: Look) -> Array:
        """Return the slopes where it was looked. Shapes: returns (n_parameters,)."""
        weights, bias = self.weights(look.parameters), self.bias(look.parameters)
        slope, gradient = look.kernel_slopes, np.zeros(len(look.parameters))
        for (unit, places), worth in zip(self._own(look.parameters), look.worths, strict=True):
            ones = np.ones((unit.likelihood.n_samples, 1))
            gradient[_BIAS] += 0.5 * bias * float(worth.pull.times(ones).sum())
            gradient[places] += worth.own
        gradient[AMPLITUDE] = slope @ weights / self.units[0].prior.degree
        gradient[self.n_common :] = self.effects.design.T @ (slope * weights)
        return gradient

    def curvature(self, parameters: Array, look: Look) -> Array:
        """Return the curvature by the units' criteria. Shapes: returns (n_parameters, n_parameters)."""
        total = np.zeros((len(parameters), len(parameters)))
        weights, bias = self.weights(parameters), self.bias(parameters)
        changes = np.vstack([weights / self.units[0].prior.degree, (self.effects.design * weights[:, None]).T])
        places = [AMPLITUDE, *range(self.n_common, len(parameters)), _BIAS]
        for (unit, own), prior, posterior in zip(self._own(parameters), look.priors, look.posteriors, strict=True):
            noise = range(own.start, own.stop) if unit.likelihood.gaussian else range(0)

            def along(
                vectors: Array, prior: PriorAt = prior, at: Approximation = posterior, n: int = len(noise)
            ) -> Array:
                constant = bias * np.broadcast_to(vectors.sum(axis=0), (1, *vectors.shape))
                variances = np.repeat((vectors / at.sites.precision[:, None])[None], n, axis=0)
                return np.concatenate([prior.directions(changes, vectors), constant, variances])

            here = np.array([*places, *noise])
            total[np.ix_(here, here)] += unit.criterion.curvature(posterior, along)
        return total
