"""Stacks of kernel matrices: the only place where the inference touches a kernel value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk

from bemkl._numerics.linalg import mirror
from bemkl._numerics.threads import one_thread_is_enough
from bemkl.arrays import Array, real_array, refuse_out_of_range

LARGE_KERNELS = "Divide such a kernel by its largest entry, or standardise the columns that it is made of."
"""What to do about kernels whose squares may not be numbers."""


class DenseStack:
    """
    Kernel matrices held in memory as one array.

    Parameters
    ----------
    kernels : array_like of shape (n_kernels, n_samples, n_basis)
        Entry (m, i, d) is the similarity of sample i to basis point d under kernel m. The basis points are the training
        samples, in their order, unless landmarks are used. A float32 array is kept as it is; all arithmetic is
        done in float64, a kernel at a time.
    own : ndarray of shape (n_kernels, n_samples), optional
        Similarities of the samples to themselves, where they are known.

    Examples
    --------
    >>> import numpy as np
    >>> stack = DenseStack(np.stack([np.eye(3), np.ones((3, 3))]))
    >>> stack.shape
    (2, 3, 3)
    >>> stack.project(np.array([[1.0, 2.0, 3.0]]))
    array([[[1., 2., 3.],
            [6., 6., 6.]]])
    """

    def __init__(self, kernels: npt.ArrayLike, *, own: Array | None = None) -> None:
        values = real_array("kernels", kernels)
        if values.ndim != 3 or 0 in values.shape:
            raise ValueError(
                "kernels: expected a kernel stack of shape (n_kernels, n_samples, n_basis), "
                f"got an array of shape {values.shape}. Put single matrices together with np.stack."
            )
        if values.dtype != np.float32:
            values = values.astype(np.float64, copy=False)
        refuse_out_of_range("kernels", values, LARGE_KERNELS)
        self._values: npt.NDArray[Any] = np.ascontiguousarray(values)
        self._gram: Array | None = None
        self.own = own

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""
        n_kernels, n_samples, n_basis = self._values.shape
        return n_kernels, n_samples, n_basis

    @property
    def n_values(self) -> int:
        """Number of values in memory."""
        return self._values.size

    @property
    def values(self) -> npt.NDArray[Any]:
        """The kernel matrices, shape (n_kernels, n_samples, n_basis)."""
        return self._values

    def _parts(self) -> Iterator[tuple[slice, Array]]:
        """Yield kernels as float64: all of them at once, or one by one where each needs a conversion."""
        if self._values.dtype == np.float64:
            yield slice(None), self._values
            return
        for m in range(self.shape[0]):
            yield slice(m, m + 1), self._values[m : m + 1].astype(np.float64)

    def asymmetries(self) -> Array:
        """
        Largest difference between each kernel and its transpose, relative to that kernel's largest entry.

        Shapes: returns (n_kernels,).
        """
        return np.array([asymmetry(kernel) for kernel in self._values])

    def project(self, coefficients: Array) -> Array:
        r"""
        Multiply every kernel with coefficients of the basis points, :math:`\mathbf{K}_m \boldsymbol{a}`.

        Shapes: coefficients (n_outputs, n_basis); returns (n_outputs, n_kernels, n_samples).
        """
        n_kernels, n_samples, n_basis = self.shape
        result = np.empty((len(coefficients), n_kernels, n_samples))
        for kernels, part in self._parts():
            flat = part.reshape(-1, n_basis)
            result[:, kernels] = (coefficients @ flat.T).reshape(len(coefficients), -1, n_samples)
        return result

    def backproject(self, intermediate: Array) -> Array:
        r"""
        Sum the kernels against intermediate outputs, :math:`\sum_m \mathbf{K}_m^\top \boldsymbol{g}^m`.

        Shapes: intermediate (n_outputs, n_kernels, n_samples); returns (n_outputs, n_basis).
        """
        n_basis = self.shape[2]
        result = np.zeros((len(intermediate), n_basis))
        for kernels, part in self._parts():
            result += intermediate[:, kernels].reshape(len(intermediate), -1) @ part.reshape(-1, n_basis)
        return result

    def gram(self) -> Array:
        r"""
        Sum of the squared kernels, :math:`\mathbf{C} = \sum_m \mathbf{K}_m^\top \mathbf{K}_m`, computed once.

        Shapes: returns (n_basis, n_basis).
        """
        if self._gram is None:
            n_basis = self.shape[2]
            self._gram = sum_of_squares((part.reshape(-1, n_basis) for _, part in self._parts()), n_basis)
        return self._gram

    def combine(self, weights: Array) -> Array:
        r"""
        Weighted sum of the kernels, :math:`\sum_m e_m \mathbf{K}_m`.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
            The weights.

        Returns
        -------
        ndarray of shape (n_samples, n_basis)
            The sum.
        """
        _, n_samples, n_basis = self.shape
        combined = np.zeros(n_samples * n_basis)
        for kernels, part in self._parts():
            combined += weights[kernels] @ part.reshape(len(part), -1)
        return combined.reshape(n_samples, n_basis)

    def combine_roughly(self, weights: Array) -> Array:
        """
        Approximate the weighted sum of the kernels; of matrices, the sum itself.

        Shapes: weights (n_kernels,); returns (n_samples, n_basis).
        """
        return self.combine(weights)

    def each(self) -> Iterator[tuple[int, Array | None, npt.NDArray[Any] | None]]:
        """
        Show the kernels one by one.

        Yields
        ------
        position : int
            Place of the kernel.
        factor : None
            There is none.
        matrix : ndarray of shape (n_samples, n_basis)
            The kernel.
        """
        for m, kernel in enumerate(self._values):
            yield m, None, kernel

    def rows(self, chosen: slice) -> Array:
        """Return some rows of every kernel. Shapes: returns (n_kernels, n_chosen, n_basis)."""
        return np.ascontiguousarray(self._values[:, chosen], dtype=np.float64)


def asymmetry(kernel: npt.NDArray[Any]) -> float:
    """
    Largest difference between a kernel and its transpose, relative to its largest entry.

    Shapes: kernel (n_samples, n_basis).
    """
    if kernel.shape[0] != kernel.shape[1]:
        return np.inf
    if np.array_equal(kernel, kernel.T):
        return 0.0
    return float(np.abs(kernel - kernel.T).max()) / float(np.abs(kernel).max())


def sum_of_squares(pieces: Iterable[Array], size: int) -> Array:
    r"""
    Sum the squares of matrices, :math:`\sum_k \mathbf{X}_k^\top \mathbf{X}_k`.

    Shapes: pieces (n_rows, size); returns (size, size).
    """
    total = np.zeros((size, size))
    if one_thread_is_enough(size):
        for piece in pieces:
            # One half, in place: NumPy fills both halves of a new matrix for each piece.
            dsyrk(1.0, piece.T, beta=1.0, c=total.T, lower=1, overwrite_c=1)
        mirror(total)
        return total
    # Only NumPy's library may have more threads than one.
    product = np.empty_like(total)
    for piece in pieces:
        total += np.matmul(piece.T, piece, out=product)
    return total
