r"""
What the marginal posterior learns, and what that is worth: the evidence, with the predictor integrated out.

The parameters are, in this order, the logarithms of the amplitude and of the variance of the bias, the likelihoods'
own, and the effects that kernel weights are made of (docs/marginal.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array
from bemkl.marginal.approximation import Approximation, Sites, approximate
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

_AMPLITUDE, _BIAS, _OWN = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Samples with observations that one posterior of a predictor explains: a response, a label, or all classes."""

    prior: FunctionPrior
    likelihood: Likelihood
    places: slice  # where the weights of its kernels are among all: tasks have kernels of their own
    signal: float = 0.0  # expected logarithm of the predictor's variance


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What one set of parameters is worth: the evidence, or its bound, with the posteriors of the predictors there."""

    value: float  # sum of the bounds of the evidence of all units
    gradient: Array  # (n_parameters,)
    priors: tuple[PriorAt, ...]  # one a unit
    posteriors: tuple[Approximation, ...]  # one a unit

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
    spread: float = 1.0  # where spreads start
    shown: Array | float = 1.0  # (n_weights,): zeros for kernels that are left out

    @lazy_property
    def start(self) -> Array:
        """Parameters to begin with: equal weights. Shapes: returns (n_parameters,)."""
        own = [unit.likelihood.start for unit in self.units]
        return np.concatenate([[0.0, 0.0], *own, np.zeros(self.effects.design.shape[1])])

    @property
    def n_common(self) -> int:
        """Number of parameters before the effects."""
        return len(self.start) - int(self.effects.design.shape[1])

    @lazy_property
    def unit_amplitudes(self) -> list[float]:
        """Amplitudes at which equal weights give the predictors of each unit the variance that is expected of them."""
        found = []
        for unit in self.units:
            sizes = self.sizes[unit.places]
            variances = unit.prior.at(1.0 / (len(sizes) * sizes), 1.0, 0.0).covariance.prior_variance
            mean = float(variances.mean())
            found.append(float(np.exp(unit.signal)) / mean if mean > 0.0 else 1.0)
        return found

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

    def effects_of(self, parameters: Array) -> Array:
        """Return the effects that weights are made of. Shapes: returns (n_effects,)."""
        return parameters[self.n_common :]

    def weights(self, parameters: Array) -> Array:
        """Return kernel weights, without the amplitude. Shapes: returns (n_weights,)."""
        summed = self.effects.design @ self.effects_of(parameters)
        n_kernels = len(self.sizes[self.units[0].places])
        weights: Array = self.shown * np.exp(summed) / (n_kernels * self.sizes)
        return weights

    def amplitudes(self, parameters: Array) -> list[float]:
        """Return what the covariance of each unit is multiplied by."""
        return [float(np.exp(parameters[_AMPLITUDE])) * unit for unit in self.unit_amplitudes]

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

    def look(self, parameters: Array, sites: Sequence[Sites | None]) -> Look:
        """Compute the bound of the evidence and its gradient."""
        weights, amplitudes, bias = self.weights(parameters), self.amplitudes(parameters), self.bias(parameters)
        value, slope = 0.0, np.zeros(len(weights))
        gradient = np.zeros(len(parameters))
        priors, posteriors = [], []
        for (unit, own), amplitude, start in zip(self._own(parameters), amplitudes, sites, strict=True):
            prior = unit.prior.at(weights[unit.places], amplitude, bias)
            found = approximate(prior.covariance, unit.likelihood, parameters[own], start)
            value += found.bound
            slope[unit.places] += prior.gradient(found.condition, found.sites.precision)
            gradient[_BIAS] += _bias_slope(found, bias)
            gradient[own] += found.expected.parameters
            priors.append(prior)
            posteriors.append(found)
        gradient[_AMPLITUDE] = slope @ weights / self.units[0].prior.degree
        gradient[self.n_common :] = self.effects.design.T @ (slope * weights)
        return Look(value, gradient, tuple(priors), tuple(posteriors))

    def curvature(self, parameters: Array, look: Look) -> Array:
        r"""
        Return the expected curvature, :math:`\tfrac12 \operatorname{tr}(A\,\partial_i C\,A\,\partial_j C)`.

        Of many samples, the trace is the average over random directions of covariance A, the same ones in each call.

        Shapes: returns (n_parameters, n_parameters).
        """
        total = np.zeros((len(parameters), len(parameters)))
        weights = self.weights(parameters)
        for (unit, own), prior, posterior in zip(self._own(parameters), look.priors, look.posteriors, strict=True):
            n_samples, condition = unit.likelihood.n_samples, posterior.condition
            here_weights, design = weights[unit.places], self.effects.design[unit.places]
            effects = np.flatnonzero(design.any(axis=0))
            changes = np.vstack([here_weights / unit.prior.degree, (design[:, effects] * here_weights[:, None]).T])
            drawn = condition.residual_draws(directions(n_samples))
            moved = [prior.directions(changes, drawn)]
            moved.append(self.bias(parameters) * np.broadcast_to(drawn.sum(axis=0), (1, *drawn.shape)))
            here = [_AMPLITUDE, *(self.n_common + effects), _BIAS]
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
