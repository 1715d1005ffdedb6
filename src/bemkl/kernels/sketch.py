"""The leading parts of many thin factors together, for a cheap and rough sum of their kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array

Single = npt.NDArray[np.float32]

_SHARE = 0.95


class Sketch:
    """
    The first columns of each factor that make up 95 % of its trace, in single precision.

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
        ranks = [_leading(right) for _, right in factors]
        self._owners = np.repeat(np.array(owners, dtype=np.intp), ranks)
        self._left = np.empty((sum(ranks), n_samples), np.float32)
        self._right = self._left
        for (left, _), rank, end in zip(factors, ranks, np.cumsum(ranks), strict=True):
            self._left[end - rank : end] = left[:rank]
        if n_samples != n_basis or any(left is not right for left, right in factors):
            self._right = np.empty((sum(ranks), n_basis), np.float32)
            for (_, right), rank, end in zip(factors, ranks, np.cumsum(ranks), strict=True):
                self._right[end - rank : end] = right[:rank]

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
        own = weights[self._owners].astype(np.float32)
        if self._left is not self._right:
            return np.asarray((own[:, None] * self._left).T @ self._right, dtype=np.float64)
        # A symmetric product costs half of a general one, but needs weights of one sign.
        total = np.zeros((self._left.shape[1], self._left.shape[1]))
        for sign in (1.0, -1.0):
            chosen = sign * own > 0.0
            root = np.sqrt(np.abs(own[chosen]))[:, None] * self._left[chosen]
            total += sign * (root.T @ root)
        return total


def _leading(factor: Array) -> int:
    """Number of first columns that make up most of the trace."""
    size = np.cumsum(np.einsum("rd,rd->r", factor, factor))
    return int(np.searchsorted(size, _SHARE * size[-1])) + 1 if len(size) else 0
