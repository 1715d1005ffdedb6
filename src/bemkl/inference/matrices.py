"""Symmetric matrices between the kernels, in the form that pays: all numbers, or a diagonal plus thin factors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from bemkl._numerics.linalg import WAY_OUT, Cholesky, add_products, inverse_and_logdet
from bemkl.arrays import Array

Squares = Callable[[Array], tuple[Array, Array]]
"""
Maps (size, n_columns) vectors to (n_parts, n_columns) numbers and (n_parts,) weights: the quadratic form of each vector
is the weighted sum of the squares of its numbers.
"""


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
    """Solver of systems with a matrix whose inverse is known."""

    inverse: Symmetric  # the inverse

    def solve(self, right: Array) -> Array:
        """Solve a system with the matrix. Shapes: right (size,); returns (size,)."""
        return self.inverse @ right

    def inverse_diagonal(self, *, overwrite: bool = False) -> Array:
        """Return the diagonal of the inverse. Shapes: returns (size,)."""
        return self.inverse.diagonal()


class DenseCoordinates:
    """
    The product of a dense matrix with a vector that changes one entry at a time: an operation a row for each change.

    Shapes: vector (size,).
    """

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


_FEW = 3
"""A factor pays while it has fewer columns than this part of its rows (derivation, section 6)."""

_NEGLIGIBLE = 1e-13
"""Eigenvalues below this share of a unit diagonal are dropped: a thousandth of what paths may differ by."""


@dataclass(frozen=True, slots=True, eq=False)
class LowRank:
    r"""A diagonal plus a matrix of low rank, :math:`\operatorname{diag}(d) + F \operatorname{diag}(s) F^\top`."""

    main: Array  # (size,): the diagonal d
    factor: Array  # (size, rank): the factor F
    core: Array  # (rank,): the numbers s

    @classmethod
    def of_diagonal(cls, values: Array) -> LowRank:
        """Return a diagonal matrix. Shapes: values (size,)."""
        return cls(values, np.empty((len(values), 0)), np.empty(0))

    @classmethod
    def product(cls, factor: Array) -> LowRank:
        """Return the product of a factor with its transpose. Shapes: factor (size, rank)."""
        return cls(np.zeros(len(factor)), factor, np.ones(factor.shape[1]))

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.main)

    def diagonal(self) -> Array:
        """Return the diagonal. Shapes: returns (size,)."""
        diagonal: Array = self.main + np.square(self.factor) @ self.core
        return diagonal

    def trace(self) -> float:
        """Return the sum of the diagonal."""
        return float(self.diagonal().sum())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all numbers."""
        values = np.zeros((self.size, self.size))
        self.add_to(values)
        return values if dtype is None else values.astype(dtype)

    def __matmul__(self, right: Array) -> Array:
        """Multiply with vectors."""
        vector = right.ndim == 1
        columns = right[:, None] if vector else right
        product: Array = self.main[:, None] * columns
        if len(self.core):
            product += self.factor @ (self.core[:, None] * (self.factor.T @ columns))
        return product[:, 0] if vector else product

    def __add__(self, other: Symmetric) -> Symmetric:
        """Add a matrix of any form."""
        if not isinstance(other, LowRank):
            return other + self
        factor, core = np.hstack([self.factor, other.factor]), np.concatenate([self.core, other.core])
        total = LowRank(self.main + other.main, factor, core)
        # Sums of many would hold one column a sample in the end.
        return total if pays(factor.shape) else Dense(np.asarray(total))

    def add_to(self, values: Array) -> None:
        """Add all numbers to an array, in place. Shapes: values (size, size)."""
        left = self.factor * self.core
        if left.shape[1] == 1:  # several times faster than a matrix product of one column
            add_products(values[None], left.T, self.factor.T)
        else:
            values += left @ self.factor.T
        values.flat[:: len(values) + 1] += self.main

    def times(self, factor: float) -> LowRank:
        """Multiply by a number."""
        return LowRank(factor * self.main, self.factor, factor * self.core)

    def plus_diagonal(self, values: Array | float, *, overwrite: bool = False) -> LowRank:
        """Add numbers to the diagonal. Shapes: values (size,)."""
        return LowRank(self.main + values, self.factor, self.core)

    def inner(self, other: Symmetric) -> float:
        """Sum the products of all entries with those of another matrix."""
        along = np.einsum("mr,mr->r", self.factor, other @ self.factor)
        return float(self.main @ other.diagonal() + self.core @ along)

    def inverse_and_logdet(self, name: str, *, overwrite: bool = False) -> tuple[Symmetric, float]:
        r"""
        Invert a positive definite matrix; the inverse is thin again, unless the factor has too many columns.

        With the diagonal scaled to one, the low-rank part has the eigenvectors V and the eigenvalues :math:`\theta`,
        and the inverse is :math:`I - V \operatorname{diag}(\theta / (1 + \theta)) V^\top`.
        """
        if not pays(self.factor.shape):
            return Dense(np.asarray(self)).inverse_and_logdet(name, overwrite=True)
        if not (np.isfinite(self.main).all() and np.isfinite(self.factor).all() and (self.main > 0.0).all()):
            raise np.linalg.LinAlgError(
                f"the precision of the {name} is not finite or has no positive diagonal. {WAY_OUT}"
            )
        root = 1.0 / np.sqrt(self.main)
        Q, R = np.linalg.qr(self.factor * root[:, None])
        theta, V = np.linalg.eigh((R * self.core) @ R.T)
        if len(theta) and theta[0] <= -1.0:
            raise np.linalg.LinAlgError(
                f"the precision of the {name} is not positive definite: scaled to unit diagonal, its smallest "
                f"eigenvalue is {1.0 + theta[0]:.3g}. {WAY_OUT}"
            )
        kept = np.abs(theta) > _NEGLIGIBLE
        factor = (Q @ V[:, kept]) * root[:, None]
        inverse = LowRank(1.0 / self.main, factor, -theta[kept] / (1.0 + theta[kept]))
        return inverse, 2.0 * float(np.log(root).sum()) - float(np.log1p(theta).sum())

    def solver(self, name: str, *, overwrite: bool = False) -> Solver:
        """Return what solves systems with a positive definite matrix."""
        if not pays(self.factor.shape):
            return Cholesky.of(np.asarray(self), name, overwrite=True)
        return InverseSolver(self.inverse_and_logdet(name)[0])

    def squares(self, name: str) -> Squares:
        """Return what splits quadratic forms into squares."""
        weights = np.concatenate([self.main, self.core])
        return lambda columns: (np.concatenate([columns, self.factor.T @ columns]), weights)

    def coordinates(self, vector: Array) -> LowRankCoordinates:
        """Return the product with a vector that changes one entry at a time. Shapes: vector (size,)."""
        return LowRankCoordinates(self, vector)


class LowRankCoordinates:
    """
    The product of a thin matrix with a vector that changes one entry at a time: an operation a column of its factor.

    Shapes: vector (size,).
    """

    def __init__(self, matrix: LowRank, vector: Array) -> None:
        self._factor, self._weighted, self._vector = matrix.factor, matrix.factor * matrix.core, vector.copy()
        self._inner = matrix.factor.T @ vector
        self._own = np.einsum("mr,mr->m", self._weighted, self._factor)

    def off_diagonal(self, entry: int) -> float:
        """Sum one row times the vector, without the entry on the diagonal."""
        return float(self._weighted[entry] @ self._inner - self._own[entry] * self._vector[entry])

    def move(self, entry: int, change: float) -> None:
        """Change one entry of the vector."""
        self._inner += change * self._factor[entry]
        self._vector[entry] += change


Symmetric = Dense | LowRank
"""A symmetric matrix between the kernels."""

Solver = Cholesky | InverseSolver
"""What can be had of the inverse of a symmetric matrix for less than the inverse itself."""


def pays(shape: tuple[int, ...]) -> bool:
    """Say whether a matrix is better kept by a factor."""
    return _FEW * shape[1] < shape[0]


def total(matrices: Sequence[Symmetric]) -> Symmetric:
    """Sum matrices of any form."""
    return reduce(operator.add, matrices)


def gram(factors: Sequence[Array], *, dense: bool = False) -> Symmetric:
    """
    Sum the products of factors with their transposes; with all numbers where that pays, or what is beside it has them.

    Shapes: factors (size, n_columns).
    """
    size = len(factors[0])
    if pays((size, sum(factor.shape[1] for factor in factors))) and not dense:
        return LowRank.product(np.hstack(factors) if len(factors) > 1 else factors[0])
    total = factors[0] @ factors[0].T
    for factor in factors[1:]:
        total += factor @ factor.T
    return Dense(total)


def is_dense(matrix: Symmetric) -> bool:
    """Say whether a matrix has all numbers, so that a factor beside it saves nothing."""
    return isinstance(matrix, Dense)
