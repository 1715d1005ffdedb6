"""What a stack asks of a form of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array

Positions = npt.NDArray[np.intp]


LARGE_KERNELS = "Divide such a kernel by its largest entry, or standardise the columns that it is made of."
"""What to do about kernels whose squares may not be numbers."""


class Form(Protocol):
    """Some kernels of a stack, held in one way."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""

    @property
    def n_values(self) -> int:
        """Number of values in memory."""

    def refuse_bad(self) -> None:
        """Raise if there are numbers that are not finite, or too large to be squared."""

    def asymmetries(self) -> Array:
        """Largest relative difference between each kernel and its transpose, shape (n_kernels,)."""

    def project(self, coefficients: Array, positions: Positions, out: Array) -> None:
        """Write products with (n_outputs, n_basis) coefficients to the positions of (n_outputs, ..., n_samples)."""

    def backproject(self, intermediate: Array, positions: Positions, out: Array) -> None:
        """Add the adjoint, of the positions of (n_outputs, ..., n_samples), to an array (n_outputs, n_basis)."""

    def roots(self) -> Iterator[Array]:
        """Yield matrices of n_basis columns, the sum of whose squares is that of the kernels."""

    @property
    def sizes(self) -> Array:
        """How large each kernel is, no less than its trace, shape (n_kernels,): what can be left out of a sum."""

    def add_approximately(self, weights: Array, total: Array) -> None:
        """Add (n_kernels,) weights times the kernels to an (n_samples, n_basis) sum; a few percent off will do."""

    def rows(self, chosen: slice) -> Array:
        """Return some rows of every kernel, shape (n_kernels, n_chosen, n_basis)."""

    def each(self) -> Iterator[tuple[Array | None, npt.NDArray[Any] | None]]:
        """Yield each kernel as an (n_rows, n_samples) factor Z of ZᵀZ or, where there is none, as a matrix."""


class MatrixForm(Form, Protocol):
    """A form that a matrix may be held in, wherever it comes from."""

    @classmethod
    def of(cls, matrix: npt.NDArray[Any], tolerance: float, *, symmetric: bool) -> Self | None:
        """Hold an (n_samples, n_basis) matrix up to an error relative to its diagonal; None if this form cannot."""


def asymmetry(kernel: npt.NDArray[Any]) -> float:
    """
    Largest difference between a kernel and its transpose, relative to its largest entry.

    Shapes: kernel (n_samples, n_basis).
    """
    if kernel.shape[0] != kernel.shape[1]:
        return np.inf
    if np.array_equal(kernel, kernel.T):
        return 0.0
    return float(np.abs(kernel - kernel.T).max()) / float(np.abs(kernel).max())
