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
_ROWS = 1024
"""Rows that are multiplied at a time: memory that is new to a process costs more than the products."""


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

    Attributes
    ----------
    sizes : ndarray of shape (n_kernels,)
        How large each kernel is: its trace, where its factors are one; 0 for kernels that are not in the runs.

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
        n_kernels, n_samples, n_basis = shape
        few = sum(len(run.left) for run in runs) <= _FEW * n_basis
        squares = [_squares(run) for run in runs]
        chosen = [
            np.ones(len(run.left), dtype=np.bool_) if few else _leading(run, right)
            for run, (_, right) in zip(runs, squares, strict=True)
        ]
        n_rows, dtype = sum(int(some.sum()) for some in chosen), np.float64 if few else np.float32
        self._owners, self._sizes = np.empty(n_rows, dtype=np.intp), np.empty(n_rows)
        self._left: npt.NDArray[Any] = np.empty((n_rows, n_samples), dtype)
        shared = n_samples == n_basis and all(run.left is run.right for run in runs)
        self._right = self._left if shared else np.empty((n_rows, n_basis), dtype)
        self.sizes = np.zeros(n_kernels)
        end = 0
        for run, some, (left, right) in zip(runs, chosen, squares, strict=True):
            rows, members = slice(end, end := end + int(some.sum())), _members(run)
            self.sizes[run.owners] = np.sqrt(_traces(run, left) * _traces(run, right))
            self._owners[rows] = run.owners[members[some]]
            # Single precision has a small range: the lengths of the columns go with the weights.
            self._sizes[rows] = np.sqrt(left[some] * right[some])
            _write(run.left[some], left[some], self._left[rows])
            if not shared:
                _write(run.right[some], right[some], self._right[rows])

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
        roots = np.sqrt(np.abs(own))
        for sign in (1.0, -1.0):
            chosen = np.flatnonzero(sign * own > 0.0)
            for first in range(0, len(chosen), _ROWS):
                some = chosen[first : first + _ROWS]
                scaled = self._left[some]
                scaled *= roots[some, None]
                total += sign * (scaled.T @ scaled)
        total *= largest
        return total


def _squares(run: Run) -> tuple[Array, Array]:
    """Return the squared lengths of the columns of both factors."""
    left = np.einsum("rd,rd->r", run.left, run.left)
    return left, left if run.left is run.right else np.einsum("rd,rd->r", run.right, run.right)


def _write(columns: Array, squares: Array, out: npt.NDArray[Any]) -> None:
    """Write columns of a factor at unit length."""
    np.divide(columns, np.sqrt(np.where(squares > 0.0, squares, 1.0))[:, None], out=out, casting="same_kind")


def _members(run: Run) -> npt.NDArray[np.intp]:
    """Number of the member that each column of a run belongs to."""
    return np.repeat(np.arange(len(run.ends)), np.diff(run.ends, prepend=0))


def _traces(run: Run, squares: Array) -> Array:
    """Sum the squared lengths of the columns of each factor."""
    traces: Array = np.bincount(_members(run), squares, minlength=len(run.ends)).astype(np.float64)
    return traces


def _leading(run: Run, squares: Array) -> npt.NDArray[np.bool_]:
    """Choose the first columns of each factor that make up most of its trace, by their squared lengths."""
    members = _members(run)
    traces = _traces(run, squares)[members]
    # Shares, because sums over kernels of different sizes would round the small ones away.
    sums = np.concatenate([[0.0], np.cumsum(np.divide(squares, traces, out=np.ones_like(squares), where=traces > 0.0))])
    starts = np.concatenate([[0], run.ends[:-1]])
    chosen: npt.NDArray[np.bool_] = sums[:-1] - sums[starts][members] < _SHARE
    return chosen
