"""Training kernels of a group of columns: written as matrices, or found as thin factors without the matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from bemkl.arrays import Array
from bemkl.kernels.cholesky import Column, compressed, from_columns, pivoted_cholesky
from bemkl.kernels.compiled import compiled_steps
from bemkl.kernels.forms import Full, LowRank
from bemkl.kernels.scaling import SCALINGS, Scaling, Summary
from bemkl.kernels.shelf import Shelf
from bemkl.kernels.specs import FittedGroup, Member


def build_matrices(group: FittedGroup, samples: FittedGroup, scaling: str | None, out: npt.NDArray[Any]) -> FittedGroup:
    """
    Write the training kernels of a group, and fit their scalings.

    Parameters
    ----------
    group : FittedGroup
        The group with its basis points.
    samples : FittedGroup
        The same group with all training samples as basis points; the same object where there are no landmarks.
    scaling : str or None
        Which scaling.
    out : ndarray of shape (n_members, n_samples, n_basis)
        Where to write, in any precision; computed in double precision.

    Returns
    -------
    FittedGroup
        The group with fitted scalings.
    """
    values = out if out.dtype == np.float64 else np.empty(out.shape)
    group.fill(values, samples.points, samples.present)
    if scaling is not None:
        if group is samples:
            square, diagonals = values, [kernel.diagonal().copy() for kernel in values]
        else:
            n_basis = out.shape[2]
            square, diagonals = np.empty((len(out), n_basis, n_basis)), group.diagonals(samples.points, samples.present)
            group.fill(square, group.points, group.present)
        group = group.with_scalings(scaling, square)
        group.scale(values, diagonals, samples.present)
    if values is not out:
        out[:] = values
    return group


def build_kernels(
    group: FittedGroup,
    samples: FittedGroup,
    rows: Any,
    scaling: str | None,
    tolerance: float,
    dtype: Any,
    shelf: Shelf,
) -> tuple[FittedGroup, list[LowRank | Full]]:
    """
    Build the training kernels of a group as factors where these are thin, and fit their scalings.

    Parameters
    ----------
    group : FittedGroup
        The group with its basis points.
    samples : FittedGroup
        The same group with all training samples as basis points; the same object where there are no landmarks.
    rows : ndarray of int or slice
        Which samples the basis points are.
    scaling : str or None
        Which scaling.
    tolerance : float
        Accuracy of the factors.
    dtype : dtype
        Precision of kernels that stay matrices.
    shelf : Shelf
        Where factors are put.

    Returns
    -------
    group : FittedGroup
        The group with fitted scalings.
    kernels : list of LowRank or Full
        Its kernels.
    """
    built = [_factor(group, samples, member, rows, scaling, tolerance, shelf) for member in group.members]
    thick = [m for m, found in enumerate(built) if found is None]
    if thick:
        out = np.empty((len(thick), len(samples.present), len(group.present)), dtype=dtype)
        some = replace(group, members=[group.members[m] for m in thick])
        some = build_matrices(some, some if group is samples else samples, scaling, out)
        scalings: list[Scaling | None] = [*some.scalings] if some.scalings else [None] * len(thick)
        tried = [group is not samples or _by_column(group.members[m], group) for m in thick]
        for m, kernel, fitted in zip(thick, _smaller(out, tried, tolerance), scalings, strict=True):
            built[m] = kernel, fitted
    found = [pair for pair in built if pair is not None]
    fitted_ones = [fitted for _, fitted in found if fitted is not None]
    return replace(group, scalings=None if scaling is None else fitted_ones), [kernel for kernel, _ in found]


def _smaller(matrices: npt.NDArray[Any], tried: list[bool], tolerance: float) -> list[LowRank | Full]:
    """Factor matrices, where that was not tried without them."""
    factors = [None if done else compressed(matrix, tolerance) for matrix, done in zip(matrices, tried, strict=True)]
    if any(factor is not None for factor in factors):
        # The array would stay in memory as a whole for the sake of the others.
        kept = [matrix.copy() if factor is None else matrix for matrix, factor in zip(matrices, factors, strict=True)]
    else:
        kept = list(matrices)
    return [Full(k) if factor is None else LowRank(factor, factor) for k, factor in zip(kept, factors, strict=True)]


def _by_column(member: Member, group: FittedGroup) -> bool:
    """Say whether a kernel can be factored without its matrix."""
    return member.function.by_column and group.width > 0


def _factor(
    group: FittedGroup,
    samples: FittedGroup,
    member: Member,
    rows: Any,
    scaling: str | None,
    tolerance: float,
    shelf: Shelf,
) -> tuple[LowRank | Full, Scaling | None] | None:
    """Factor one kernel from a few of its columns, and fit its scaling; None where it stays a matrix."""
    present = samples.present
    if not _by_column(member, group):
        return None
    diagonal = present * member.function.diagonal_of(samples.points, **member.parameters)
    n_samples, n_basis = len(present), len(group.present)
    extend = compiled_steps(member.function.name, samples.points, member.parameters)
    factor = pivoted_cholesky(
        extend or from_columns(_column_of(member, samples)),
        diagonal,
        tolerance,
        n_samples * n_basis // (n_samples + n_basis),
        shelf,
    )
    if factor is None:
        return None
    fitted: Scaling | None = None
    if scaling is not None:
        there, basis = group.present > 0.0, factor[:, rows]
        fitted = SCALINGS[scaling](Summary.of_factor(basis, diagonal[rows], there))
        scaled = fitted.apply_to_factor(factor, diagonal, basis)
        if scaled is not factor:
            factor[:] = scaled
        if not present.all():
            factor *= present
    right = factor if group is samples else np.ascontiguousarray(factor[:, rows])
    return LowRank(factor, right), fitted


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
