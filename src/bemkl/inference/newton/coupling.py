"""How the kernels of a sample couple in the sample weights, once the means of G are eliminated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bemkl._numerics.linalg import add_products
from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array
from bemkl.inference.moments import PairContext, Profile
from bemkl.inference.pair import PerOutput, Spread, optimal_spread

_ACROSS = 0.5
_ENOUGH = 32
"""Samples that tell an energy well enough: with so many, fits of the paper's sets take no more sweeps."""


@dataclass(frozen=True, eq=False)
class Coupling:
    r"""
    The quadratic model of the bound in the means of (a, G), apart from the samples.

    With :math:`\Sigma(\boldsymbol g)` the covariance for the precision :math:`\tilde\tau` of the targets, a sample with
    the curvature :math:`w_i \le \tilde\tau` has

    .. math:: \Sigma_i = \big(\Sigma(\boldsymbol g)^{-1} + (w_i - \tilde\tau)\,\tilde{\boldsymbol e}
              \tilde{\boldsymbol e}^\top\big)^{-1} = \Sigma(\boldsymbol g) - \rho_i\,\boldsymbol q\boldsymbol q^\top,
              \qquad \boldsymbol q = \Sigma(\boldsymbol g)\,\tilde{\boldsymbol e}

    and eliminating its mean of G leaves the matrix
    :math:`\mathbf{M}_i = \tilde\upsilon(\mathbf{I} - \tilde\upsilon\,\Sigma_i)` between its kernels.
    """

    context: PairContext  # expectations of the neighbours
    spread: Spread  # the matrices Σ(g)
    matrix: PerOutput  # M for the precision of the targets
    direction: Array  # (n_outputs, n_kernels): the vectors q

    @classmethod
    def of(cls, context: PairContext) -> Coupling:
        """Build the model."""
        spread = optimal_spread(context)
        matrix = _mean_coupling(spread.covariance, context.intermediate_precision)
        return cls(context, spread, matrix, spread.covariance @ context.weights.mean)

    @lazy_property
    def squared(self) -> float:
        """Squared length of the mean of the kernel weights."""
        return float(self.context.weights.mean @ self.context.weights.mean)

    @lazy_property
    def across(self) -> Array:
        r"""Half the mean of what `Samples.along` leaves of the diagonals of M, shape (n_outputs,)."""
        upsilon, tau = self.context.intermediate_precision, self.context.output_precision
        left = self.matrix.each(lambda matrix: matrix.trace())
        left = left - upsilon * tau * self.squared / (upsilon + tau * self.squared)
        across: Array = _ACROSS * np.maximum(left, 0.0) / len(self.context.weights.mean)
        return across


def _mean_coupling(covariance: PerOutput, upsilon: Array) -> PerOutput:
    r"""
    Matrices that couple the kernels once the means of G are eliminated (derivation, section 5).

    .. math:: \mathbf{M} = \tilde\upsilon (\mathbf{I} - \tilde\upsilon\,\Sigma(\boldsymbol g))

    The subtraction loses no more digits than the plain update of a does, which is pulled by G and held back by its
    projection.

    Shapes: upsilon (n_outputs,).
    """
    matrices = []
    for k, matrix in enumerate(covariance.distinct):
        here = float(upsilon[np.argmax(covariance.which == k)])
        matrices.append(matrix.times(-(here**2)).plus_diagonal(here, overwrite=True))
    return PerOutput(matrices, covariance.which)


class Energy(NamedTuple):
    """Sums of quadratic forms, of which the second part is known for some samples only."""

    along: Array  # (n_outputs,): the part along the kernel weights
    rest: Array  # (n_outputs,): the rest, of some samples
    n_chosen: int  # how many these are

    @classmethod
    def known(cls, sums: Array) -> Energy:
        """Return sums that need no estimate. Shapes: sums (n_outputs,)."""
        return cls(sums, np.zeros_like(sums), 1)

    def total(self, n_samples: int) -> Array:
        """Estimate the whole sum. Shapes: returns (n_outputs,)."""
        total: Array = self.along + n_samples * np.maximum(self.rest / self.n_chosen, 0.0)
        return total


@dataclass(frozen=True, eq=False)
class Samples:
    """The quadratic model for some samples, each with a curvature of its own."""

    shared: Coupling  # what all samples have in common
    curvature: Array  # (n_outputs, n): the curvatures w
    shrinkage: Array  # (n_outputs, n): 1 + (w_i - τ) eᵀq, positive
    correction: Array  # (n_outputs, n): ρ, the excess curvature over the shrinkage

    @classmethod
    def of(cls, shared: Coupling, curvature: Array) -> Samples:
        """Build the model. Shapes: curvature (n_outputs, n)."""
        excess = curvature - shared.context.output_precision[:, None]
        shrinkage = 1.0 + excess * (shared.direction @ shared.context.weights.mean)[:, None]
        return cls(shared, curvature, shrinkage, excess / shrinkage)

    @lazy_property
    def along(self) -> Array:
        r"""
        The factors c of an approximation of the matrices between the kernels, shape (n_outputs, n).

        The posterior covariance of the kernel weights is small next to their mean along the mean, and about a multiple
        of the identity across it:

        .. math:: \mathbf{M}_i \approx c_i\,\tilde{\boldsymbol e}\tilde{\boldsymbol e}^\top + \kappa\,\mathbf{I},
                  \qquad c_i = \frac{\tilde\upsilon w_i}{\tilde\upsilon + w_i\,\lVert\tilde{\boldsymbol e}\rVert^2}

        with :math:`\kappa` half the mean of what is left of the diagonal. The covariance is less than its mean in the
        directions that the data speak of, and there it gives way when it follows.
        """
        upsilon = self.shared.context.intermediate_precision[:, None]
        along: Array = upsilon * self.curvature / (upsilon + self.curvature * self.shared.squared)
        return along

    def couple(self, x: Array, outputs: slice = slice(None)) -> Array:
        r"""
        Multiply with the matrices between the kernels, :math:`\mathbf{M}_i \boldsymbol x_i`.

        Shapes: x, returns (n_outputs, n_kernels, n).
        """
        product = self.shared.matrix.some(outputs) @ x
        rho = self.correction[outputs]
        if rho.any():
            q, upsilon = self.shared.direction[outputs], self.shared.context.intermediate_precision[outputs, None]
            along = upsilon**2 * rho * (q[:, None, :] @ x)[:, 0]
            add_products(product, q, along)
        return product

    def energy(self, x: Array, outputs: slice, first: int, n_samples: int) -> Energy:
        r"""
        Estimate the sum of the quadratic forms of the matrices between the kernels.

        .. math:: \sum_i \boldsymbol x_i^\top \mathbf{M}_i\, \boldsymbol x_i

        What `along` takes for the part along the kernel weights is summed over all samples, and the rest of the form
        over some of them, at equal distances in the order of all: every one if they are few.

        Shapes: x (n_outputs, n_kernels, n).
        """
        along = self.along[outputs] * _products(self.shared.context.weights.mean, x) ** 2
        step = max(1, n_samples // _ENOUGH)
        some = slice(-first % step, None, step)
        chosen = np.ascontiguousarray(x[:, :, some])
        forms = np.einsum("lmi,lmi->li", chosen, self.shared.matrix.some(outputs) @ chosen)
        upsilon, q = self.shared.context.intermediate_precision[outputs, None], self.shared.direction[outputs, None, :]
        forms += upsilon**2 * self.correction[outputs, some] * (q @ chosen)[:, 0] ** 2
        return Energy(along.sum(axis=1), (forms - along[:, some]).sum(axis=1), chosen.shape[2])

    def pull(self, profile: Profile, predictor: Array) -> tuple[Array, Array]:
        r"""
        Part of the means of G that comes from the likelihood, of rank two an output.

        .. math:: \Sigma_i \big(\tilde{\boldsymbol e}\,(w_i(\eta_i - \tilde b) + \ell'_i)
                  - \tilde\tau\,\Sigma_{eb}\big)

        Shapes: predictor (n_outputs, n); returns left (n_outputs, n_kernels, 2), right (n_outputs, 2, n).
        """
        shared, context = self.shared, self.shared.context
        weights, tau = context.weights, context.output_precision[:, None]
        slope = profile.curvature * (predictor - weights.bias[:, None]) + profile.gradient
        offset = tau * shared.spread.covariance.times_rows(weights.cross.T)
        bent = tau * self.correction * np.einsum("lm,ml->l", shared.direction, weights.cross)[:, None]
        along = slope / self.shrinkage + bent
        return np.stack([shared.direction, -offset], axis=2), np.stack([along, np.ones_like(along)], axis=1)

    def approximate_coupling(self, x: Array, outputs: slice) -> tuple[Array, Array, Array]:
        r"""
        Multiply with the approximation of `along`.

        .. math:: c_i\,\tilde{\boldsymbol e}\tilde{\boldsymbol e}^\top \boldsymbol x_i + \kappa\,\boldsymbol x_i

        Shapes: x (n_outputs, n_kernels, n); returns left (n_outputs, n_kernels, 1), right (n_outputs, 1, n), across
        (n_outputs,): the product is left times right, plus across times x.
        """
        e = self.shared.context.weights.mean
        right = (self.along[outputs] * _products(e, x))[:, None, :]
        return np.broadcast_to(e[:, None], (len(x), len(e), 1)), right, self.shared.across[outputs]


def _products(vector: Array, x: Array) -> Array:
    """Multiply a vector over the kernels with (n_outputs, n_kernels, n) vectors of samples."""
    products: Array = (vector[None, None, :] @ x)[:, 0]
    return products
