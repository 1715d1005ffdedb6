"""Stacks of kernel matrices: the only place where the inference touches a kernel value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, real_array, refuse_nonfinite

_BLOCK_BYTES = 64 * 2**20


class DenseStack:
    """
    Kernel matrices held in memory as one array.

    Parameters
    ----------
    kernels : array_like of shape (n_kernels, n_samples, n_basis)
        Entry (m, i, d) is the similarity of sample i to basis point d under kernel m. The basis points are the training
        samples, in their order, unless landmarks are used. A float32 array is kept as it is; all arithmetic is
        done in float64, a kernel at a time.

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

    def __init__(self, kernels: npt.ArrayLike) -> None:
        values = real_array("kernels", kernels)
        if values.ndim != 3 or 0 in values.shape:
            raise ValueError(
                "kernels: expected a kernel stack of shape (n_kernels, n_samples, n_basis), "
                f"got an array of shape {values.shape}. Put single matrices together with np.stack."
            )
        if values.dtype != np.float32:
            values = values.astype(np.float64, copy=False)
        refuse_nonfinite("kernels", values)
        self._values: npt.NDArray[Any] = np.ascontiguousarray(values)
        self._gram: Array | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""
        n_kernels, n_samples, n_basis = self._values.shape
        return n_kernels, n_samples, n_basis

    @property
    def values(self) -> npt.NDArray[Any]:
        """The kernel matrices, shape (n_kernels, n_samples, n_basis)."""
        return self._values

    def _parts(self) -> Iterator[tuple[slice, Array]]:
        """Yield runs of kernels as float64: all of them at once, or one by one where each needs a conversion."""
        if self._values.dtype == np.float64:
            yield slice(None), self._values
            return
        for m in range(self.shape[0]):
            yield slice(m, m + 1), self._values[m : m + 1].astype(np.float64)

    def asymmetry(self) -> float:
        """
        Largest difference between a kernel and its transpose, relative to that kernel's largest entry.

        Returns
        -------
        float
            Zero for symmetric kernels; infinity where the kernels are not square.
        """
        if self.shape[1] != self.shape[2]:
            return np.inf
        worst = 0.0
        for kernel in self._values:
            difference = float(np.abs(kernel - kernel.T).max())
            if difference > 0.0:
                worst = max(worst, difference / float(np.abs(kernel).max()))
        return worst

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
        n_kernels, n_samples, n_basis = self.shape
        result = np.empty((len(coefficients), n_kernels, n_samples))
        for kernels, part in self._parts():
            flat = part.reshape(-1, n_basis)
            result[:, kernels] = (coefficients @ flat.T).reshape(len(coefficients), -1, n_samples)
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
        n_basis = self.shape[2]
        result = np.zeros((len(intermediate), n_basis))
        for kernels, part in self._parts():
            result += intermediate[:, kernels].reshape(len(intermediate), -1) @ part.reshape(-1, n_basis)
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
            for _, part in self._parts():
                flat = part.reshape(-1, n_basis)
                gram += flat.T @ flat
            self._gram = gram
        return self._gram

    def quadratic(self, covariance: Array, weights: Array) -> tuple[Array, Array]:
        r"""
        Quadratic forms of the rows that a variance needs, in one pass and with bounded memory.

        With :math:`\mathbf{K}^i` the n_kernels × n_basis matrix of sample i: the diagonal of
        :math:`\mathbf{K}^i \mathbf{S} \mathbf{K}^{i\top}`, and
        :math:`\operatorname{tr}(\mathbf{W} \mathbf{K}^i \mathbf{S} \mathbf{K}^{i\top})`.

        Parameters
        ----------
        covariance : ndarray of shape (n_basis, n_basis)
            Symmetric matrix S.
        weights : ndarray of shape (n_kernels, n_kernels)
            Symmetric matrix W.

        Returns
        -------
        diagonal : ndarray of shape (n_kernels, n_samples)
            The variance of each intermediate output under the covariance S.
        trace : ndarray of shape (n_samples,)
            The weighted sum over all pairs of kernels.
        """
        n_kernels, n_samples, n_basis = self.shape
        diagonal, trace = np.empty((n_kernels, n_samples)), np.empty(n_samples)
        step = max(1, _BLOCK_BYTES // (8 * n_kernels * n_basis))
        for start in range(0, n_samples, step):
            rows = slice(start, start + step)
            block = np.ascontiguousarray(self._values[:, rows], dtype=np.float64)
            spread = block @ covariance
            diagonal[:, rows] = np.einsum("mid,mid->mi", block, spread)
            weighted = (weights @ block.reshape(n_kernels, -1)).reshape(block.shape)
            trace[rows] = np.einsum("mid,mid->i", weighted, spread)
        return diagonal, trace
