r"""
Gaussian predictors at some samples, conditioned on Gaussian pseudo-observations of them.

With the prior covariance C, precisions r of the observations and R = diag(r), everything comes from

.. math:: \mathbf{A} = (\mathbf{C} + \mathbf{R}^{-1})^{-1}
          = \mathbf{R}^{1/2} (\mathbf{I} + \mathbf{R}^{1/2}\mathbf{C}\mathbf{R}^{1/2})^{-1} \mathbf{R}^{1/2}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from bemkl._numerics.linalg import Cholesky, InverseTriangle
from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array

Positions = npt.NDArray[np.intp]

_BLOCK = 4096
"""Pairs of samples whose features are gathered at a time."""
_CANCELS = 1e-4
"""Share of a prior variance below which one minus it has lost digits, and is computed in another way."""


class Condition(Protocol):
    """A Gaussian predictor given pseudo-observations; samples first, one column an output."""

    @property
    def mean(self) -> Array:
        """Posterior means, shape (n_samples, n_outputs)."""

    @property
    def alpha(self) -> Array:
        """What the covariance maps to the means, shape (n_samples, n_outputs)."""

    @property
    def variance(self) -> Array:
        """Posterior variances, the same for each output, shape (n_samples,)."""

    @property
    def logdet(self) -> float:
        """Log-determinant of I + R^½ C R^½."""

    @property
    def remainder(self) -> Array | float:
        """Variances of what C leaves out of the predictor, shape (n_samples,)."""

    @property
    def residual_diagonal(self) -> Array:
        """Diagonal of A, shape (n_samples,)."""

    def residual_at(self, rows: Positions, columns: Positions) -> Array:
        """Return entries of A beside its diagonal, in the shape of both positions."""

    def residual_dense(self) -> Array:
        """Return A, shape (n_samples, n_samples)."""

    def residual_inner(self, matrix: Array) -> float:
        """Return the inner product of A with a symmetric (n_samples, n_samples) matrix."""

    def residual_times(self, vectors: Array) -> Array:
        """Multiply with A, the inverse covariance of the pseudo-observations, shape (n_samples, n)."""

    def residual_draws(self, normal: Array) -> Array:
        """Turn (n_samples, n) standard normal columns into ones with the covariance A."""


class Covariance(Protocol):
    """Prior covariance of a predictor at some samples."""

    @property
    def prior_variance(self) -> Array:
        """Prior variances of the predictor, shape (n_samples,)."""

    def condition(self, precision: Array, pull: Array) -> Condition:
        """Condition on observations with (n_samples,) precisions; pulls are (n_samples, n_outputs)."""


@dataclass(frozen=True, slots=True, eq=False)
class FullCovariance:
    """All numbers."""

    values: Array  # (n_samples, n_samples): the matrix C

    @property
    def prior_variance(self) -> Array:
        """Prior variances of the predictor. Shapes: returns (n_samples,)."""
        return self.values.diagonal()

    def condition(self, precision: Array, pull: Array) -> FullCondition:
        """Condition on observations. Shapes: precision (n_samples,), pull (n_samples, n_outputs)."""
        root = np.sqrt(precision)
        inner = self.values * root
        inner *= root[:, None]
        inner.flat[:: len(inner) + 1] += 1.0
        factor = Cholesky.of(inner, "predictor", overwrite=True)
        logdet, half = -factor.inverse_logdet, factor.inverse_triangle(overwrite=True)
        kept = half.diagonal
        variance = np.divide(
            1.0 - kept,
            precision,
            out=self.prior_variance.copy(),
            where=precision > np.finfo(np.float64).tiny,
        )
        # One minus a number close to one has few digits: there little is learned, and the direct form keeps them.
        weak = np.flatnonzero(precision * self.prior_variance < _CANCELS)
        if len(weak):
            seen = half.values @ (root[:, None] * self.values[:, weak])
            variance[weak] = self.prior_variance[weak] - np.square(seen).sum(axis=0)
        # Not as a difference of pulls, of which precise observations would leave no digits.
        alpha = root[:, None] * (half.values.T @ (half.values @ (pull / root[:, None])))
        return FullCondition(
            self.values @ alpha, alpha, np.maximum(variance, 0.0), logdet, precision * kept, half, root
        )


@dataclass(frozen=True, eq=False)
class FullCondition:
    """`Condition` with all numbers."""

    mean: Array  # (n_samples, n_outputs)
    alpha: Array  # (n_samples, n_outputs)
    variance: Array  # (n_samples,)
    logdet: float
    residual_diagonal: Array  # (n_samples,): diagonal of A
    half: InverseTriangle  # of I + R^½ C R^½
    root: Array  # (n_samples,): roots of the precisions
    remainder: float = 0.0

    @lazy_property
    def residual(self) -> Array:
        """The matrix A, which most steps do without. Shapes: returns (n_samples, n_samples)."""
        residual = self.half.inverse()
        residual *= self.root
        residual *= self.root[:, None]
        return residual

    def residual_at(self, rows: Positions, columns: Positions) -> Array:
        """Return entries of A. Shapes: rows (n,), columns (n,); returns (n,)."""
        return self.residual[rows, columns]

    def residual_dense(self) -> Array:
        """Return A. Shapes: returns (n_samples, n_samples)."""
        return self.residual

    def residual_inner(self, matrix: Array) -> float:
        """Return an inner product with A. Shapes: matrix (n_samples, n_samples)."""
        return float(np.vdot(self.residual, matrix))

    def residual_times(self, vectors: Array) -> Array:
        """Multiply with A. Shapes: vectors (n_samples, n)."""
        return self.residual @ vectors

    def residual_draws(self, normal: Array) -> Array:
        """Turn standard normal columns into ones with the covariance A. Shapes: normal (n_samples, n)."""
        drawn: Array = self.root[:, None] * (self.half.values.T @ normal)
        return drawn


@dataclass(frozen=True, slots=True, eq=False)
class LowRankCovariance:
    r"""The product of features of the samples, :math:`\mathbf{C} = \Phi\Phi^\top`."""

    features: Array  # (n_samples, n_features): the matrix Φ
    remainder: Array | None = None  # (n_samples,): variances beside it, of independent parts that nothing is learned of

    @property
    def prior_variance(self) -> Array:
        """Prior variances of the predictor. Shapes: returns (n_samples,)."""
        held = np.vecdot(self.features, self.features)
        variance: Array = held if self.remainder is None else held + self.remainder
        return variance

    def condition(self, precision: Array, pull: Array) -> LowRankCondition:
        """Condition on observations. Shapes: precision (n_samples,), pull (n_samples, n_outputs)."""
        scaled = np.sqrt(precision)[:, None] * self.features
        inner = scaled.T @ scaled  # half the work of a product of two matrices
        inner.flat[:: len(inner) + 1] += 1.0
        factor = Cholesky.of(inner, "predictor", overwrite=True)
        white = solve_triangular(factor.factor, self.features.T, lower=True, check_finite=False).T
        coefficients = solve_triangular(factor.factor, white.T @ pull, lower=True, trans=1, check_finite=False)
        mean = self.features @ coefficients
        return LowRankCondition(
            mean=mean,
            alpha=pull - precision[:, None] * mean,
            variance=np.vecdot(white, white),
            logdet=-factor.inverse_logdet,
            coefficients=coefficients,
            white=white,
            triangle=factor.factor,
            precision=precision,
            remainder=0.0 if self.remainder is None else self.remainder,
        )


@dataclass(frozen=True, slots=True, eq=False)
class LowRankCondition:
    r"""`Condition` by features: with :math:`\mathbf{M} = \mathbf{I} + \Phi^\top\mathbf{R}\Phi = \mathbf{LL}^\top`."""

    mean: Array  # (n_samples, n_outputs)
    alpha: Array  # (n_samples, n_outputs)
    variance: Array  # (n_samples,)
    logdet: float
    coefficients: Array  # (n_features, n_outputs): posterior means of the features' weights
    white: Array  # (n_samples, n_features): the features times L^-T
    triangle: Array  # (n_features, n_features): the factor L
    precision: Array  # (n_samples,)
    remainder: Array | float  # (n_samples,), or nothing

    @property
    def residual_diagonal(self) -> Array:
        """Diagonal of A. Shapes: returns (n_samples,)."""
        return self.precision * np.maximum(1.0 - self.precision * self.variance, np.finfo(np.float64).eps)

    def residual_at(self, rows: Positions, columns: Positions) -> Array:
        """Return entries of A beside its diagonal. Shapes: rows (n,), columns (n,); returns (n,)."""
        entries: Array = -self.precision[rows] * self.precision[columns]
        for first in range(0, len(rows), _BLOCK):
            some = slice(first, first + _BLOCK)
            entries[some] *= np.vecdot(self.white[rows[some]], self.white[columns[some]])
        return entries

    def residual_dense(self) -> Array:
        """Return A. Shapes: returns (n_samples, n_samples)."""
        return self.residual_times(np.eye(len(self.precision)))

    def residual_inner(self, matrix: Array) -> float:
        """Return an inner product with A. Shapes: matrix (n_samples, n_samples)."""
        weighted = self.precision[:, None] * self.white
        return float(self.precision @ matrix.diagonal() - np.vdot(weighted, matrix @ weighted))

    def residual_times(self, vectors: Array) -> Array:
        """Multiply with A. Shapes: vectors (n_samples, n)."""
        weighted = self.precision[:, None] * vectors
        return weighted - self.precision[:, None] * (self.white @ (self.white.T @ weighted))

    def residual_draws(self, normal: Array) -> Array:
        r"""
        Turn standard normal columns into ones with the covariance A. Shapes: normal (n_samples, n).

        With :math:`\mathbf{Q} = \mathbf{R}^{1/2}\Phi\mathbf{L}^{-\top}` and the eigenvalues :math:`\theta` of
        :math:`\mathbf{Q}^\top\mathbf{Q}`, all below one, the root of :math:`\mathbf{I} - \mathbf{QQ}^\top` takes the
        share :math:`(1 - \sqrt{1 - \theta}) / \theta` of each direction away.
        """
        root = np.sqrt(self.precision)[:, None]
        scaled = root * self.white
        theta, V = np.linalg.eigh(scaled.T @ scaled)
        theta = np.clip(theta, 0.0, 1.0)
        share = 1.0 / (1.0 + np.sqrt(1.0 - theta))
        directions = scaled @ V
        drawn: Array = root * (normal - directions @ (share[:, None] * (directions.T @ normal)))
        return drawn
