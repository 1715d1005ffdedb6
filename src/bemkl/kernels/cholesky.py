"""Pivoted Cholesky: positive semidefinite kernels as products of thin factors, from a few of their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import LARGEST, SMALLEST, Array
from bemkl.kernels.shelf import Shelf

Column = Callable[[int], Array]
"""Maps the position of a point to its (n_points,) similarities to all points."""

Steps = Callable[[Array, Array, Array, npt.NDArray[np.intp], int, int, int, float], tuple[int, int, int]]
"""
Steps of pivoted Cholesky for several kernels of unit diagonal, one after the other and in place.

In: rows to write to, the (n_kernels, n_points) residuals and inverse lengths of the points, the (n_kernels,) ranks to
fill in, the kernel to go on with and the rank that it has in the first rows, the largest rank worth having, the largest
residual that may be left. Out: the kernel where the rows were not enough, or the number of kernels; the rank that it
has; and the rows before it, which belong to finished kernels. Ranks are -1 where `next_stop` gives a kernel up.
"""

# Compiled code is kept until loops.py changes: touch it after a change of this number or of next_stop.
_MANY_FEATURES = 5


def next_stop(rank: int, most: int, n_features: int, left: float, recent: float, whole: float, goal: float) -> int:
    """
    Return the rank up to which a factor should grow before the next review.

    The early review is after a quarter of the columns that are worth having, the late one after half of them; of
    kernels that see many features, after a sixteenth and a quarter. A factor is given up at the early one if half of
    the trace is left or, with many features, if the columns explain less than two points each; and at the late one if
    it is foreseeable that the other columns will not do. Kernels on a few features fall faster and faster: one that
    fell by a smaller factor in the second half of the columns than in the first, and will not do with twice as much of
    a fall. Those on many features fall slower and slower: one that will not do with three times as much, in two more
    doublings of the columns.
    """
    many = n_features >= _MANY_FEATURES
    early = min(most, max(1, most // (16 if many else 4)))
    late = max(early, most // (4 if many else 2))
    if rank < early:
        return early
    if rank == early and left > (whole - 2.0 * rank if many else 0.5 * whole):
        return rank
    if rank < late:
        return late
    if early < late == rank:
        fall = (left + recent) / left
        slower = many or fall < whole / (left + recent)
        if slower and fall ** (3 if many else 2) < left / goal:
            return rank
    return max(rank, most)


def from_columns(columns: Sequence[Column], own_ranks: Sequence[float] | None = None) -> Steps:
    """Return the steps of pivoted Cholesky for kernels that are known by their columns."""

    def steps(
        room: Array,
        residuals: Array,
        inverses: Array,
        ranks: npt.NDArray[np.intp],
        kernel: int,
        rank: int,
        most: int,
        tolerance: float,
    ) -> tuple[int, int, int]:
        used = 0
        while kernel < len(columns):
            factor, residual, inverse = room[used:], residuals[kernel], inverses[kernel]
            while residual.max() > tolerance:
                whole = float(np.count_nonzero(inverse))
                recent = (
                    float(np.sum(factor[rank // 2 : rank] ** 2)) if own_ranks and own_ranks[kernel] > most else np.inf
                )
                stop = next_stop(rank, most, 1, float(residual.sum()), recent, whole, tolerance * whole)
                if stop == rank:
                    break
                if rank == len(factor):
                    return kernel, rank, used
                rank = _extend(columns[kernel], factor, residual, inverse, rank, min(stop, len(factor)), tolerance)
            ranks[kernel] = rank if residual.max() <= tolerance else -1
            used += max(0, int(ranks[kernel]))
            kernel, rank = kernel + 1, 0
        return kernel, rank, used

    return steps


def _extend(
    column: Column, factor: Array, residual: Array, inverse: Array, rank: int, stop: int, tolerance: float
) -> int:
    """Add columns to a factor, unless the largest residual is within the tolerance before; return the rank reached."""
    while rank < stop:
        pivot = int(residual.argmax())
        largest = float(residual[pivot])
        if largest <= tolerance:
            break
        new = factor[rank]
        new[:] = column(pivot) * (inverse * inverse[pivot])
        if rank:
            new -= factor[:rank, pivot] @ factor[:rank]
        new *= largest**-0.5
        residual -= new * new
        residual[pivot] = 0.0
        rank += 1
    return rank


def pivoted_cholesky(
    steps: Steps, diagonals: Array, tolerance: float, most: int, shelf: Shelf | None = None
) -> list[Array | None]:
    r"""
    Factor positive semidefinite kernel matrices by columns chosen where the remainder is largest.

    .. math:: |k_{ij} - \boldsymbol z_i^\top \boldsymbol z_j| \le \varepsilon \sqrt{k_{ii}\,k_{jj}}

    holds for every entry, because the remainder is positive semidefinite too. The matrices are never formed: beside
    their diagonals, only one column for each column of a factor is asked for.

    Shapes: diagonals (n_kernels, n_points); returns (rank, n_points).
    """
    n_kernels, n_points = diagonals.shape
    finite = np.logical_and.reduce(np.abs(diagonals) <= LARGEST, axis=1)
    # The reciprocals of two lengths are multiplied.
    lengths = np.sqrt(np.where(finite[:, None] & (diagonals >= SMALLEST**2), diagonals, 0.0))
    inverses = np.divide(1.0, lengths, out=np.zeros(lengths.shape), where=lengths > 0.0)
    # A kernel that has nothing left to explain is done at once.
    residuals = (lengths > 0.0).astype(np.float64)
    shelf = shelf or Shelf(n_points)
    room, ranks = shelf.room(most * n_kernels), np.zeros(n_kernels, dtype=np.intp)
    factors: list[Array | None] = []
    rank = 0
    while True:
        done, rank, used = steps(room, residuals, inverses, ranks, len(factors), rank, most, tolerance)
        unfinished, rows, end = room[used : used + rank], shelf.take(used), 0
        for found in ranks[len(factors) : done]:
            factors.append(rows[end : end + found] if found >= 0 else None)
            end += max(0, int(found))
        if done == n_kernels:
            break
        room = shelf.more(unfinished, most * (n_kernels - done))
    for k in np.flatnonzero(~finite):
        factors[k] = None
    for factor, length, unit in zip(factors, lengths, (lengths == 1.0).all(axis=1), strict=True):
        if factor is not None and not unit:
            factor *= length
    return factors


def compressed(kernel: npt.NDArray[Any], tolerance: float) -> Array | None:
    """
    Factor a kernel matrix that is there already, if it is symmetric and positive semidefinite.

    Shapes: kernel (n_points, n_points); returns (rank, n_points).
    """
    diagonal = kernel.diagonal().astype(np.float64)
    steps = from_columns([lambda point: kernel[point]])
    (factor,) = pivoted_cholesky(steps, diagonal[None], tolerance, len(kernel) // 2)
    if factor is None:
        return None
    length = np.sqrt(np.maximum(diagonal, 0.0))
    # Rounding of entries of size 1 adds to the tolerance; a matrix that is not semidefinite fails by far more.
    error = np.abs(factor.T @ factor - kernel) <= (tolerance + 1e-14) * np.multiply.outer(length, length)
    return factor if error.all() else None
