"""The leading parts of many thin factors together, for a cheap and rough sum of their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array

_SHARE = 0.95
_FEW = 2


class Sketch:
    """
    The first columns of each factor that make up 95 % of its trace, in single precision; all of it if that is little.

    Pivoted Cholesky puts the columns in the order of what they explain, so the first ones are the best ones.

    Parameters
    ----------
    owners : sequence of int
        Number of the kernel that each pair of factors belongs to.
    factors : sequence of pairs of ndarray of shapes (rank, n_samples) and (rank, n_basis)
        The factors of samples and of basis points.
    shape : (int, int, int)
        Numbers of kernels, samples and basis points.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones((1, 2))
    >>> Sketch([1], [(ones, ones)], (2, 2, 2)).combine(np.array([5.0, 3.0]))
    array([[3., 3.],
           [3., 3.]])
    """

    def __init__(
        self, owners: Sequence[int], factors: Sequence[tuple[Array, Array]], shape: tuple[int, int, int]
    ) -> None:
        _, n_samples, n_basis = shape
        few = sum(len(right) for _, right in factors) <= _FEW * n_basis
        ranks = [len(right) if few else _leading(right) for _, right in factors]
        self._owners = np.repeat(np.array(owners, dtype=np.intp), ranks)
        dtype = np.float64 if few else np.float32
        self._left: npt.NDArray[Any] = np.empty((sum(ranks), n_samples), dtype)
        self._right = self._left
        # Single precision has a small range: the sizes of the factors go with the weights.
        sizes = [(_size(left), _size(right)) for left, right in factors]
        self._sizes = np.repeat(np.array([one * other for one, other in sizes]), ranks)
        for (left, _), (size, _), rank, end in zip(factors, sizes, ranks, np.cumsum(ranks), strict=True):
            self._left[end - rank : end] = left[:rank] / size
        if n_samples != n_basis or any(left is not right for left, right in factors):
            self._right = np.empty((sum(ranks), n_basis), dtype)
            for (_, right), (_, size), rank, end in zip(factors, sizes, ranks, np.cumsum(ranks), strict=True):
                self._right[end - rank : end] = right[:rank] / size

    def combine(self, weights: Array) -> Array:
        """
        Approximate the weighted sum of the kernels.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
            The weights.

        Returns
        -------
        ndarray of shape (n_samples, n_basis)
            The sum.
        """
        full = weights[self._owners] * self._sizes
        largest = float(np.abs(full).max(initial=0.0))
        if largest == 0.0:
            return np.zeros((self._left.shape[1], self._right.shape[1]))
        own = (full / largest).astype(self._left.dtype)
        if self._left is not self._right:
            return largest * np.asarray((own[:, None] * self._left).T @ self._right, dtype=np.float64)
        # A symmetric product costs half of a general one, but needs weights of one sign.
        total = np.zeros((self._left.shape[1], self._left.shape[1]))
        for sign in (1.0, -1.0):
            chosen = sign * own > 0.0
            root = np.sqrt(np.abs(own[chosen]))[:, None] * self._left[chosen]
            total += sign * (root.T @ root)
        total *= largest
        return total


def _size(factor: Array) -> float:
    """Largest entry of a factor; 1 for an empty or zero one."""
    return float(np.abs(factor).max(initial=0.0)) or 1.0


def _leading(factor: Array) -> int:
    """Number of first columns that make up most of the trace."""
    size = np.cumsum(np.einsum("rd,rd->r", factor, factor))
    return int(np.searchsorted(size, _SHARE * size[-1])) + 1 if len(size) else 0
