"""A kernel held as its matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsymv

from bemkl.arrays import Array, refuse_out_of_range
from bemkl.kernels.forms.protocol import LARGE_KERNELS, Positions, asymmetry

_ROWS = 128
"""Rows that are added at a time, so that what is computed stays in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Full:
    """One kernel as its matrix."""

    matrix: npt.NDArray[Any]  # (n_samples, n_basis): the matrix; float32 is kept, and converted when it is used
    symmetric: bool = False  # whether it is known to be symmetric: then half of it is read, and nobody needs to look

    @classmethod
    def of(cls, matrix: npt.NDArray[Any], tolerance: float, *, symmetric: bool) -> Self:
        """Hold any matrix, as it is. Shapes: matrix (n_samples, n_basis)."""
        return cls(matrix, symmetric)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""
        n_samples, n_basis = self.matrix.shape
        return 1, n_samples, n_basis

    @property
    def n_values(self) -> int:
        """Number of values in memory."""
        return self.matrix.size

    def refuse_bad(self) -> None:
        """Raise if there are numbers that are not finite, or too large to be squared."""
        refuse_out_of_range("kernels", self.matrix, LARGE_KERNELS)

    def asymmetries(self) -> Array:
        """Return the largest relative difference between the kernel and its transpose. Shapes: returns (1,)."""
        return np.array([0.0 if self.symmetric else asymmetry(self.matrix)])

    def project(self, coefficients: Array, positions: Positions, out: Array) -> None:
        r"""
        Write the products with coefficients, :math:`\mathbf{K} \boldsymbol{a}`.

        Shapes: coefficients (n_outputs, n_basis), positions (1,), out (n_outputs, n_all_kernels, n_samples).
        """
        out[:, positions[0]] = self._times(coefficients) if self.symmetric else coefficients @ self._values.T

    def backproject(self, intermediate: Array, positions: Positions, out: Array) -> None:
        r"""
        Add the products with intermediate outputs, :math:`\mathbf{K}^\top \boldsymbol{g}`.

        Shapes: intermediate (n_outputs, n_all_kernels, n_samples), positions (1,), out (n_outputs, n_basis).
        """
        out += self._times(intermediate[:, positions[0]])

    def roots(self) -> Iterator[Array]:
        """Yield the matrix. Shapes: returns (n_samples, n_basis)."""
        yield self._values

    @property
    def sizes(self) -> Array:
        """Return the largest entry times the number of rows or columns. Shapes: returns (1,)."""
        return np.array([max(self.matrix.max(), -self.matrix.min()) * min(self.matrix.shape)], dtype=np.float64)

    def add_approximately(self, weights: Array, total: Array) -> None:
        """Add the matrix, times its weight. Shapes: weights (1,), total (n_samples, n_basis)."""
        for first in range(0, len(total) if weights[0] != 0.0 else 0, _ROWS):
            total[first : first + _ROWS] += weights[0] * self.matrix[first : first + _ROWS]

    def rows(self, chosen: slice) -> Array:
        """Return some rows of the matrix. Shapes: returns (1, n_chosen, n_basis)."""
        return self.matrix[None, chosen].astype(np.float64, copy=False)

    def each(self) -> Iterator[tuple[Array | None, npt.NDArray[Any] | None]]:
        """Yield the matrix."""
        yield None, self.matrix

    def _times(self, vectors: Array) -> Array:
        """Multiply rows with the matrix. Shapes: vectors (n_outputs, n_samples); returns (n_outputs, n_basis)."""
        if self.symmetric and len(vectors) == 1:
            # Half of the matrix is read.
            half: Array = dsymv(1.0, self._values.T, vectors[0], lower=1)[None]
            return half
        return vectors @ self._values

    @property
    def _values(self) -> Array:
        return self.matrix.astype(np.float64, copy=False)
