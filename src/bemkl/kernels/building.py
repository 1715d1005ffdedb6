"""Training kernels of a group of columns: written as matrices, or found as thin factors without the matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from bemkl.arrays import Array
from bemkl.kernels.cholesky import Column, Steps, compressed, from_columns, pivoted_cholesky
from bemkl.kernels.compiled import compiled_steps, has_loop
from bemkl.kernels.forms import Full, Kernel, LowRank
from bemkl.kernels.groups import Distances, FittedGroup, refuse_overflow
from bemkl.kernels.powers import POWERS_STAY, Power, common_base
from bemkl.kernels.registry import find_kernel
from bemkl.kernels.scaling import SCALINGS, Present, Scaling, Summary
from bemkl.kernels.shelf import Shelf
from bemkl.kernels.sparse import Sparse, looks_sparse, some_rows
from bemkl.kernels.specs import Member

Built = tuple[Kernel, Scaling | None]

_LARGEST = float(np.finfo(np.float64).max)


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


def build_kernels(
    group: FittedGroup,
    samples: FittedGroup,
    rows: Any,
    scaling: str | None,
    tolerance: float,
    dtype: Any,
    shelf: Shelf,
) -> tuple[FittedGroup, list[Kernel]]:
    """Build the training kernels of a group as factors where these are thin, and fit their scalings."""
    built = _factored(group, samples, rows, scaling, tolerance, dtype, shelf)
    distances: tuple[Distances, Distances] = ({}, {})
    if group is samples and scaling in POWERS_STAY and dtype == np.float64:
        _find_powers(built, group, scaling, tolerance, distances)
    thick = [m for m, found in enumerate(built) if found is None]
    place: npt.NDArray[Any] | None = None
    for m in thick:
        some = replace(group, members=[group.members[m]])
        if place is None:
            # One by one: NumPy asks for huge pages where all are one array, and these are dear the first time.
            place = np.empty((1, len(samples.present), len(group.present)), dtype=dtype)
        some = build_matrices(some, some if group is samples else samples, scaling, place, distances)
        kernel = _smaller(place[0], group is samples, None if _by_column(group.members[m], group) else tolerance)
        built[m] = kernel, some.scalings[0] if some.scalings else None
        # What became smaller leaves its place to the next one.
        place = None if isinstance(kernel, Full) else place
    found = [pair for pair in built if pair is not None]
    fitted_ones = [fitted for _, fitted in found if fitted is not None]
    return replace(group, scalings=None if scaling is None else fitted_ones), [kernel for kernel, _ in found]


def _find_powers(
    built: list[Built | None],
    group: FittedGroup,
    scaling: str | None,
    tolerance: float,
    distances: tuple[Distances, Distances],
) -> None:
    """Fill in kernels that are powers of one matrix, where compiled loops can read it instead of one matrix each."""
    names = {member.function.name for member, found in zip(group.members, built, strict=True) if found is None}
    for name in sorted(name for name in names if has_loop(name)):
        same = [m for m, member in enumerate(group.members) if built[m] is None and member.function.name == name]
        parameters, exponents = common_base(name, [group.members[m].parameters for m in same], tolerance)
        if sum(exponent is not None for exponent in exponents) < 2:
            continue
        only = replace(group, members=[Member(find_kernel(name), parameters)])
        base = np.empty((len(group.present), len(group.present)))
        build_matrices(only, only, scaling, base[None], distances)
        powers = {m: Power(base, p) for m, p in zip(same, exponents, strict=True) if p is not None}
        largest, few = float(np.abs(base).max()), some_rows(len(base))
        # Sparse matrices cost less than powers; what is not finite is for others to report.
        kept = [
            m for m, p in powers.items() if largest <= _LARGEST ** (1.0 / p.exponent) and not looks_sparse(p.rows(few))
        ]
        for m in kept if len(kept) > 1 else ():
            built[m] = powers[m], None if scaling is None else _fitted(powers[m], group, group.members[m], scaling)


def _fitted(power: Power, group: FittedGroup, member: Member, scaling: str) -> Scaling:
    """Fit the scaling of a kernel that is the power of a scaled one already."""
    diagonal, there = member.function.diagonal_of(group.points, **member.parameters), group.present > 0.0
    return SCALINGS[scaling](
        Summary(group.present * diagonal, lambda: power.rows(slice(None))[there].mean(axis=0), there)
    )


def _smaller(matrix: npt.NDArray[Any], square: bool, tolerance: float | None) -> Kernel:
    """Factor a square matrix, unless that was tried without it: then it is symmetric, and has no tolerance."""
    factor = compressed(matrix, tolerance) if square and tolerance is not None else None
    if factor is not None:
        return LowRank(factor, factor)
    symmetric = square and tolerance is None
    return Sparse.of(matrix, symmetric=symmetric) or Full(matrix, symmetric=symmetric)


def _by_column(member: Member, group: FittedGroup) -> bool:
    """Say whether a kernel can be factored without its matrix."""
    return member.function.by_column and group.width > 0


def _factored(
    group: FittedGroup,
    samples: FittedGroup,
    rows: Any,
    scaling: str | None,
    tolerance: float,
    dtype: Any,
    shelf: Shelf,
) -> list[Built | None]:
    """Factor kernels from a few of their columns, and fit their scalings; None where one stays a matrix."""
    built: list[Built | None] = [None] * len(group.members)
    tried = [m for m, member in enumerate(group.members) if _by_column(member, group)]
    with_loop = [m for m in tried if has_loop(group.members[m].function.name)]
    without_loop = [m for m in tried if m not in with_loop]
    n_samples, n_basis = len(samples.present), len(group.present)
    most = n_samples * n_basis // (n_samples + n_basis)
    for positions, steps_of in ((with_loop, _compiled), (without_loop, _by_columns)):
        if not positions:
            continue
        members = [group.members[m] for m in positions]
        # Kernels that leave the range of floating point have no factor, and are refused as matrices.
        with np.errstate(all="ignore"):
            diagonals = samples.present * [m.function.diagonal_of(samples.points, **m.parameters) for m in members]
            factors = pivoted_cholesky(steps_of(members, samples), diagonals, tolerance, most, shelf)
        complete, there = bool(samples.present.all()), group.present > 0.0
        for m, factor, diagonal in zip(positions, factors, diagonals, strict=True):
            if factor is not None:
                fitted = None if scaling is None else _scale(factor, diagonal, there, rows, scaling)
                if not complete:
                    factor *= samples.present
                if dtype != np.float64:
                    refuse_overflow(group.members[m].name_on(group.label), np.square(factor).sum(axis=0), dtype)
                built[m] = (
                    LowRank(factor, factor if group is samples else np.ascontiguousarray(factor[:, rows])),
                    fitted,
                )
    return built


def _scale(factor: Array, diagonal: Array, there: Present, rows: Any, scaling: str) -> Scaling:
    """Fit the scaling of a kernel, and scale its factor in place."""
    basis = factor[:, rows]
    fitted = SCALINGS[scaling](Summary.of_factor(basis, diagonal[rows], there))
    scaled = fitted.apply_to_factor(factor, diagonal, basis)
    if scaled is not factor:
        factor[:] = scaled
    return fitted


def _compiled(members: list[Member], samples: FittedGroup) -> Steps:
    return compiled_steps([(member.function.name, member.parameters) for member in members], samples.points)


def _by_columns(members: list[Member], samples: FittedGroup) -> Steps:
    own_ranks = [np.inf if member.function.profile is not None else 0.0 for member in members]
    return from_columns([_column_of(member, samples) for member in members], own_ranks)


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
