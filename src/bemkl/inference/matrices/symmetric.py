"""Symmetric matrices between the kernels: what the inference asks of them, and the form that keeps all numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np

from bemkl._numerics.linalg import Cholesky, inverse_and_logdet
from bemkl.arrays import Array


class Symmetric(Protocol):
    """A symmetric matrix of some form."""

    @property
    def size(self) -> int:
        """Number of rows."""

    def diagonal(self) -> Array:
        """Return the diagonal, shape (size,)."""

    def trace(self) -> float:
        """Return the sum of the diagonal."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all numbers, shape (size, size)."""

    def __matmul__(self, right: Array) -> Array:
        """Multiply with vectors, shape (size,) or (..., size, n_vectors)."""

    def __add__(self, other: Symmetric) -> Symmetric:
        """Add a matrix of any form."""

    def add_to(self, values: Array) -> None:
        """Add all numbers to an array of shape (size, size), in place."""

    def times(self, factor: float) -> Symmetric:
        """Multiply by a number."""

    def plus_diagonal(self, values: Array | float, *, overwrite: bool = False) -> Symmetric:
        """Add numbers, shape (size,) or one for all, to the diagonal; the matrix may be lost."""

    def inner(self, other: Symmetric) -> float:
        """Sum the products of all entries with those of another matrix."""

    def inverse_and_logdet(self, name: str, *, overwrite: bool = False) -> tuple[Symmetric, float]:
        """Return the inverse of a positive definite matrix, and its log-determinant; the matrix may be lost."""

    def solver(self, name: str, *, overwrite: bool = False) -> Solver:
        """Return what solves systems with a positive definite matrix; the matrix may be lost."""

    def squares(self, name: str) -> Squares:
        """Return what splits the quadratic forms of a positive definite matrix into squares."""

    def coordinates(self, vector: Array) -> Coordinates:
        """Return the product with a (size,) vector that changes one entry at a time."""


class Solver(Protocol):
    """What can be had of the inverse of a symmetric matrix for less than the inverse itself."""

    def solve(self, right: Array) -> Array:
        """Solve a system, shape (size,)."""

    def inverse_diagonal(self, *, overwrite: bool = False) -> Array:
        """Return the diagonal of the inverse, shape (size,); the solver may be lost if it may be overwritten."""


Squares = Callable[[Array], tuple[Array, Array]]
"""
Maps (size, n_columns) vectors to (n_parts, n_columns) numbers and (n_parts,) weights: the quadratic form of each vector
is the weighted sum of the squares of its numbers.
"""


class Coordinates(Protocol):
    """The product of a symmetric matrix with a vector that changes one entry at a time."""

    def off_diagonal(self, entry: int) -> float:
        """Sum one row times the vector, without the entry on the diagonal."""

    def move(self, entry: int, change: float) -> None:
        """Change one entry of the vector."""


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """All numbers."""

    values: Array  # (size, size): the matrix

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.values)

    def diagonal(self) -> Array:
        """Return the diagonal. Shapes: returns (size,)."""
        return self.values.diagonal()

    def trace(self) -> float:
        """Return the sum of the diagonal."""
        return float(self.values.trace())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all numbers."""
        return np.array(self.values, dtype=dtype, copy=copy)

    def __matmul__(self, right: Array) -> Array:
        """Multiply with vectors."""
        product: Array = self.values @ right
        return product

    def __add__(self, other: Symmetric) -> Dense:
        """Add a matrix of any form."""
        if isinstance(other, Dense):
            return Dense(self.values + other.values)
        total = self.values.copy()
        other.add_to(total)
        return Dense(total)

    def add_to(self, values: Array) -> None:
        """Add all numbers to an array, in place. Shapes: values (size, size)."""
        values += self.values

    def times(self, factor: float) -> Dense:
        """Multiply by a number."""
        return self if factor == 1.0 else Dense(factor * self.values)

    def plus_diagonal(self, values: Array | float, *, overwrite: bool = False) -> Dense:
        """Add numbers to the diagonal. Shapes: values (size,)."""
        result = self.values if overwrite else self.values.copy()
        result.flat[:: len(result) + 1] += values
        return Dense(result)

    def inner(self, other: Symmetric) -> float:
        """Sum the products of all entries with those of another matrix."""
        return float(np.vdot(self.values, other.values)) if isinstance(other, Dense) else other.inner(self)

    def inverse_and_logdet(self, name: str, *, overwrite: bool = False) -> tuple[Dense, float]:
        """Invert a positive definite matrix, as `bemkl._numerics.linalg.inverse_and_logdet` does."""
        inverse, logdet = inverse_and_logdet(self.values, name, overwrite=overwrite)
        return Dense(inverse), logdet

    def solver(self, name: str, *, overwrite: bool = False) -> Cholesky:
        """Return what solves systems with a positive definite matrix."""
        return Cholesky.of(self.values, name, overwrite=overwrite)

    def squares(self, name: str) -> Squares:
        """Return what splits quadratic forms of a positive definite matrix into squares: half the work of a product."""
        root, ones = Cholesky.of(self.values, name), np.ones(len(self.values))
        return lambda columns: (root.root_times(columns), ones)

    def coordinates(self, vector: Array) -> DenseCoordinates:
        """Return the product with a vector that changes one entry at a time. Shapes: vector (size,)."""
        return DenseCoordinates(self, vector)


@dataclass(frozen=True, slots=True, eq=False)
class InverseSolver:
    """`Solver` of a matrix whose inverse is known."""

    inverse: Symmetric  # the inverse

    def solve(self, right: Array) -> Array:
        """Solve a system with the matrix. Shapes: right (size,); returns (size,)."""
        return self.inverse @ right

    def inverse_diagonal(self, *, overwrite: bool = False) -> Array:
        """Return the diagonal of the inverse. Shapes: returns (size,)."""
        return self.inverse.diagonal()


class DenseCoordinates:
    """`Coordinates` of a dense matrix, in as many operations a change as it has rows. Shapes: vector (size,)."""

    def __init__(self, matrix: Dense, vector: Array) -> None:
        self._values, self._vector = matrix.values, vector.copy()
        self._product = matrix @ vector

    def off_diagonal(self, entry: int) -> float:
        """Sum one row times the vector, without the entry on the diagonal."""
        return float(self._product[entry] - self._values[entry, entry] * self._vector[entry])

    def move(self, entry: int, change: float) -> None:
        """Change one entry of the vector."""
        self._product += change * self._values[entry]
        self._vector[entry] += change


def total(matrices: Sequence[Symmetric]) -> Symmetric:
    """Sum matrices of any form."""
    return reduce(operator.add, matrices)
