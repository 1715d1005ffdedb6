"""Matrices over biases and kernel weights together: few biases, many kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.symmetric import Dense, Solver, Symmetric
from bemkl.inference.thin import Thin

_NAME = "biases and kernel weights"


@dataclass(frozen=True, slots=True, eq=False)
class JointCovariance:
    """
    Covariance of biases and kernel weights, biases first.

    Parameters
    ----------
    biases : ndarray of shape (n_biases, n_biases)
        Covariance of the biases.
    cross : ndarray of shape (n_kernels, n_biases)
        Covariances of the kernel weights with each bias.
    kernels : Symmetric of size n_kernels
        Covariance of the kernel weights.

    Examples
    --------
    >>> import numpy as np
    >>> np.asarray(JointCovariance.independent(np.array([1.0, 2.0]), n_biases=1))
    array([[1., 0.],
           [0., 2.]])
    """

    biases: Array
    cross: Array
    kernels: Symmetric

    @classmethod
    def independent(cls, variance: Array, n_biases: int) -> JointCovariance:
        """
        Return the covariance of independent biases and weights.

        Parameters
        ----------
        variance : ndarray of shape (n_biases + n_kernels,)
            Variances.
        n_biases : int
            Number of biases.

        Returns
        -------
        JointCovariance
            The covariance.
        """
        n_kernels = len(variance) - n_biases
        return cls(np.diag(variance[:n_biases]), np.zeros((n_kernels, n_biases)), Thin.of_diagonal(variance[n_biases:]))

    def diagonal(self) -> Array:
        """
        Return the variances.

        Returns
        -------
        ndarray of shape (n_biases + n_kernels,)
            The variances.
        """
        return np.concatenate([self.biases.diagonal(), self.kernels.diagonal()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all numbers, shape (n_biases + n_kernels, n_biases + n_kernels)."""
        values = np.block([[self.biases, self.cross.T], [self.cross, np.asarray(self.kernels)]])
        return values if dtype is None else values.astype(dtype)

    def __matmul__(self, right: Array) -> Array:
        """Multiply with a vector, shape (n_biases + n_kernels,)."""
        b, e = right[: len(self.biases)], right[len(self.biases) :]
        return np.concatenate([self.biases @ b + self.cross.T @ e, self.cross @ b + self.kernels @ e])

    def scaled(self, factor: float) -> JointCovariance:
        """
        Return the covariance of kernel weights that are multiplied by a factor.

        Parameters
        ----------
        factor : float
            The factor.

        Returns
        -------
        JointCovariance
            The covariance.
        """
        return JointCovariance(self.biases, factor * self.cross, self.kernels.times(factor**2))


@dataclass(frozen=True, slots=True, eq=False)
class Bordered:
    r"""
    Precision of biases and kernel weights, in which the biases do not meet each other.

    .. math:: \begin{pmatrix} \operatorname{diag}(c) & L \\ L^\top & A \end{pmatrix}

    Parameters
    ----------
    corner : ndarray of shape (n_biases,)
        The diagonal c, positive.
    link : ndarray of shape (n_biases, n_kernels)
        The border L.
    kernels : Symmetric of size n_kernels
        The matrix A.

    Examples
    --------
    >>> import numpy as np
    >>> precision = Bordered(np.array([2.0]), np.array([[1.0, 0.0]]), Thin.of_diagonal(np.ones(2)))
    >>> covariance, logdet = precision.inverse_and_logdet()
    >>> np.asarray(covariance) @ (precision @ np.array([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """

    corner: Array
    link: Array
    kernels: Symmetric

    def __matmul__(self, right: Array) -> Array:
        """Multiply with a vector, shape (n_biases + n_kernels,)."""
        b, e = right[: len(self.corner)], right[len(self.corner) :]
        return np.concatenate([self.corner * b + self.link @ e, b @ self.link + self.kernels @ e])

    def diagonal(self) -> Array:
        """
        Return the diagonal.

        Returns
        -------
        ndarray of shape (n_biases + n_kernels,)
            The diagonal.
        """
        return np.concatenate([self.corner, self.kernels.diagonal()])

    def _without_biases(self, overwrite: bool) -> Symmetric:
        """Eliminate the biases, in a new matrix unless this one may be lost."""
        biases = Thin(np.zeros(self.kernels.size), self.link.T, -1.0 / self.corner)
        if not (overwrite and isinstance(self.kernels, Dense)):
            return self.kernels + biases
        biases.add_to(self.kernels.values)
        return self.kernels

    def inverse_and_logdet(self, *, overwrite: bool = False) -> tuple[JointCovariance, float]:
        """
        Invert a positive definite matrix.

        Parameters
        ----------
        overwrite : bool
            Whether the matrix may be lost: then the inverse takes the place of its kernels.

        Returns
        -------
        inverse : JointCovariance
            The inverse.
        logdet : float
            Log-determinant of the **inverse**.
        """
        kernels, logdet = self._without_biases(overwrite).inverse_and_logdet(_NAME, overwrite=True)
        shares = self.link.T / self.corner
        cross = -(kernels @ shares)
        biases = np.diag(1.0 / self.corner) - shares.T @ cross
        return JointCovariance(0.5 * (biases + biases.T), cross, kernels), logdet - float(np.log(self.corner).sum())

    def solver(self, *, overwrite: bool = False) -> BorderedSolver:
        """
        Return what solves systems with a positive definite matrix.

        Parameters
        ----------
        overwrite : bool
            Whether the matrix may be lost: then a factor takes the place of its kernels.

        Returns
        -------
        BorderedSolver
            The solver.
        """
        return BorderedSolver(self.corner, self.link, self._without_biases(overwrite).solver(_NAME, overwrite=True))


@dataclass(frozen=True, slots=True, eq=False)
class BorderedSolver:
    """
    Solver of systems with a bordered matrix.

    Parameters
    ----------
    corner : ndarray of shape (n_biases,)
        The diagonal of the biases.
    link : ndarray of shape (n_biases, n_kernels)
        The border.
    kernels : Solver
        Solver of systems with what is left of the matrix where the biases are eliminated.
    """

    corner: Array
    link: Array
    kernels: Solver

    def solve(self, right: Array) -> Array:
        """
        Solve a system with the matrix.

        Parameters
        ----------
        right : ndarray of shape (n_biases + n_kernels,)
            Right-hand side.

        Returns
        -------
        ndarray of shape (n_biases + n_kernels,)
            The solution.
        """
        corner, link = self.corner, self.link
        b, e = right[: len(corner)], right[len(corner) :]
        weights = self.kernels.solve(e - (b / corner) @ link)
        return np.concatenate([(b - link @ weights) / corner, weights])

    def kernel_variances(self, *, overwrite: bool = False) -> Array:
        """
        Return the diagonal of the inverse, where it belongs to kernel weights.

        Parameters
        ----------
        overwrite : bool
            Whether the solver may be lost: then no other matrix of its size is needed.

        Returns
        -------
        ndarray of shape (n_kernels,)
            The variances.
        """
        return self.kernels.inverse_diagonal(overwrite=overwrite)
