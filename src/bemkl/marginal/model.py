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
from bemkl.marginal.criteria import Criterion, Reach, Worth
from bemkl.marginal.effects import Effects
from bemkl.marginal.functions import FunctionPrior, PriorAt
from bemkl.marginal.likelihoods import Likelihood

_BIAS_DEVIATION, _OWN_DEVIATION = 2.0, 4.0
"""Deviations of the normal priors of logarithms: variance of the bias, parameters of likelihoods."""

AMPLITUDE, BIAS, _OWN = 0, 1, 2
"""Places of the parameters that are common to all units, and of the first one of the likelihoods."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Samples with observations that one posterior of a predictor explains: a response, a label, or all classes."""

    prior: FunctionPrior
    likelihood: Likelihood
    criterion: Criterion
    places: slice  # where the weights of its kernels are among all: tasks have kernels of their own
    signal: float = 0.0  # expected logarithm of the predictor's variance


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
        """Slopes of the value in the weights, amplitudes left as they are. Shapes: returns (n_weights,)."""
        slopes = np.zeros(len(self.model.sizes))
        for unit, prior, worth in zip(self.model.units, self.priors, self.worths, strict=True):
            slopes[unit.places] += prior.gradient(worth.pull)
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
    """Units that share what kernel weights are made of."""

    units: Sequence[Unit]
    effects: Effects
    sizes: Array  # (n_weights,): what each kernel is divided by, so that weights compare
    unit_amplitudes: tuple[float, ...]  # at which equal weights give predictors of each unit the expected variance
    reach: Reach  # how far parameters are expected to go
    shown: Array | float = 1.0  # (n_weights,): zeros for kernels that are left out
    settled: float = SETTLED  # change of the bound, a sample, at which the inner steps of a look end

    @classmethod
    def of(cls, units: Sequence[Unit], effects: Effects, sizes: Array, reach: Reach | None = None) -> Self:
        """Measure the amplitudes. Shapes: sizes (n_weights,)."""
        found = []
        for unit in units:
            here = sizes[unit.places]
            mean = float(unit.prior.at(1.0 / (len(here) * here), 1.0, 0.0).covariance.prior_variance.mean())
            found.append(float(np.exp(unit.signal)) / mean if mean > 0.0 else 1.0)
        return cls(units, effects, sizes, tuple(found), units[0].criterion.reach if reach is None else reach)

    @property
    def n_kernels(self) -> int:
        """Number of kernels of a task."""
        return len(self.sizes[self.units[0].places])

    @lazy_property
    def start(self) -> Array:
        """Parameters to begin with: equal weights. Shapes: returns (n_parameters,)."""
        own = [unit.likelihood.start for unit in self.units]
        return np.concatenate([[0.0, 0.0], *own, np.zeros(self.effects.design.shape[1])])

    @property
    def n_common(self) -> int:
        """Number of parameters before the effects."""
        return len(self.start) - int(self.effects.design.shape[1])

    def prior_precision(self, spreads: Array) -> Array:
        """Precisions of the parameters' normal priors. Shapes: spreads (n_kinds,); returns (n_parameters,)."""
        deviation = np.full(len(self.start), _OWN_DEVIATION)
        deviation[:_OWN] = self.reach.amplitude, _BIAS_DEVIATION
        deviation[self.n_common :] = spreads[self.effects.kind]
        return deviation**-2.0

    def log_prior(self, parameters: Array, spreads: Array) -> float:
        """Log density of parameters and spreads, but for a constant. Shapes: spreads (n_kinds,)."""
        precision, away = self.prior_precision(spreads), parameters - self.start
        reach = self.reach
        hyper = -0.5 * float(np.sum(np.log(spreads / reach.spread) ** 2)) / reach.spread_deviation**2
        return hyper + 0.5 * float(np.log(precision).sum() - precision @ away**2)

    def effects_of(self, parameters: Array) -> Array:
        """Return the effects that weights are made of. Shapes: returns (n_effects,)."""
        return parameters[self.n_common :]

    def weights(self, parameters: Array) -> Array:
        """Return kernel weights, without the amplitude. Shapes: returns (n_weights,)."""
        summed = self.effects.design @ self.effects_of(parameters)
        weights: Array = self.shown * np.exp(summed) / (self.n_kernels * self.sizes)
        return weights

    def amplitudes(self, parameters: Array) -> list[float]:
        """Return what the covariance of each unit is multiplied by."""
        return [float(np.exp(parameters[AMPLITUDE])) * unit for unit in self.unit_amplitudes]

    def bias(self, parameters: Array) -> float:
        """Return the variance of the bias."""
        return float(np.exp(parameters[BIAS]))

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
        Return what covariances of one task are sums with, and its derivatives.

        They are the kernels' coefficients, the variance of the bias, and those of units' noise.

        Shapes: returns (n_variances,), (n_variances, n_parameters).
        """
        n_kernels = self.n_kernels
        values = np.zeros(n_kernels + 1 + len(self.units))
        values[:n_kernels] = self.amplitudes(parameters)[0] * self.weights(parameters)
        values[n_kernels] = self.bias(parameters)
        slopes = np.zeros((len(values), len(parameters)))
        slopes[:n_kernels, AMPLITUDE] = values[:n_kernels] / self.units[0].prior.degree
        slopes[:n_kernels, self.n_common :] = self.effects.design * values[:n_kernels, None]
        slopes[n_kernels, BIAS] = values[n_kernels]
        for place, (unit, own) in enumerate(self._own(parameters), start=n_kernels + 1):
            if unit.likelihood.gaussian and own.stop > own.start:
                values[place] = slopes[place, own.start] = np.exp(parameters[own.start])
        return values, slopes

    def look(self, parameters: Array, sites: Sequence[Sites | None]) -> Look:
        """Judge parameters, from where the sites were."""
        weights, amplitudes, bias = self.weights(parameters), self.amplitudes(parameters), self.bias(parameters)
        priors, posteriors, worths = [], [], []
        for (unit, own), amplitude, start in zip(self._own(parameters), amplitudes, sites, strict=True):
            prior = unit.prior.at(weights[unit.places], amplitude, bias)
            found = approximate(prior.covariance, unit.likelihood, parameters[own], start, self.settled)
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
            gradient[BIAS] += 0.5 * bias * float(worth.pull.times(ones).sum())
            gradient[places] += worth.own
        gradient[AMPLITUDE] = slope @ weights / self.units[0].prior.degree
        gradient[self.n_common :] = self.effects.design.T @ (slope * weights)
        return gradient

    def curvature(self, parameters: Array, look: Look) -> Array:
        """Return the curvature by the units' criteria. Shapes: returns (n_parameters, n_parameters)."""
        total = np.zeros((len(parameters), len(parameters)))
        weights, bias = self.weights(parameters), self.bias(parameters)
        for (unit, own), prior, posterior in zip(self._own(parameters), look.priors, look.posteriors, strict=True):
            here_weights, design = weights[unit.places], self.effects.design[unit.places]
            effects = np.flatnonzero(design.any(axis=0))
            changes = np.vstack([here_weights / unit.prior.degree, (design[:, effects] * here_weights[:, None]).T])
            noise = range(own.start, own.stop) if unit.likelihood.gaussian else range(0)
            along = _Along(prior, changes, bias, np.repeat(1.0 / posterior.sites.precision[None], len(noise), axis=0))
            here = np.array([AMPLITUDE, *(self.n_common + effects), BIAS, *noise])
            total[np.ix_(here, here)] += unit.criterion.curvature(posterior, along)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class _Along:
    """Multiplies derivatives of a covariance with vectors: along changes of the weights, of the bias, and of noise."""

    prior: PriorAt
    changes: Array  # (n_changes, n_kernels)
    bias: float
    noise: Array  # (n_noise, n_samples): variances

    def __call__(self, vectors: Array) -> Array:
        """Multiply. Shapes: vectors (n_samples, n)."""
        constant = self.bias * np.broadcast_to(vectors.sum(axis=0), (1, *vectors.shape))
        variances = self.noise[:, :, None] * vectors
        return np.concatenate([self.prior.directions(self.changes, vectors), constant, variances])
