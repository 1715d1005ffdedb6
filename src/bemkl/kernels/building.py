"""Training kernels of groups of columns: written as matrices, or found as thin factors without the matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from bemkl.arrays import Array
from bemkl.kernels.cholesky import Column, Growth, by_columns, compiled_growth, compressed, has_loop, pivoted_cholesky
from bemkl.kernels.forms import Form, ThinFactors, hold
from bemkl.kernels.forms.protocol import asymmetry
from bemkl.kernels.groups import Distances, FittedGroup, refuse_overflow
from bemkl.kernels.scaling import SCALINGS, Present, Scaling, Summary
from bemkl.kernels.specs import Member
from bemkl.kernels.stack import FactoredStack

_MATRIX_NUMBERS = 2**21
"""Numbers in an array of matrices: enough for large pages of memory, which cost less, and few next to a whole stack."""

_FACTOR_NUMBERS = 2**20
"""Numbers in an array of factors: enough for few calls, and for large pages of memory, which cost less."""


def build_matrices(
    group: FittedGroup,
    samples: FittedGroup,
    scaling: str | None,
    out: npt.NDArray[Any],
    distances: tuple[Distances, Distances] | None = None,
) -> FittedGroup:
    """Write the training kernels of a group, and fit their scalings. Shapes: out (n_members, n_samples, n_basis)."""
    of_samples, of_basis = distances or ({}, {})
    values = out if out.dtype == np.float64 else np.empty(out.shape)
    group.fill(values, samples.points, samples.present, of_samples)
    if scaling is not None:
        if group is samples:
            square, diagonals = values, [kernel.diagonal().copy() for kernel in values]
        else:
            n_basis = out.shape[2]
            square, diagonals = np.empty((len(out), n_basis, n_basis)), group.diagonals(samples.points, samples.present)
            group.fill(square, group.points, group.present, of_basis)
        group = group.with_scalings(scaling, square)
        group.scale(values, diagonals, samples.present)
    group.store(values, out)
    return group


class Builder:
    """The training kernels of a bank, group by group: thin factors where these are smaller, else matrices."""

    def __init__(self, n_samples: int, basis: Any, scaling: str | None, tolerance: float, dtype: Any) -> None:
        self._basis, self._scaling, self._tolerance, self._dtype = basis, scaling, tolerance, dtype
        n_basis = len(np.arange(n_samples)[basis])
        # A factor with more rows has more numbers than the matrix.
        self._factor = np.empty((n_samples * n_basis // (n_samples + n_basis), n_samples))
        self._kernels = Gathering(basis, tolerance)
        self._n_kernels = 0

    def stack(self) -> FactoredStack:
        """Return the kernels of all groups, in their order."""
        return self._kernels.stack()

    def add(self, group: FittedGroup, samples: FittedGroup) -> FittedGroup:
        """Build the kernels between samples and the basis points of a group, and fit their scalings."""
        scalings = self._add_factors(group, samples)
        scalings |= self._add_matrices(group, samples, [m for m in range(len(group.members)) if m not in scalings])
        self._n_kernels += len(group.members)
        in_order = [scalings[m] for m in range(len(group.members))]
        return replace(group, scalings=[scaling for scaling in in_order if scaling is not None] or None)

    def _add_factors(self, group: FittedGroup, samples: FittedGroup) -> dict[int, Scaling | None]:
        """Factor kernels from a few of their columns; return the scalings of those that are thin, by their numbers."""
        scalings: dict[int, Scaling | None] = {}
        tried = [m for m, member in enumerate(group.members) if _by_column(member, group)]
        if not tried:
            return scalings
        members = [group.members[m] for m in tried]
        complete, there = bool(samples.present.all()), group.present > 0.0
        # Kernels that leave the range of floating point have no factor, and are refused as matrices.
        with np.errstate(all="ignore"):
            diagonals = samples.present * [m.function.diagonal_of(samples.points, **m.parameters) for m in members]
            factors = pivoted_cholesky(_growths(members, samples), diagonals, self._tolerance, self._factor)
            for m, member, factor, diagonal in zip(tried, members, factors, diagonals, strict=True):
                if factor is None:
                    continue
                scalings[m] = self._scale(factor, diagonal, there)
                if not complete:
                    factor *= samples.present
                if self._dtype != np.float64:
                    refuse_overflow(member.name_on(group.label), np.square(factor).sum(axis=0), self._dtype)
                self._kernels.add_factor(self._n_kernels + m, factor)
        return scalings

    def _scale(self, factor: Array, diagonal: Array, there: Present) -> Scaling | None:
        """Fit the scaling of a kernel, if there is one, and scale its factor in place."""
        if self._scaling is None:
            return None
        basis = factor[:, self._basis]
        fitted = SCALINGS[self._scaling](Summary.of_factor(basis, diagonal[self._basis], there))
        scaled = fitted.apply_to_factor(factor, diagonal, basis)
        if scaled is not factor:
            factor[:] = scaled
        return fitted

    def _add_matrices(self, group: FittedGroup, samples: FittedGroup, numbers: list[int]) -> dict[int, Scaling | None]:
        """Compute the matrices of kernels, a few together; return the scalings, by their numbers."""
        scalings: dict[int, Scaling | None] = {}
        shape, square = (len(samples.present), len(group.present)), group is samples
        tried = [m for m in numbers if _by_column(group.members[m], group)]
        step = max(1, _MATRIX_NUMBERS // (shape[0] * shape[1]))
        # Others may turn out thin, and should not hold the memory of their neighbours then.
        batches = [tried[k : k + step] for k in range(0, len(tried), step)] + [[m] for m in numbers if m not in tried]
        distances: tuple[Distances, Distances] = ({}, {})
        for batch in batches:
            part = replace(group, members=[group.members[m] for m in batch])
            matrices = np.empty((len(batch), *shape), dtype=self._dtype)
            part = build_matrices(part, part if square else samples, self._scaling, matrices, distances)
            for k, m in enumerate(batch):
                # A kernel that was tried by its columns has no thin factor, but is symmetric.
                symmetric = square if m in tried else None
                self._kernels.add_matrix(self._n_kernels + m, matrices[k], symmetric=symmetric)
                scalings[m] = part.scalings[k] if part.scalings else None
        return scalings


def _by_column(member: Member, group: FittedGroup) -> bool:
    """Say whether a kernel can be factored without its matrix."""
    return member.function.by_column and group.width > 0


def _growths(members: list[Member], samples: FittedGroup) -> list[Growth]:
    """Return how the factor of each kernel grows, by a compiled loop where there is one."""
    features = np.ascontiguousarray(samples.points.T, dtype=np.float64)
    return [
        compiled_growth(member.function.name, member.parameters, features)
        if has_loop(member.function.name)
        else by_columns(_column_of(member, samples), np.inf if member.function.profile is not None else None)
        for member in members
    ]


def _column_of(member: Member, samples: FittedGroup) -> Column:
    """Return the function that computes a column of a kernel; samples that are missing have a zero diagonal."""
    function, points = member.function, samples.points
    if function.metric is None or function.profile is None:
        return lambda point: function.matrix(points, points[point : point + 1], **member.parameters)[:, 0]
    distances, profile = _distances(points, function.metric), function.profile
    return lambda point: profile(distances(point), **member.parameters)


def _distances(points: Array, metric: str) -> Callable[[int], Array]:
    """Return the function that computes the distances of all points to one of them."""
    if points.shape[1] > 1:
        return lambda point: cdist(points[point : point + 1], points, metric)[0]
    line = points[:, 0]
    # All these distances are powers of one number on a line, many times faster to compute.
    return lambda point: np.square(line - line[point]) if metric == "sqeuclidean" else np.abs(line - line[point])


class Gathering:
    """Kernels on their way into a stack: thin factors one below the other in large arrays, and matrices."""

    def __init__(self, basis: Any, tolerance: float) -> None:
        self._basis, self._tolerance = basis, tolerance  # which samples are the basis points; a slice if all of them
        self._array = np.empty((0, 0))
        self._ends, self._positions = [0], list[int]()
        self._forms: list[Form] = []
        self._places: list[list[int]] = []

    def add_factor(self, position: int, factor: Array) -> None:
        """Copy the factor of the kernel at a position of the stack. Shapes: factor (rank, n_samples)."""
        rank, n_samples = factor.shape
        if not self._array.size or self._ends[-1] + rank > len(self._array):
            self._close()
            self._array = np.empty((max(rank, _FACTOR_NUMBERS // n_samples), n_samples))
        self._array[self._ends[-1] : self._ends[-1] + rank] = factor
        self._ends.append(self._ends[-1] + rank)
        self._positions.append(position)

    def add_matrix(self, position: int, matrix: npt.NDArray[Any], *, symmetric: bool | None = None) -> None:
        """
        Hold the matrix of the kernel at a position of the stack; without a word on its symmetry, it may be thin.

        Shapes: matrix (n_samples, n_basis).
        """
        if symmetric is None:
            square = matrix.shape[0] == matrix.shape[1]
            factor = compressed(matrix, self._tolerance) if square and isinstance(self._basis, slice) else None
            if factor is not None:
                self.add_factor(position, factor)
                return
            symmetric = asymmetry(matrix) == 0.0
        self._forms.append(hold(matrix, self._tolerance, symmetric=symmetric))
        self._places.append([position])

    def stack(self) -> FactoredStack:
        """Return the stack of all kernels."""
        self._close()
        return FactoredStack(self._forms, self._places)

    def _close(self) -> None:
        """Make a form of the factors in an array; its other rows never cost memory."""
        if self._positions:
            left = self._array[: self._ends[-1]]
            right = left if isinstance(self._basis, slice) else np.ascontiguousarray(left[:, self._basis])
            self._forms.append(ThinFactors(left, right, np.array(self._ends[1:], dtype=np.intp)))
            self._places.append(self._positions)
        self._array, self._ends, self._positions = np.empty((0, 0)), [0], []
