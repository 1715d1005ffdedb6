"""Kernels as the marginal posterior uses them: sums with weights, and inner products with a matrix."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.kernels.cholesky import compressed

Positions = npt.NDArray[np.intp]

_TOLERANCE = 1e-12
"""Error of the space that kernels on the same columns share, relative to the diagonal of their sum."""


class KernelsOneByOne(Protocol):
    """A stack that shows its kernels one after the other."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""

    def each(self) -> Iterator[tuple[int, Array | None, npt.NDArray[Any] | None]]:
        """Yield the place of each kernel, with its (n_rows, n_samples) factor Z of ZᵀZ or, without one, its matrix."""


class Kernels(Protocol):
    """Some kernels between samples and basis points, held in one way."""

    def add_to(self, total: Array, weights: Array) -> None:
        """Add the kernels times (n_kernels,) weights to an (n_samples, n_basis) matrix."""

    def inner(self, matrix: Array, out: Array) -> None:
        """Write the inner products with an (n_samples, n_basis) matrix to the kernels' places of (n_kernels,)."""

    def add_products(self, totals: Array, weights: Array, vectors: Array, *, transposed: bool = False) -> None:
        """Add products of (n_sums, n_kernels) weighted sums, or transposes, with (n_basis, n) vectors."""

    def rows(self, chosen: Positions) -> Iterator[tuple[int, Array]]:
        """Yield the place of each kernel, with some of its rows, shape (n_chosen, n_basis)."""

    def deviations(self, dual: Array, out: Array) -> None:
        """Write how much products with (n_outputs, n_basis) coefficients vary to (n_outputs, n_kernels) numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """One kernel as its matrix."""

    position: int  # its place among all kernels
    values: npt.NDArray[Any]  # (n_samples, n_basis): the matrix

    def add_to(self, total: Array, weights: Array) -> None:
        """Add the kernel. Shapes: total (n_samples, n_basis), weights (n_kernels,)."""
        if weights[self.position] != 0.0:
            total += weights[self.position] * self.values

    def inner(self, matrix: Array, out: Array) -> None:
        """Write the inner product. Shapes: matrix (n_samples, n_basis), out (n_kernels,)."""
        out[self.position] = np.vdot(self.values, matrix)

    def add_products(self, totals: Array, weights: Array, vectors: Array, *, transposed: bool = False) -> None:
        """Add products. Shapes: totals (n_sums, n_samples, n), weights (n_sums, n_kernels), vectors (n_basis, n)."""
        if not weights[:, self.position].any():
            return
        product = (self.values.T if transposed else self.values) @ vectors
        for total, weight in zip(totals, weights[:, self.position], strict=True):
            if weight != 0.0:
                total += weight * product

    def rows(self, chosen: Positions) -> Iterator[tuple[int, Array]]:
        """Yield the place of the kernel with some of its rows. Shapes: returns (n_chosen, n_basis)."""
        yield self.position, self.values[chosen].astype(np.float64, copy=False)

    def deviations(self, dual: Array, out: Array) -> None:
        """Write how much products vary. Shapes: dual (n_outputs, n_basis), out (n_outputs, n_kernels)."""
        out[:, self.position] = (dual @ self.values.T).std(axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class SharedSpace:
    r"""
    Square kernels of low rank on the same columns, :math:`\mathbf{K}_m = \mathbf{Q}^\top \mathbf{S}_m \mathbf{Q}`.

    Widths of a kernel see the same columns, so that the space of their sum, a few dozen directions, holds all of them.
    """

    positions: Positions  # (n_here,): places of the kernels
    basis: Array  # (rank, n_samples): orthonormal rows Q
    cores: Array  # (n_here, rank, rank): the matrices S_m

    @classmethod
    def of(cls, positions: Sequence[int], factors: Sequence[Array]) -> SharedSpace | None:
        """Find the space of kernels that have thin factors; None if it is too large. Shapes: factors (rank, n)."""
        unit = [factor / np.sqrt(max(np.square(factor).sum(), np.finfo(float).tiny)) for factor in factors]
        together = np.concatenate(unit)
        half = factors[0] if len(factors) == 1 else compressed(together.T @ together, _TOLERANCE)
        if half is None:
            return None
        basis = np.linalg.qr(half.T)[0].T
        inside = [factor @ basis.T for factor in factors]
        return cls(np.array(positions), np.ascontiguousarray(basis), np.stack([z.T @ z for z in inside]))

    def _core(self, weights: Array) -> Array | None:
        """Return the weighted sum of the matrices S_m, None for a sum of nothing. Shapes: weights (n_kernels,)."""
        here = weights[self.positions]
        if not here.any():
            return None
        core: Array = (here @ self.cores.reshape(len(here), -1)).reshape(self.cores.shape[1:])
        return core

    def add_to(self, total: Array, weights: Array) -> None:
        """Add the kernels. Shapes: total (n_samples, n_samples), weights (n_kernels,)."""
        core = self._core(weights)
        if core is not None:
            total += self.basis.T @ (core @ self.basis)

    def inner(self, matrix: Array, out: Array) -> None:
        """Write the inner products. Shapes: matrix (n_samples, n_samples), out (n_kernels,)."""
        inside = self.basis @ matrix @ self.basis.T
        out[self.positions] = self.cores.reshape(len(self.cores), -1) @ inside.ravel()

    def add_products(self, totals: Array, weights: Array, vectors: Array, *, transposed: bool = False) -> None:
        """Add products. Shapes: totals (n_sums, n_samples, n), weights (n_sums, n_kernels), vectors (n_samples, n)."""
        here = weights[:, self.positions]
        some = np.flatnonzero(here.any(axis=1))
        if not len(some):
            return
        rank, inside = len(self.basis), self.basis @ vectors
        cores = (here[some] @ self.cores.reshape(len(self.cores), -1)).reshape(-1, rank)
        moved = (cores @ inside).reshape(len(some), rank, -1)
        for position, each in zip(some, moved, strict=True):
            totals[position] += self.basis.T @ each

    def rows(self, chosen: Positions) -> Iterator[tuple[int, Array]]:
        """Yield the place of each kernel with some of its rows. Shapes: returns (n_chosen, n_samples)."""
        for position, core in zip(self.positions, self.cores, strict=True):
            yield int(position), self.basis[:, chosen].T @ core @ self.basis

    def deviations(self, dual: Array, out: Array) -> None:
        """Write how much products vary. Shapes: dual (n_outputs, n_samples), out (n_outputs, n_kernels)."""
        centred = self.basis - self.basis.mean(axis=1, keepdims=True)
        gram, inside = centred @ centred.T / self.basis.shape[1], dual @ self.basis.T
        for position, core in zip(self.positions, self.cores, strict=True):
            moved = inside @ core
            out[:, position] = np.sqrt(np.maximum(np.einsum("lr,rs,ls->l", moved, gram, moved), 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class SumOfKernels:
    """All kernels of a block of samples, for weighted sums and what their gradients need."""

    parts: tuple[Kernels, ...]
    shape: tuple[int, int, int]  # numbers of kernels, samples and basis points
    diagonals: Array  # (n_kernels, n_samples): the kernels' diagonals; of no use with landmarks

    @classmethod
    def of(cls, stack: KernelsOneByOne, columns: Sequence[Hashable]) -> SumOfKernels:
        """
        Hold the kernels of a stack; those on the same columns are held together where they are thin.

        Shapes: columns (n_kernels,), what each kernel is on.
        """
        parts: list[Kernels] = []
        thin: dict[Hashable, list[tuple[int, Array]]] = {}
        n_kernels, n_samples, n_basis = stack.shape
        diagonals = np.zeros((n_kernels, n_samples))
        for position, factor, matrix in stack.each():
            if factor is not None and len(factor) == 0:
                continue  # a kernel by which nothing is similar adds nothing
            if factor is not None:
                thin.setdefault(columns[position], []).append((position, factor))
                diagonals[position] = np.square(factor).sum(axis=0)
            elif matrix is not None:
                parts.append(Matrix(position, matrix))
                if n_samples == n_basis:
                    diagonals[position] = matrix.diagonal()
        for members in thin.values():
            parts.extend(_shared(members))
        return cls(tuple(parts), stack.shape, diagonals)

    def among(self, rows: Positions) -> SumOfKernels:
        """Return the kernels among the basis points, which are these samples."""
        parts: list[Kernels] = []
        diagonals = np.zeros((self.shape[0], len(rows)))
        for part in self.parts:
            for position, matrix in part.rows(rows):
                parts.append(Matrix(position, matrix))
                diagonals[position] = matrix.diagonal()
        return SumOfKernels(tuple(parts), (self.shape[0], len(rows), len(rows)), diagonals)

    def own_by(self, rows: Positions) -> Array:
        """
        Return values k(x, x) as far as basis points explain them, where nobody knows them.

        Shapes: rows (n_basis,); returns (n_kernels, n_samples).
        """
        own = np.zeros(self.shape[:2])
        for part in self.parts:
            for position, matrix in part.rows(np.arange(self.shape[1])):
                diagonal = matrix[rows].diagonal()
                inverse = np.linalg.pinv(matrix[rows], hermitian=True)
                same = np.ptp(diagonal) <= 1e-6 * diagonal.max()
                own[position] = diagonal[0] if same else np.einsum("id,id->i", matrix @ inverse, matrix)
        return own

    def deviations(self, weights: Array, dual: Array) -> Array:
        """
        Return how much weighted products with coefficients vary between the samples.

        Shapes: weights (n_kernels,), dual (n_outputs, n_basis); returns (n_outputs, n_kernels).
        """
        found = np.zeros((len(dual), self.shape[0]))
        for part in self.parts:
            part.deviations(dual, found)
        return found * np.abs(weights)

    def combine(self, weights: Array) -> Array:
        """Sum the kernels with weights. Shapes: weights (n_kernels,); returns (n_samples, n_basis)."""
        total = np.zeros(self.shape[1:])
        for part in self.parts:
            part.add_to(total, weights)
        return total

    def inner(self, matrix: Array) -> Array:
        """Return inner products with a matrix. Shapes: matrix (n_samples, n_basis); returns (n_kernels,)."""
        found = np.zeros(self.shape[0])
        for part in self.parts:
            part.inner(matrix, found)
        return found

    def products(self, weights: Array, vectors: Array, *, transposed: bool = False) -> Array:
        """
        Multiply weighted sums of the kernels, or their transposes, with vectors, without forming them.

        Shapes: weights (n_sums, n_kernels), vectors (n_basis, n); returns (n_sums, n_samples, n).
        """
        totals = np.zeros((len(weights), self.shape[2] if transposed else self.shape[1], vectors.shape[1]))
        for part in self.parts:
            part.add_products(totals, weights, vectors, transposed=transposed)
        return totals


def _shared(members: list[tuple[int, Array]]) -> list[Kernels]:
    """Hold thin kernels on the same columns in one space, or each in its own where that is too large."""
    together = SharedSpace.of([position for position, _ in members], [factor for _, factor in members])
    if together is not None:
        return [together]
    alone = [SharedSpace.of([position], [factor]) for position, factor in members]
    return [space for space in alone if space is not None]
