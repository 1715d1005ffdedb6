"""Stacks of kernels held as thin factors where that is smaller, and as matrices where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, refuse_nonfinite
from bemkl.kernels.sketch import Sketch
from bemkl.kernels.stack import asymmetry

_GRAM_ROWS = 2048
_RIDGE = 1e-15


@dataclass(frozen=True, slots=True, eq=False)
class LowRank:
    r"""
    A kernel matrix as a product, :math:`\mathbf{K} = \mathbf{L}^\top \mathbf{R}`.

    Parameters
    ----------
    left : ndarray of shape (rank, n_samples)
        Factor of the samples.
    right : ndarray of shape (rank, n_basis)
        Factor of the basis points; the same object where these are the samples.
    """

    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and basis points."""
        return self.left.shape[1], self.right.shape[1]

    def multiply(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the kernel, :math:`\mathbf{K} \boldsymbol a` for each row a.

        Parameters
        ----------
        rows : ndarray of shape (n_outputs, n_basis)
            The vectors.

        Returns
        -------
        ndarray of shape (n_outputs, n_samples)
            The products.
        """
        product: Array = (rows @ self.right.T) @ self.left
        return product

    def multiply_transposed(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the transposed kernel, :math:`\mathbf{K}^\top \boldsymbol g` for each row g.

        Parameters
        ----------
        rows : ndarray of shape (n_outputs, n_samples)
            The vectors.

        Returns
        -------
        ndarray of shape (n_outputs, n_basis)
            The products.
        """
        product: Array = (rows @ self.left.T) @ self.right
        return product

    def root(self) -> Array:
        r"""
        Return a thin matrix W with :math:`\mathbf{W}^\top\mathbf{W} = \mathbf{K}^\top\mathbf{K}`.

        Returns
        -------
        ndarray of shape (rank, n_basis)
            The root.
        """
        inner = self.left @ self.left.T
        if not inner.any():
            return np.zeros_like(self.right)
        # The last columns of a factor are as small as its tolerance: a ridge of the size of rounding keeps the rest.
        inner.flat[:: len(inner) + 1] += _RIDGE * len(inner) * inner.trace()
        root: Array = np.linalg.cholesky(inner).T @ self.right
        return root

    def rows(self, chosen: slice) -> Array:
        """
        Form some rows of the matrix.

        Parameters
        ----------
        chosen : slice
            Which samples.

        Returns
        -------
        ndarray of shape (n_chosen, n_basis)
            The rows.
        """
        rows: Array = self.left[:, chosen].T @ self.right
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class Full:
    """
    A kernel matrix as it is, with the operations of `LowRank`.

    Parameters
    ----------
    matrix : ndarray of shape (n_samples, n_basis)
        The matrix; float32 is kept, and converted when it is used.
    """

    matrix: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and basis points."""
        n_samples, n_basis = self.matrix.shape
        return n_samples, n_basis

    def multiply(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the kernel, :math:`\mathbf{K} \boldsymbol a` for each row a.

        Parameters
        ----------
        rows : ndarray of shape (n_outputs, n_basis)
            The vectors.

        Returns
        -------
        ndarray of shape (n_outputs, n_samples)
            The products.
        """
        product: Array = rows @ self._values.T
        return product

    def multiply_transposed(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the transposed kernel, :math:`\mathbf{K}^\top \boldsymbol g` for each row g.

        Parameters
        ----------
        rows : ndarray of shape (n_outputs, n_samples)
            The vectors.

        Returns
        -------
        ndarray of shape (n_outputs, n_basis)
            The products.
        """
        product: Array = rows @ self._values
        return product

    def root(self) -> Array:
        """
        Return the matrix itself, which is a root of its square.

        Returns
        -------
        ndarray of shape (n_samples, n_basis)
            The matrix.
        """
        return self._values

    def rows(self, chosen: slice) -> Array:
        """
        Return some rows of the matrix.

        Parameters
        ----------
        chosen : slice
            Which samples.

        Returns
        -------
        ndarray of shape (n_chosen, n_basis)
            The rows.
        """
        return self.matrix[chosen].astype(np.float64, copy=False)

    @property
    def _values(self) -> Array:
        return self.matrix.astype(np.float64, copy=False)


class FactoredStack:
    """
    Kernels held one by one, as thin factors or as matrices.

    The paper's banks have hundreds of kernels on one feature each, of rank 2 to 100: their factors are many times
    smaller than their matrices, and so are the passes over them.

    Parameters
    ----------
    kernels : sequence of LowRank or Full
        The kernels, all of the same samples and basis points.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones((1, 3))
    >>> stack = FactoredStack([Full(np.eye(3)), LowRank(ones, ones)])
    >>> stack.project(np.array([[1.0, 2.0, 3.0]]))
    array([[[1., 2., 3.],
            [6., 6., 6.]]])
    >>> stack.n_values
    12
    """

    def __init__(self, kernels: Sequence[LowRank | Full]) -> None:
        self._kernels = tuple(kernels)
        if not self._kernels:
            raise ValueError("kernels: expected at least one kernel, got none.")
        shapes = {kernel.shape for kernel in self._kernels}
        if len(shapes) > 1:
            raise ValueError(f"kernels: expected kernels of the same samples, got shapes {sorted(shapes)}.")
        for kernel in self._kernels:
            for part in _arrays(kernel):
                refuse_nonfinite("kernels", part)
        self._gram: Array | None = None
        self._sketch: Sketch | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""
        return len(self._kernels), *self._kernels[0].shape

    @property
    def n_values(self) -> int:
        """Number of values in memory."""
        return sum(part.size for kernel in self._kernels for part in _arrays(kernel))

    def asymmetries(self) -> Array:
        """
        Largest difference between each kernel and its transpose, relative to that kernel's largest entry.

        Returns
        -------
        ndarray of shape (n_kernels,)
            Zero for symmetric kernels; infinity where they are not square.
        """
        return np.array([_asymmetry(kernel) for kernel in self._kernels])

    def project(self, coefficients: Array) -> Array:
        r"""
        Multiply every kernel with coefficients of the basis points, :math:`\mathbf{K}_m \boldsymbol{a}`.

        Parameters
        ----------
        coefficients : ndarray of shape (n_outputs, n_basis)
            One row of coefficients an output.

        Returns
        -------
        ndarray of shape (n_outputs, n_kernels, n_samples)
            The intermediate outputs that the coefficients give.
        """
        n_kernels, n_samples, _ = self.shape
        result = np.empty((len(coefficients), n_kernels, n_samples))
        for m, kernel in enumerate(self._kernels):
            result[:, m] = kernel.multiply(coefficients)
        return result

    def backproject(self, intermediate: Array) -> Array:
        r"""
        Sum the kernels against intermediate outputs, :math:`\sum_m \mathbf{K}_m^\top \boldsymbol{g}^m`.

        Parameters
        ----------
        intermediate : ndarray of shape (n_outputs, n_kernels, n_samples)
            Intermediate outputs.

        Returns
        -------
        ndarray of shape (n_outputs, n_basis)
            The adjoint of :meth:`project`.
        """
        result = np.zeros((len(intermediate), self.shape[2]))
        for m, kernel in enumerate(self._kernels):
            result += kernel.multiply_transposed(intermediate[:, m])
        return result

    def gram(self) -> Array:
        r"""
        Sum of the squared kernels, :math:`\mathbf{C} = \sum_m \mathbf{K}_m^\top \mathbf{K}_m`, computed once.

        Returns
        -------
        ndarray of shape (n_basis, n_basis)
            The sum.
        """
        if self._gram is None:
            n_basis = self.shape[2]
            gram = np.zeros((n_basis, n_basis))
            for roots in self._roots():
                gram += roots.T @ roots
            self._gram = gram
        return self._gram

    def _roots(self) -> Iterator[Array]:
        """Yield the roots of the squared kernels, in runs long enough for fast products."""
        run: list[Array] = []
        for kernel in self._kernels:
            run.append(kernel.root())
            if sum(map(len, run)) >= _GRAM_ROWS:
                yield np.concatenate(run)
                run = []
        if run:
            yield np.concatenate(run)

    def combine(self, weights: Array) -> Array:
        r"""
        Approximate the weighted sum of the kernels, :math:`\sum_m e_m \mathbf{K}_m`.

        Of many factors, only the first columns that make up 95 % of the trace are used, in single precision: enough
        for a preconditioner, at a fraction of the cost.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
            The weights.

        Returns
        -------
        ndarray of shape (n_samples, n_basis)
            The sum.
        """
        if self._sketch is None:
            thin = [(m, kernel) for m, kernel in enumerate(self._kernels) if isinstance(kernel, LowRank)]
            self._sketch = Sketch([m for m, _ in thin], [(kernel.left, kernel.right) for _, kernel in thin], self.shape)
        total = self._sketch.combine(weights)
        for weight, kernel in zip(weights, self._kernels, strict=True):
            if isinstance(kernel, Full):
                total += weight * kernel.matrix
        return total

    def rows(self, chosen: slice) -> Array:
        """
        Form some rows of every kernel.

        Parameters
        ----------
        chosen : slice
            Which samples.

        Returns
        -------
        ndarray of shape (n_kernels, n_chosen, n_basis)
            The rows.
        """
        return np.stack([kernel.rows(chosen) for kernel in self._kernels])


def _arrays(kernel: LowRank | Full) -> list[npt.NDArray[Any]]:
    """Return the arrays that a kernel holds, each once."""
    if isinstance(kernel, Full):
        return [kernel.matrix]
    return [kernel.left] if kernel.left is kernel.right else [kernel.left, kernel.right]


def _asymmetry(kernel: LowRank | Full) -> float:
    if isinstance(kernel, LowRank) and kernel.left is kernel.right:
        return 0.0
    return asymmetry(kernel.rows(slice(None)))
