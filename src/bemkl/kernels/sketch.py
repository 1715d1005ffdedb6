"""The leading parts of many thin factors together, for a cheap and rough sum of their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.kernels.runs import Run

_SHARE = 0.95
_FEW = 2


class Sketch:
    """
    The first columns of each factor that make up 95 % of its trace, in single precision; all of it if that is little.

    Pivoted Cholesky puts the columns in the order of what they explain, so the first ones are the best ones.

    Parameters
    ----------
    runs : sequence of Run
        The factors.
    shape : (int, int, int)
        Numbers of kernels, samples and basis points.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones((1, 2))
    >>> run = Run(np.array([1]), np.array([1]), ones, ones)
    >>> Sketch([run], (2, 2, 2)).combine(np.array([5.0, 3.0])).round(12)
    array([[3., 3.],
           [3., 3.]])
    """

    def __init__(self, runs: Sequence[Run], shape: tuple[int, int, int]) -> None:
        _, n_samples, n_basis = shape
        few = sum(len(run.left) for run in runs) <= _FEW * n_basis
        chosen = [np.ones(len(run.left), dtype=np.bool_) if few else _leading(run) for run in runs]
        n_rows, dtype = sum(int(some.sum()) for some in chosen), np.float64 if few else np.float32
        self._owners, self._sizes = np.empty(n_rows, dtype=np.intp), np.empty(n_rows)
        self._left: npt.NDArray[Any] = np.empty((n_rows, n_samples), dtype)
        shared = n_samples == n_basis and all(run.left is run.right for run in runs)
        self._right = self._left if shared else np.empty((n_rows, n_basis), dtype)
        end = 0
        for run, some in zip(runs, chosen, strict=True):
            rows = slice(end, end := end + int(some.sum()))
            self._owners[rows] = run.owners[_members(run)[some]]
            # Single precision has a small range: the lengths of the columns go with the weights.
            lengths = _write(run.left[some], self._left[rows])
            self._sizes[rows] = lengths * (lengths if shared else _write(run.right[some], self._right[rows]))

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
            # Of the two, the factors of the basis points are the smaller ones.
            product: Array = np.multiply(self._left.T @ (own[:, None] * self._right), largest, dtype=np.float64)
            return product
        # A symmetric product costs half of a general one, but needs weights of one sign.
        total = np.zeros((self._left.shape[1], self._left.shape[1]))
        for sign in (1.0, -1.0):
            chosen = sign * own > 0.0
            root = np.sqrt(np.abs(own[chosen]))[:, None] * self._left[chosen]
            total += sign * (root.T @ root)
        total *= largest
        return total


def _write(columns: Array, out: npt.NDArray[Any]) -> Array:
    """Write columns of a factor at unit length, and return the lengths that they had."""
    lengths: Array = np.sqrt(np.einsum("rd,rd->r", columns, columns))
    np.divide(columns, np.where(lengths > 0.0, lengths, 1.0)[:, None], out=out, casting="same_kind")
    return lengths


def _members(run: Run) -> npt.NDArray[np.intp]:
    """Number of the member that each column of a run belongs to."""
    return np.repeat(np.arange(len(run.ends)), np.diff(run.ends, prepend=0))


def _leading(run: Run) -> npt.NDArray[np.bool_]:
    """Choose the first columns of each factor that make up most of its trace."""
    members = _members(run)
    squares = np.einsum("rd,rd->r", run.right, run.right)
    traces = np.bincount(members, squares, minlength=len(run.ends))[members]
    # Shares, because sums over kernels of different sizes would round the small ones away.
    sums = np.concatenate([[0.0], np.cumsum(np.divide(squares, traces, out=np.ones_like(squares), where=traces > 0.0))])
    starts = np.concatenate([[0], run.ends[:-1]])
    chosen: npt.NDArray[np.bool_] = sums[:-1] - sums[starts][members] < _SHARE
    return chosen
