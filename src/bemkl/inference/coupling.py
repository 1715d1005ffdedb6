"""How the kernels of a sample couple in the sample weights, once the means of G are eliminated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bemkl.arrays import Array
from bemkl.caching import lazy_property
from bemkl.inference.moments import PairContext, Profile
from bemkl.inference.pair_factors import intermediate_covariance, mean_coupling
from bemkl.inference.per_output import PerOutput
from bemkl.linalg import add_products

_ACROSS = 0.5
_ENOUGH = 32
"""Samples that tell an energy well enough: with so many, fits of the paper's sets take no more sweeps."""


@dataclass(frozen=True, eq=False)
class Coupling:
    r"""
    The quadratic model of the bound in the means of (a, G), with a curvature of its own for each sample.

    With :math:`\Sigma(\boldsymbol g)` the covariance for the precision :math:`\tilde\tau` of the targets, sample i has

    .. math:: \Sigma_i = \big(\Sigma(\boldsymbol g)^{-1} + (w_i - \tilde\tau)\,\tilde{\boldsymbol e}
              \tilde{\boldsymbol e}^\top\big)^{-1} = \Sigma(\boldsymbol g) - \rho_i\,\boldsymbol q\boldsymbol q^\top,
              \qquad \boldsymbol q = \Sigma(\boldsymbol g)\,\tilde{\boldsymbol e}

    and eliminating its mean of G leaves the matrix
    :math:`\mathbf{M}_i = \tilde\upsilon(\mathbf{I} - \tilde\upsilon\,\Sigma_i)` between its kernels.
    """

    context: PairContext  # expectations of the neighbours
    curvature: Array  # (n_outputs, n_samples): the curvatures w_i, at most τ
    covariance: PerOutput  # the matrices Σ(g)
    logdet: Array  # (n_outputs,): their log-determinants
    matrix: PerOutput  # {M} for the precision of the targets
    direction: Array  # (n_outputs, n_kernels): the vectors q
    shrinkage: Array  # (n_outputs, n_samples): 1 + (w_i - τ) eᵀq, positive
    correction: Array  # (n_outputs, n_samples): ρ_i, the excess curvature over the shrinkage

    @classmethod
    def of(cls, context: PairContext, curvature: Array) -> Coupling:
        """Build the model for given curvatures. Shapes: curvature (n_outputs, n_samples)."""
        e = context.weights.mean
        covariance, logdet = intermediate_covariance(context)
        q = covariance @ e
        excess = curvature - context.output_precision[:, None]
        shrinkage = 1.0 + excess * (q @ e)[:, None]
        matrix = mean_coupling(covariance, context.intermediate_precision)
        return cls(context, curvature, covariance, logdet, matrix, q, shrinkage, excess / shrinkage)

    def couple(self, x: Array, outputs: slice = slice(None)) -> Array:
        r"""
        Multiply with the matrices between the kernels, :math:`\mathbf{M}_i \boldsymbol x_i`.

        Shapes: x (n_outputs, n_kernels, n_samples); returns (n_outputs, n_kernels, n_samples).
        """
        product = self.matrix.some(outputs) @ x
        rho = self.correction[outputs]
        if rho.any():
            q, upsilon = self.direction[outputs], self.context.intermediate_precision[outputs, None]
            along = upsilon**2 * rho * (q[:, None, :] @ x)[:, 0]
            add_products(product, q, along)
        return product

    def energy(self, x: Array, outputs: slice = slice(None)) -> Array:
        r"""
        Estimate the sum of the quadratic forms of the matrices between the kernels.

        .. math:: \sum_i \boldsymbol x_i^\top \mathbf{M}_i\, \boldsymbol x_i

        What `rank_one` takes for the part along the kernel weights is summed over all samples, and the rest of the
        form over some of them, at equal distances in their order: all if they are few.

        Shapes: x (n_outputs, n_kernels, n_samples); returns (n_outputs,).
        """
        along = self.rank_one[0][outputs] * _products(self.context.weights.mean, x) ** 2
        some = slice(None, None, max(1, x.shape[2] // _ENOUGH))
        chosen = np.ascontiguousarray(x[:, :, some])
        forms = np.einsum("lmi,lmi->li", chosen, self.matrix.some(outputs) @ chosen)
        upsilon, q = self.context.intermediate_precision[outputs, None], self.direction[outputs, None, :]
        forms += upsilon**2 * self.correction[outputs, some] * (q @ chosen)[:, 0] ** 2
        rest = np.maximum((forms - along[:, some]).mean(axis=1), 0.0)
        total: Array = along.sum(axis=1) + x.shape[2] * rest
        return total

    def pull(self, profile: Profile, predictor: Array) -> tuple[Array, Array]:
        r"""
        Part of the means of G that comes from the likelihood, of rank two an output.

        .. math:: \Sigma_i \big(\tilde{\boldsymbol e}\,(w_i(\eta_i - \tilde b) + \ell'_i)
                  - \tilde\tau\,\Sigma_{eb}\big)

        Shapes: predictor (n_outputs, n_samples); returns left (n_outputs, n_kernels, 2), right (n_outputs, 2,
        n_samples).
        """
        weights, tau = self.context.weights, self.context.output_precision[:, None]
        slope = profile.curvature * (predictor - weights.bias[:, None]) + profile.gradient
        offset = tau * self.covariance.times_rows(weights.cross.T)
        bent = tau * self.correction * np.einsum("lm,ml->l", self.direction, weights.cross)[:, None]
        along = slope / self.shrinkage + bent
        return np.stack([self.direction, -offset], axis=2), np.stack([along, np.ones_like(along)], axis=1)

    def rank_one_factors(self, x: Array, outputs: slice = slice(None)) -> tuple[Array, Array, Array]:
        r"""
        Multiply with the approximation of `rank_one`.

        .. math:: c_i\,\tilde{\boldsymbol e}\tilde{\boldsymbol e}^\top \boldsymbol x_i + \kappa\,\boldsymbol x_i

        Shapes: x (n_outputs, n_kernels, n_samples); returns left (n_outputs, n_kernels, 1), right (n_outputs, 1,
        n_samples), across (n_outputs,).
        """
        along, across = self.rank_one
        e = self.context.weights.mean
        right = (along[outputs] * _products(e, x))[:, None, :]
        return np.broadcast_to(e[:, None], (len(x), len(e), 1)), right, across[outputs]

    @lazy_property
    def rank_one(self) -> tuple[Array, Array]:
        r"""
        Approximate the matrices between the kernels by one of rank one and a multiple of the identity.

        The posterior covariance of the kernel weights is small next to their mean along the mean, and about a multiple
        of the identity across it:

        .. math:: \mathbf{M}_i \approx c_i\,\tilde{\boldsymbol e}\tilde{\boldsymbol e}^\top + \kappa\,\mathbf{I},
                  \qquad c_i = \frac{\tilde\upsilon w_i}{\tilde\upsilon + w_i\,\lVert\tilde{\boldsymbol e}\rVert^2}

        with :math:`\kappa` half the mean of what is left of the diagonal. The covariance is less than its mean in the
        directions that the data speak of, and there it gives way when it follows.

        Shapes: returns along (n_outputs, n_samples), across (n_outputs,).
        """
        upsilon, tau = self.context.intermediate_precision, self.context.output_precision
        squared = float(self.context.weights.mean @ self.context.weights.mean)
        along = upsilon[:, None] * self.curvature / (upsilon[:, None] + self.curvature * squared)
        left = self.matrix.each(lambda matrix: matrix.trace()) - upsilon * tau * squared / (upsilon + tau * squared)
        return along, _ACROSS * np.maximum(left, 0.0) / len(self.context.weights.mean)


def _products(vector: Array, x: Array) -> Array:
    """Multiply a vector over the kernels with (n_outputs, n_kernels, n_samples) vectors of samples."""
    products: Array = (vector[None, None, :] @ x)[:, 0]
    return products
