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
from bemkl.marginal.climb import Place, never_negative
from bemkl.marginal.criteria import Along, Evidence
from bemkl.marginal.model import Model, Unit

_EVIDENCE = Evidence()
_RIDGE = 1e-8
"""Share of the curvature of a nuisance that is added to it, so that copies of kernels do no harm."""
_NEGLIGIBLE = 0.05
"""Deviations of a slope, in those of the group's, below which a nuisance is not taken away."""


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """Slopes of the evidence at a place: in kernels' coefficients, the variance of the bias, and noise of units."""

    covariance: Array  # (n_variances, n_variances): of the slopes of the evidence
    curvature: Array  # (n_variances, n_variances): of what parameters are judged by, which may be the evidence
    slope: Array  # (n_kernels,): of that in kernels' coefficients

    @classmethod
    def of(cls, model: Model, place: Place) -> Information:
        """Look at a place."""
        n_kernels, n_units = model.n_kernels, len(model.units)
        covariance = np.zeros((n_kernels + 1 + n_units, n_kernels + 1 + n_units))
        curvature = covariance.copy()
        for position, (unit, posterior) in enumerate(zip(model.units, place.look.posteriors, strict=True)):
            here = np.ix_(*2 * [[*range(n_kernels + 1), n_kernels + 1 + position]])
            along = _along(unit)
            found = {judge: judge.curvature(posterior, along) for judge in {_EVIDENCE, unit.criterion}}
            covariance[here] += found[_EVIDENCE]
            curvature[here] += found[unit.criterion]
        slope = place.look.kernel_slopes / model.amplitudes(place.parameters)[0]
        return cls(covariance, curvature, slope)

    def answer(self, model: Model, place: Place, inside: Array) -> tuple[Array, Array]:
        """
        Return where parameters go when some kernels are left out, to first order, and their curvature there.

        Shapes: inside (n_kernels,), truth values; returns (n_parameters,), (n_parameters, n_parameters).
        """
        values, slopes = model.variances(place.parameters)
        out = np.concatenate([inside, np.zeros(len(values) - len(inside), dtype=bool)])
        kept = np.where(out[:, None], 0.0, slopes)
        curvature = never_negative(kept.T @ self.curvature @ kept)
        prior = model.prior_precision(place.spreads)
        pull = place.look.gradient - prior * (place.parameters - model.start)
        # Through what is left out nothing pulls any more; what is left pulls harder.
        pull = pull - slopes[: len(inside)].T @ np.where(inside, self.slope, 0.0)
        pull += kept.T @ (self.curvature @ np.where(out, values, 0.0))
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


def _along(unit: Unit) -> Along:
    """Return what multiplies each kernel, ones for the bias and the identity for noise with vectors."""
    kernels = unit.prior.kernels
    n_kernels = kernels.shape[0]

    def along(vectors: Array) -> Array:
        moved = np.empty((n_kernels + 2, *vectors.shape))
        moved[:n_kernels] = kernels.products(np.eye(n_kernels), vectors)
        moved[n_kernels] = vectors.sum(axis=0)
        moved[n_kernels + 1] = vectors if unit.likelihood.gaussian else 0.0
        return moved

    return along
