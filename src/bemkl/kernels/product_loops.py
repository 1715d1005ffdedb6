"""Compiled products of thin factors. Needs Numba; `bemkl.kernels.compiled` imports it, and knows what to do without."""

from __future__ import annotations

import numpy as np
from numba import njit

from bemkl.arrays import Array


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def project(owners: Array, ends: Array, left: Array, right: Array, coefficients: Array, out: Array) -> None:
    """
    Multiply kernels that are products of thin factors with coefficients, as `bemkl.kernels.runs.Run.project` does.

    Each row of the factors is read once; sums may be taken in any order, which lets the compiler use vectors.

    Shapes: owners (n_members,), ends (n_members,), left (n_rows, n_samples), right (n_rows, n_basis), coefficients
    (n_outputs, n_basis), out (n_outputs, n_kernels, n_samples).
    """
    first = 0
    for member in range(len(ends)):
        out[:, owners[member]] = 0.0
        for row in range(first, ends[member]):
            for output in range(len(coefficients)):
                target = out[output, owners[member]]
                share = 0.0
                for d in range(right.shape[1]):
                    share += right[row, d] * coefficients[output, d]
                for i in range(left.shape[1]):
                    target[i] += share * left[row, i]
        first = ends[member]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def backproject(owners: Array, ends: Array, left: Array, right: Array, intermediate: Array, out: Array) -> None:
    """
    Add kernels times intermediate outputs, as `bemkl.kernels.runs.Run.backproject` does.

    Shapes: owners (n_members,), ends (n_members,), left (n_rows, n_samples), right (n_rows, n_basis), intermediate
    (n_outputs, n_kernels, n_samples), out (n_outputs, n_basis).
    """
    first = 0
    for member in range(len(ends)):
        for row in range(first, ends[member]):
            for output in range(len(intermediate)):
                source = intermediate[output, owners[member]]
                share = 0.0
                for i in range(left.shape[1]):
                    share += left[row, i] * source[i]
                for d in range(right.shape[1]):
                    out[output, d] += share * right[row, d]
        first = ends[member]


@njit(cache=True, nogil=True)
def write_scaled(factor: Array, places: Array, scales: Array, out: Array) -> None:
    """
    Write some rows of a factor, each times a number, in the precision of what is written to.

    Shapes: factor (n_rows, n_points), places (n_chosen,), scales (n_chosen,), out (n_chosen, n_points).
    """
    for k in range(len(places)):
        row, scale = factor[places[k]], scales[k]
        for i in range(len(row)):
            out[k, i] = scale * row[i]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def write_roots(left: Array, right: Array, ends: Array, kept: Array, ridge: float, out: Array) -> int:
    """
    Write roots of the squares of kernels with short factors, as `bemkl.kernels.forms.LowRank.write_root` does.

    Shapes: left (n_rows, n_samples), right (n_rows, n_basis), ends (n_members,), kept (n_members,), out (n_out,
    n_basis).
    """
    first, row = 0, 0
    for member in range(len(ends)):
        rank = ends[member] - first
        inner = np.empty((rank, rank))
        trace = 0.0
        for j in range(rank):
            for k in range(j + 1):
                product = 0.0
                for i in range(left.shape[1]):
                    product += left[first + j, i] * left[first + k, i]
                inner[j, k] = product
            trace += inner[j, j]
        if trace == 0.0:
            out[row : row + kept[member]] = 0.0
            row, first = row + kept[member], ends[member]
            continue
        # The Cholesky factor, in the lower triangle.
        for j in range(rank):
            inner[j, j] += ridge * rank * trace
            for k in range(j + 1):
                for h in range(k):
                    inner[j, k] -= inner[j, h] * inner[k, h]
                if k < j:
                    inner[j, k] /= inner[k, k]
            if not inner[j, j] > 0.0:
                return member
            inner[j, j] = inner[j, j] ** 0.5
        for k in range(kept[member]):
            out[row] = 0.0
            for j in range(k, rank):
                for d in range(right.shape[1]):
                    out[row, d] += inner[j, k] * right[first + j, d]
            row += 1
        first = ends[member]
    return len(ends)


@njit(cache=True, nogil=True, fastmath={"contract"})
def raise_row(row: Array, base: Array, length: int, squarings: int, extra: int) -> None:
    """
    Square numbers some times, and then multiply them with others some times, in place.

    Shapes: row (n,), base (n,).
    """
    for _ in range(squarings // 2):
        for j in range(length):
            square = row[j] * row[j]
            row[j] = square * square
    if squarings % 2:
        for j in range(length):
            row[j] *= row[j]
    for _ in range(extra):
        for j in range(length):
            row[j] *= base[j]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def project_powers(
    owners: Array, squarings: Array, extras: Array, base: Array, coefficients: Array, out: Array
) -> None:
    """
    Multiply powers of a symmetric matrix with coefficients, as `bemkl.kernels.powers.Family.project` does.

    Half of the matrix is read once, a row at a time.

    Shapes: owners (n_members,), squarings (n_members,), extras (n_members,), base (n_samples, n_samples), coefficients
    (n_outputs, n_samples), out (n_outputs, n_kernels, n_samples).
    """
    row = np.empty(len(base))
    for owner in owners:
        out[:, owner] = 0.0
    for i in range(len(base)):
        row[: i + 1] = base[i, : i + 1]
        for member in range(len(owners)):
            raise_row(row, base[i], i + 1, squarings[member], extras[member])
            for output in range(len(coefficients)):
                source, target = coefficients[output], out[output, owners[member]]
                own, share = source[i], 0.0
                for j in range(i):
                    share += row[j] * source[j]
                    target[j] += row[j] * own
                target[i] += share + row[i] * own


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def backproject_powers(
    owners: Array, squarings: Array, extras: Array, base: Array, intermediate: Array, out: Array
) -> None:
    """
    Add powers of a symmetric matrix times intermediate outputs, as `bemkl.kernels.powers.Family.backproject` does.

    Shapes: owners (n_members,), squarings (n_members,), extras (n_members,), base (n_samples, n_samples), intermediate
    (n_outputs, n_kernels, n_samples), out (n_outputs, n_samples).
    """
    row = np.empty(len(base))
    for i in range(len(base)):
        row[: i + 1] = base[i, : i + 1]
        for member in range(len(owners)):
            raise_row(row, base[i], i + 1, squarings[member], extras[member])
            for output in range(len(intermediate)):
                source, target = intermediate[output, owners[member]], out[output]
                own, share = source[i], 0.0
                for j in range(i):
                    share += row[j] * source[j]
                    target[j] += row[j] * own
                target[i] += share + row[i] * own


@njit(cache=True, nogil=True, fastmath={"contract"})
def add_powers(squarings: Array, extras: Array, base: Array, weights: Array, total: Array) -> None:
    """
    Add powers of a matrix, times their weights, to a sum, as `bemkl.kernels.powers.Family.add_to` does.

    Shapes: squarings (n_members,), extras (n_members,), base (n_samples, n_samples), weights (n_members,), total
    (n_samples, n_samples).
    """
    row = np.empty(len(base))
    for i in range(len(base)):
        row[:] = base[i]
        for member in range(len(weights)):
            raise_row(row, base[i], len(row), squarings[member], extras[member])
            if weights[member] != 0.0:
                for j in range(len(row)):
                    total[i, j] += weights[member] * row[j]
