"""Compiled pivoted Cholesky and products. Needs Numba; `bemkl.kernels.cholesky` knows what to do without."""

from __future__ import annotations

from math import factorial

import numpy as np
from numba import literal_unroll, njit

from bemkl.arrays import Array

_LEAST = -708.0
_HALVINGS = 1.4426950408889634  # 1 / log 2
_LOG_TWO = 0.6931471803691238
_LOG_TWO_REST = 1.9082149292705877e-10
_WHOLE = 1.5 * 2.0**52
_TAYLOR = tuple(1.0 / factorial(power) for power in range(13, -1, -1))


@njit(cache=True, nogil=True, inline="always", fastmath={"contract"})
def exponential(x: float) -> float:
    """Compute exp(x) for x of at most 0 to the last digit, in operations that the compiler turns into vectors."""
    # exp(x) = 2^k exp(r) with |r| ≤ log(2) / 2. Added to _WHOLE, k is in the last bits of the sum.
    shifted = x * _HALVINGS + _WHOLE
    k = shifted - _WHOLE
    r = (x - k * _LOG_TWO) - k * _LOG_TWO_REST
    series = 0.0
    for coefficient in literal_unroll(_TAYLOR):
        series = series * r + coefficient
    power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return series * power if x >= _LEAST else 0.0


@njit(cache=True, nogil=True, fastmath={"contract"})
def write_column(out: Array, features: Array, point: int, kind: int, first: float, second: int) -> None:
    """Write the similarities of one point to all points. Shapes: out (n_points,), features (n_features, n_points)."""
    # One loop over all points for each feature: the compiler turns these into vector instructions.
    out[:] = first if kind == 2 else 0.0
    for feature in features:
        z = feature[point]
        for i in range(len(out)):
            if kind == 0:
                out[i] += (feature[i] - z) ** 2
            elif kind == 1:
                out[i] += abs(feature[i] - z)
            else:
                out[i] += feature[i] * z
    if kind < 2:
        for i in range(len(out)):
            out[i] = exponential(first * out[i])
    elif second > 1:
        for i in range(len(out)):
            power = out[i]
            for _ in range(second - 1):
                power *= out[i]
            out[i] = power


@njit(cache=True, nogil=True, fastmath={"contract"})
def extend(
    features: Array,
    kind: int,
    first: float,
    second: int,
    factor: Array,
    residual: Array,
    inverse: Array,
    rank: int,
    stop: int,
    tolerance: float,
) -> int:
    """
    Add rows to a factor, as `bemkl.kernels.cholesky.Extend` describes.

    Shapes: features (n_features, n_points), factor (n_rows, n_points), residual (n_points,), inverse (n_points,).
    """
    n_points = len(residual)
    while rank < stop:
        pivot = int(residual.argmax())
        largest = residual[pivot]
        if largest <= tolerance:
            break
        new = factor[rank]
        write_column(new, features, pivot, kind, first, second)
        for i in range(n_points):
            new[i] *= inverse[i] * inverse[pivot]
        for k in range(rank):
            share = factor[k, pivot]
            for i in range(n_points):
                new[i] -= share * factor[k, i]
        root = largest**-0.5
        for i in range(n_points):
            new[i] *= root
            residual[i] -= new[i] * new[i]
        residual[pivot] = 0.0
        rank += 1
    return rank


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def project(positions: Array, ends: Array, left: Array, right: Array, coefficients: Array, out: Array) -> None:
    """
    Multiply kernels with coefficients, as `bemkl.kernels.forms.LowRankFactors.project` does.

    Each row of the factors is read once; sums may be taken in any order, which lets the compiler use vectors.

    Shapes: positions (n_kernels,), ends (n_kernels,), left (n_rows, n_samples), right (n_rows, n_basis), coefficients
    (n_outputs, n_basis), out (n_outputs, n_all_kernels, n_samples).
    """
    first = 0
    for kernel in range(len(ends)):
        out[:, positions[kernel]] = 0.0
        for row in range(first, ends[kernel]):
            for output in range(len(coefficients)):
                target = out[output, positions[kernel]]
                share = 0.0
                for d in range(right.shape[1]):
                    share += right[row, d] * coefficients[output, d]
                for i in range(left.shape[1]):
                    target[i] += share * left[row, i]
        first = ends[kernel]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def backproject(positions: Array, ends: Array, left: Array, right: Array, intermediate: Array, out: Array) -> None:
    """
    Add kernels times intermediate outputs, as `bemkl.kernels.forms.LowRankFactors.backproject` does.

    Shapes: positions (n_kernels,), ends (n_kernels,), left (n_rows, n_samples), right (n_rows, n_basis), intermediate
    (n_outputs, n_all_kernels, n_samples), out (n_outputs, n_basis).
    """
    first = 0
    for kernel in range(len(ends)):
        for row in range(first, ends[kernel]):
            for output in range(len(intermediate)):
                source = intermediate[output, positions[kernel]]
                share = 0.0
                for i in range(left.shape[1]):
                    share += left[row, i] * source[i]
                for d in range(right.shape[1]):
                    out[output, d] += share * right[row, d]
        first = ends[kernel]
