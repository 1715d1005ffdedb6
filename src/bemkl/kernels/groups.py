"""
Groups of columns that have met their training samples: points, moments, scalings, and the kernels on them.

Training kernels are written as matrices, or found as thin factors without the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from bemkl.arrays import Array, refuse_out_of_range, standard_moments
from bemkl.kernels.cholesky import Column, Growth, by_columns, compiled_growth, has_loop, pivoted_cholesky
from bemkl.kernels.forms.protocol import LARGE_KERNELS
from bemkl.kernels.scaling import SCALINGS, Present, Scaling, Summary
from bemkl.kernels.specs import NAMED, NUMERIC, SEQUENCES, Member
from bemkl.kernels.stack import FactoredStack, Gathering
from bemkl.kernels.views import Samples, split_missing

_MATRIX_NUMBERS = 2**21
"""Numbers in an array of matrices: enough for large pages of memory, which cost less, and few next to a whole stack."""

Distances = dict[str, Array]
"""Distances between points and basis points, by their metrics."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedGroup:
    """A group of columns, with what was learned from its training samples and the kernels on it."""

    label: str  # name of the group
    columns: list[str]  # names of its columns
    positions: list[int]  # places of its columns among those of the training samples
    named: bool  # whether the names came with the training samples
    width: int  # number of features; 0 for sequences
    members: list[Member]  # its kernels
    mean: Any  # (n_features,): what is subtracted from the points
    deviation: Any  # (n_features,): what they are divided by
    points: Any  # (n_basis, n_features): basis points, standardised
    present: Array  # (n_basis,): 1 for basis points that have this group, 0 for missing ones
    scalings: list[Scaling] | None = None  # fitted scaling of each kernel, once there is one

    def read(self, samples: Samples) -> tuple[Any, Array]:
        """
        Take this group's points of some samples.

        Shapes: returns points (n_samples, n_features), present (n_samples,).
        """
        by_name = self.named and samples.named
        positions = samples.find(self.columns)[0][1] if by_name else self.positions
        points, present = split_missing(self.label, samples.take(positions))
        if self.width == 0 and not present.any():
            points = [""] * len(present)  # where no sample has a sequence, nothing tells them from numbers
        width = _width(points)
        if width != self.width:
            expected, found = (f"{count} features" if count else "sequences" for count in (self.width, width))
            raise ValueError(f"X: {self.label} has {found}, in training it had {expected}. Pass the same columns.")
        return _standardised(self.label, points, present, self.mean, self.deviation), present

    def restricted(self, rows: Any) -> FittedGroup:
        """Keep only some of the basis points."""
        points = [self.points[i] for i in rows] if isinstance(self.points, list) else self.points[rows]
        return replace(self, points=points, present=self.present[rows])

    def fill(self, out: Any, points: Any, present: Array, distances: Distances | None = None) -> None:
        """
        Write the kernels between points and basis points, before scaling; distances are computed once.

        Shapes: out (n_members, n_samples, n_basis), points (n_samples, n_features), present (n_samples,), distances
        (n_samples, n_basis).
        """
        distances = {} if distances is None else distances
        for kernel, member in zip(out, self.members, strict=True):
            # What leaves the range of floating point is refused below, by name.
            with np.errstate(all="ignore"):
                values = self._values(member, points, distances, kernel)
            if np.shape(values) != kernel.shape:
                raise ValueError(
                    f"kernel: expected values of shape {kernel.shape} from {member.name_on(self.label)!r}, got shape "
                    f"{np.shape(values)}. Return a row for each of X and a column for each of Z."
                )
            refuse_out_of_range(f"kernel {member.name_on(self.label)!r}", np.asarray(values), LARGE_KERNELS)
            if values is not kernel:
                kernel[:] = values
        self._drop_missing(out, present)

    def store(self, values: Any, out: Any) -> None:
        """
        Write kernels in the precision in which they are kept, and refuse what that cannot hold.

        Shapes: values (n_members, n_samples, n_basis), out (n_members, n_samples, n_basis).
        """
        if values is out:
            return
        for member, kernel in zip(self.members, values, strict=True):
            refuse_overflow(member.name_on(self.label), kernel, out.dtype)
        out[:] = values

    def _values(self, member: Member, points: Any, distances: Distances, out: Array) -> Any:
        """Compute one kernel between points and basis points, where possible in the place that it will have."""
        function = member.function
        if function.metric is not None and function.profile is not None:
            if function.metric not in distances:
                distances[function.metric] = cdist(points, self.points, function.metric)
            return function.profile(distances[function.metric], **member.parameters, out=out)
        # Functions of users get copies, in case they write to what they get.
        copied = (points, self.points) if function.name in NAMED else (copy(points), copy(self.points))
        return function.matrix(*copied, **member.parameters)

    def with_scalings(self, name: str, square: Any) -> FittedGroup:
        """Fit the scaling of each kernel. Shapes: square (n_members, n_basis, n_basis)."""
        there = self.present > 0.0
        with np.errstate(all="ignore"):
            return replace(self, scalings=[SCALINGS[name](Summary.of_matrix(kernel, there)) for kernel in square])

    def scale(self, out: Any, diagonals: Any, present: Array) -> None:
        """
        Scale kernels in place.

        Shapes: out (n_members, n_samples, n_basis), diagonals (n_samples,), present (n_samples,).
        """
        for kernel, diagonal, scaling in zip(out, diagonals, self.scalings or (), strict=True):
            with np.errstate(all="ignore"):
                scaled = scaling.apply(kernel, diagonal)
            if scaled is not kernel:
                kernel[:] = scaled
        self._drop_missing(out, present)

    def scaled_diagonals(self, kernels: Any, diagonals: Any, present: Array) -> Array:
        """
        Values k(x, x) of some points after scaling, from those before it and the kernels before it.

        Shapes: kernels (n_members, n_samples, n_basis), diagonals (n_members, n_samples), present (n_samples,); returns
        (n_members, n_samples).
        """
        if self.scalings is None:
            return np.array(diagonals)
        with np.errstate(all="ignore"):
            parts = zip(self.scalings, kernels, diagonals, strict=True)
            scaled: Array = present * np.array([scaling.apply_to_diagonal(*values) for scaling, *values in parts])
        return scaled

    def diagonals(self, points: Any, present: Array) -> list[Array]:
        """
        Values k(x, x) of some points, a kernel at a time.

        Shapes: points (n_samples, n_features), present (n_samples,); returns (n_samples,).
        """
        with np.errstate(all="ignore"):
            return [present * member.function.diagonal_of(points, **member.parameters) for member in self.members]

    def _drop_missing(self, out: Any, present: Array) -> None:
        """Make missing samples similar to nothing; also after scaling, because centring moves zeros."""
        if not (present.all() and self.present.all()):
            out *= (present[:, None] * self.present).astype(out.dtype)


def learn_group(samples: Samples, family: tuple[str, list[int], list[Member]], *, standardise: bool) -> FittedGroup:
    """Learn moments of a group's columns from training samples."""
    label, positions, members = family
    points, present = split_missing(label, samples.take(positions))
    if not present.any():
        raise ValueError(f"X: no training sample has {label}, all its rows are NaN. Leave it out of the specs.")
    _refuse_kinds(label, members, strings=isinstance(points, list))
    mean: Any = 0.0
    deviation: Any = 1.0
    if standardise and not isinstance(points, list):
        mean, deviation = standard_moments(points[present > 0.0])
    return FittedGroup(
        label=label,
        columns=[samples.names[j] for j in positions],
        positions=positions,
        named=samples.named,
        width=_width(points),
        members=members,
        mean=mean,
        deviation=deviation,
        points=_standardised(label, points, present, mean, deviation),
        present=present,
    )


def refuse_overflow(name: str, kernel: Array, dtype: Any) -> None:
    """Refuse a kernel that single precision cannot hold, where the samples ask for that."""
    largest, most = float(np.abs(kernel).max(initial=0.0)), float(np.finfo(dtype).max)
    if most < largest < np.inf:
        raise ValueError(
            f"kernel {name!r}: expected numbers of at most {most:.2g} in size, because X is in single precision, got "
            f"{largest:g}. Pass X in double precision, or standardise the columns."
        )


def _refuse_kinds(label: str, members: list[Member], *, strings: bool) -> None:
    """Refuse kernels that cannot compare what a group holds."""
    for member in members:
        name = member.function.name
        if strings and name in NUMERIC:
            raise ValueError(
                f"X: {label} holds strings, which {name} cannot compare. Put the spectrum kernel on sequences, code "
                "categories as numbers, or name the columns of numbers by on=."
            )
        if not strings and name in SEQUENCES:
            raise ValueError(f"X: {label} holds numbers, and {name} compares sequences. Pass one column of strings.")


def _width(points: Any) -> int:
    """Number of features of points; 0 for sequences."""
    return 0 if isinstance(points, list) else int(points.shape[1])


def _standardised(label: str, points: Any, present: Array, mean: Any, deviation: Any) -> Any:
    """Standardise points but missing ones, which stay zero, and refuse those that are out of range then."""
    if isinstance(points, list):
        return points
    with np.errstate(over="ignore"):
        standardised = present[:, None] * ((points - mean) / deviation)
    refuse_out_of_range(f"X, {label}", standardised, "Standardise the columns, use another unit, or take logarithms.")
    return standardised


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
