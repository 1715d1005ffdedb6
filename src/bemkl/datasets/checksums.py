"""Digests of values that agree for the same data in another order of rows, or from another source."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array

# Read from decimals and not computed, so that every machine multiplies by the same numbers.
_POWERS = np.array([float(f"1e{power}") for power in range(309)])
_MISSING = np.iinfo(np.int64).min


def value_checksum(X: Array | dict[str, Array], y: npt.NDArray[Any]) -> str:
    """
    Digest of the rows of samples and responses: six significant digits, whatever the order of the rows.

    Shapes: X (n_samples, n_features), y (n_samples,) or (n_samples, n_outputs).
    """
    responses = np.unique(y, return_inverse=True)[1] if y.dtype.kind in "OU" else y
    views = list(X.values()) if isinstance(X, dict) else [X]
    codes = np.column_stack([_six_digits(values) for values in (*views, responses.astype(np.float64))])
    # Rows are compared as strings of bytes, in which any fixed order will do.
    rows = np.ascontiguousarray(codes.astype("<i8")).view(f"V{8 * codes.shape[1]}")
    digest = hashlib.sha256(repr(codes.shape).encode())
    digest.update(b"".join(sorted(rows.ravel().tolist())))
    return digest.hexdigest()


def _six_digits(values: Array) -> npt.NDArray[np.int64]:
    """Code numbers by six digits and an exponent, in whole numbers, which have no rounding of their own."""
    present = np.isfinite(values)
    magnitudes = np.where(present, np.abs(values), 0.0)
    nonzero = magnitudes > 0.0
    exponents = np.floor(np.log10(np.where(nonzero, magnitudes, 1.0))).astype(np.int64) - 5
    scaled = np.where(
        exponents < 0,
        magnitudes * _POWERS[np.clip(-exponents, 0, 308)],
        magnitudes / _POWERS[np.clip(exponents, 0, 308)],
    )
    digits = np.rint(scaled).astype(np.int64)
    # 999999.7 has become seven digits.
    carried = digits >= 10**6
    digits, exponents = np.where(carried, digits // 10, digits), np.where(carried, exponents + 1, exponents)
    codes = np.where(values < 0.0, -1, 1) * np.where(nonzero, digits * 1000 + exponents + 400, 0)
    return np.where(present, codes, _MISSING)
