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
from bemkl.marginal.effects import Effects
from bemkl.marginal.functions import FunctionPrior, PriorAt
from bemkl.marginal.likelihoods import Likelihood

_AMPLITUDE_DEVIATION, _BIAS_DEVIATION, _OWN_DEVIATION = 3.0, 2.0, 4.0
"""Deviations of the normal priors of logarithms: amplitude, variance of the bias, parameters of likelihoods."""
_SPREAD_DEVIATION = 1.5
"""Deviation of the normal prior of the logarithm of a spread."""
_EXACT = 256
"""Samples up to which curvatures are exact; with more of them, they are averages over so many random directions."""
_DIRECTIONS = 48

AMPLITUDE, _BIAS, _OWN = 0, 1, 2
"""Places of the parameters that are common to all units, and of the first one of the likelihoods."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Samples with observations that one posterior of a predictor explains: a response, a label, or all classes."""

    prior: FunctionPrior
    likelihood: Likelihood


@dataclass(frozen=True, eq=False)
class Look:
    """What one set of parameters is worth: the evidence, or its bound, with the posteriors of the predictors there."""

    model: Model
    parameters: Array  # (n_parameters,)
    priors: tuple[PriorAt, ...]  # one a unit
    posteriors: tuple[Approximation, ...]  # one a unit

    @property
    def value(self) -> float:
        """Sum of the bounds of the evidence of all units."""
        return sum(posterior.bound for posterior in self.posteriors)

    @lazy_property
    def gradient(self) -> Array:
        """Slopes of the value, which take a pass over the kernels. Shapes: returns (n_parameters,)."""
        return self.model.gradient(self.parameters, self.priors, self.posteriors)

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
            if unit.likelihood.gaussian:
                values[place] = slopes[place, own.start] = np.exp(parameters[own.start])
        return values, slopes

    def look(self, parameters: Array, sites: Sequence[Sites | None]) -> Look:
        """Compute the bound of the evidence, from where the sites were."""
        weights, amplitude, bias = self.weights(parameters), self.amplitude(parameters), self.bias(parameters)
        priors, posteriors = [], []
        for (unit, places), start in zip(self._own(parameters), sites, strict=True):
            prior = unit.prior.at(weights, amplitude, bias)
            priors.append(prior)
            posteriors.append(approximate(prior.covariance, unit.likelihood, parameters[places], start, self.settled))
        return Look(self, parameters, tuple(priors), tuple(posteriors))

    def gradient(self, parameters: Array, priors: Sequence[PriorAt], posteriors: Sequence[Approximation]) -> Array:
        """Return the slopes of the bound where it was looked at. Shapes: returns (n_parameters,)."""
        weights, bias = self.weights(parameters), self.bias(parameters)
        slope, gradient = kernel_slopes(priors, posteriors), np.zeros(len(parameters))
        for (_, places), found in zip(self._own(parameters), posteriors, strict=True):
            gradient[_BIAS] += _bias_slope(found, bias)
            gradient[places] += found.expected.parameters
        gradient[AMPLITUDE] = slope @ weights / self.units[0].prior.degree
        gradient[self.n_common :] = self.effects.design.T @ (slope * weights)
        return gradient

    def curvature(self, parameters: Array, look: Look) -> Array:
        r"""
        Return the expected curvature, :math:`\tfrac12 \operatorname{tr}(A\,\partial_i C\,A\,\partial_j C)`.

        Of many samples, the trace is the average over random directions of covariance A, the same ones in each call.

        Shapes: returns (n_parameters, n_parameters).
        """
        total = np.zeros((len(parameters), len(parameters)))
        weights = self.weights(parameters)
        changes = np.vstack([weights / self.units[0].prior.degree, (self.effects.design * weights[:, None]).T])
        places = [AMPLITUDE, *range(self.n_common, len(parameters))]
        for (unit, own), prior, posterior in zip(self._own(parameters), look.priors, look.posteriors, strict=True):
            n_samples, condition = unit.likelihood.n_samples, posterior.condition
            drawn = condition.residual_draws(directions(n_samples))
            moved = [prior.directions(changes, drawn)]
            moved.append(self.bias(parameters) * np.broadcast_to(drawn.sum(axis=0), (1, *drawn.shape)))
            here = [*places, _BIAS]
            if unit.likelihood.gaussian:
                moved.append((drawn / posterior.sites.precision[:, None])[None])
                here.append(own.start)
            together = np.concatenate(moved)
            seen = condition.residual_times(np.moveaxis(together, 0, 1).reshape(n_samples, -1))
            seen = np.moveaxis(seen.reshape(n_samples, len(here), -1), 1, 0).reshape(len(here), -1)
            block = seen @ together.reshape(len(here), -1).T
            scale = 0.25 * unit.likelihood.n_outputs / drawn.shape[1]
            total[np.ix_(here, here)] += scale * (block + block.T)
        return total


def kernel_slopes(priors: Sequence[PriorAt], posteriors: Sequence[Approximation]) -> Array:
    """Return slopes of the bound in the weights, the amplitude left as it is. Shapes: returns (n_kernels,)."""
    each = zip(priors, posteriors, strict=True)
    slopes: Array = np.sum([prior.gradient(found.condition, found.sites.precision) for prior, found in each], axis=0)
    return slopes


def directions(n_samples: int) -> Array:
    """Columns whose outer products average to the identity: exactly for few samples. Shapes: returns (n_samples, n)."""
    if n_samples <= _EXACT:
        exact: Array = np.sqrt(n_samples) * np.eye(n_samples)
        return exact
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(n_samples, _DIRECTIONS))


def _bias_slope(found: Approximation, bias: float) -> float:
    """Slope of the bound in the logarithm of the variance of the bias."""
    alpha, ones = found.condition.alpha, np.ones((len(found.sites.precision), 1))
    pulls = float(np.square(alpha.sum(axis=0)).sum())
    return 0.5 * bias * (pulls - int(alpha.shape[1]) * float(found.condition.residual_times(ones).sum()))
