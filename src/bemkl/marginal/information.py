r"""
How slopes of the evidence vary together, and what is left of one that others could answer for.

The slope in a variance that adds **D** to the covariance of the pseudo-observations is a quadratic form of a normal
vector with their precision **A**. Two of them have the covariance

.. math:: I_{ij} = \tfrac12 \operatorname{tr}(\mathbf{A}\mathbf{D}_i\mathbf{A}\mathbf{D}_j)

with a kernel, ones for the bias, or the identity for the noise of a unit as **D**. Hence, without another factor, the
curvature of the parameters without some kernels, and where they go when these are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bemkl.arrays import Array
from bemkl.marginal.approximation import Approximation
from bemkl.marginal.climb import Place
from bemkl.marginal.model import Model, Unit, directions, kernel_slopes

_BLOCK = 32
"""Random directions that meet all kernels at the same time."""
_RIDGE = 1e-8
"""Share of the curvature of a nuisance that is added to it, so that copies of kernels do no harm."""
_NEGLIGIBLE = 0.05
"""Deviations of a slope, in those of the group's, below which a nuisance is not taken away."""


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """Slopes of the evidence at a place: in kernels' coefficients, the variance of the bias, and noise of units."""

    covariance: Array  # (n_variances, n_variances): of the slopes
    slope: Array  # (n_kernels,): in kernels' coefficients

    @classmethod
    def of(cls, model: Model, place: Place) -> Information:
        """Look at a place."""
        n_kernels, n_units = model.n_kernels, len(model.units)
        covariance = np.zeros((n_kernels + 1 + n_units, n_kernels + 1 + n_units))
        for position, (unit, posterior) in enumerate(zip(model.units, place.look.posteriors, strict=True)):
            here = [*range(n_kernels + 1), n_kernels + 1 + position]
            covariance[np.ix_(here, here)] += _together(unit, posterior)
        slope = kernel_slopes(place.look.priors, place.look.posteriors) / model.amplitude(place.parameters)
        return cls(covariance, slope)

    def answer(self, model: Model, place: Place, inside: Array) -> tuple[Array, Array]:
        """
        Return where parameters go when some kernels are left out, to first order, and their curvature there.

        Shapes: inside (n_kernels,), truth values; returns (n_parameters,), (n_parameters, n_parameters).
        """
        values, slopes = model.variances(place.parameters)
        out = np.concatenate([inside, np.zeros(len(values) - len(inside), dtype=bool)])
        kept = np.where(out[:, None], 0.0, slopes)
        curvature: Array = kept.T @ self.covariance @ kept
        prior = model.prior_precision(place.spreads)
        pull = place.look.gradient - prior * (place.parameters - model.start)
        # Through what is left out nothing pulls any more; what is left pulls harder.
        pull = pull - slopes[: len(inside)].T @ np.where(inside, self.slope, 0.0)
        pull += kept.T @ (self.covariance @ np.where(out, values, 0.0))
        precision = curvature + np.diag(prior)
        return cho_solve(cho_factor(precision), pull), curvature

    def alone(self, groups: Array, group: int) -> Array:
        """
        Return the variances that one group adds, less what other groups, bias and noise could do instead.

        Shapes: groups (n_groups, n_kernels), coefficients of the kernels in the groups; returns (n_variances,).
        """
        n_groups, n_kernels = groups.shape
        n_others = len(self.covariance) - n_kernels
        rows = np.zeros((n_groups + n_others, len(self.covariance)))
        rows[:n_groups, :n_kernels] = groups
        rows[n_groups:, n_kernels:] = np.eye(n_others)
        curvature = rows @ self.covariance @ rows.T
        others = np.delete(np.arange(len(rows)), group)
        inner = curvature[np.ix_(others, others)]
        inner = inner + _RIDGE * np.diag(np.maximum(inner.diagonal(), np.finfo(np.float64).tiny))
        instead = np.linalg.solve(inner, curvature[others, group])
        small = np.abs(instead) * np.sqrt(inner.diagonal()) < _NEGLIGIBLE * np.sqrt(curvature[group, group])
        left: Array = rows[group] - np.where(small, 0.0, instead) @ rows[others]
        return left


def _together(unit: Unit, posterior: Approximation) -> Array:
    """Return covariances of slopes of one unit. Shapes: returns (n_kernels + 2, n_kernels + 2)."""
    condition, kernels = posterior.condition, unit.prior.kernels
    n_kernels, n_samples = kernels.shape[:2]
    drawn = condition.residual_draws(directions(n_samples))
    total = np.zeros((n_kernels + 2, n_kernels + 2))
    for first in range(0, drawn.shape[1], _BLOCK):
        some = drawn[:, first : first + _BLOCK]
        along = np.empty((n_kernels + 2, *some.shape))
        along[:n_kernels] = kernels.products(np.eye(n_kernels), some)
        along[n_kernels] = some.sum(axis=0)
        along[n_kernels + 1] = some if unit.likelihood.gaussian else 0.0
        back = condition.residual_times(np.moveaxis(along, 0, 1).reshape(n_samples, -1))
        back = np.moveaxis(back.reshape(n_samples, n_kernels + 2, -1), 1, 0).reshape(n_kernels + 2, -1)
        total += back @ along.reshape(n_kernels + 2, -1).T
    together: Array = 0.25 * unit.likelihood.n_outputs / drawn.shape[1] * (total + total.T)
    return together
