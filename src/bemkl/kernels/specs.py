"""What a bank is made of: families of kernels, and the groups of columns they become when they meet samples."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from bemkl.arrays import Array, refuse_out_of_range, standard_moments
from bemkl.caching import lazy_property
from bemkl.kernels.registry import NAMED, NUMERIC, SEQUENCES, KernelFunction, Matrix, find_kernel
from bemkl.kernels.scaling import SCALINGS, Scaling, Summary
from bemkl.kernels.stack import LARGE_KERNELS
from bemkl.kernels.views import Groups, Samples, split_missing

Distances = dict[str, Array]
"""Distances between points and basis points, by their metrics."""

_SHORT = {"width": "w", "degree": "d", "length": "l", "period": "p"}


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """
    A family of kernels: one function, some groups of columns, a grid of parameters.

    Parameters
    ----------
    kernel : str or callable
        Name of a kernel, or a function of X and Z.
    on : str, int, sequence of these, slice, mask, or dict of str to these
        "all" columns together, "each" column alone, the columns of one group by name, position, slice or mask, or a
        dict of such groups by the names that they should have. In a dict of views, a view is a column.
    parameters : mapping of str to value or sequence of values
        Parameters of the kernel; sequences span a grid, with a kernel for each combination.
    """

    kernel: str | Matrix
    on: Groups = "all"
    parameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be a family of kernels."""
        function = find_kernel(self.kernel)
        object.__setattr__(self, "on", _without_arrays(self.on))
        if not isinstance(self.parameters, Mapping | None):
            raise ValueError(f"parameters: expected a dict of values by name, got {self.parameters!r}.")
        for parameters in self.grid()[:1]:
            _refuse_parameters(function, parameters)

    def grid(self) -> list[dict[str, Any]]:
        """
        Return the combinations of parameters.

        Returns
        -------
        list of dict
            Parameters of each kernel.
        """
        names = list(self.parameters or {})
        values = [v if isinstance(v, list | tuple | np.ndarray) else [v] for v in (self.parameters or {}).values()]
        empty = [name for name, options in zip(names, values, strict=True) if not len(options)]
        if empty:
            raise ValueError(f"parameters: expected at least one value for {empty[0]!r}, got none.")
        return [dict(zip(names, combination, strict=True)) for combination in product(*values)]


def _without_arrays(on: Any) -> Any:
    """Return groups of columns as lists where they came as arrays, which compare and save well."""
    if isinstance(on, Mapping):
        return {name: _without_arrays(columns) for name, columns in on.items()}
    return on.tolist() if isinstance(on, np.ndarray) else on


def _refuse_parameters(function: KernelFunction, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that the kernel does not have, or lacks."""
    try:
        signature = inspect.signature(function.matrix)
    except (TypeError, ValueError):
        return  # some callables do not say what they take
    try:
        signature.bind(None, None, **parameters)
    except TypeError as error:
        known = ", ".join(list(signature.parameters)[2:]) or "none"
        raise ValueError(
            f"parameters: {function.name} cannot take {dict(parameters)!r} ({error}). Its parameters are: {known}."
        ) from None


@dataclass(frozen=True)
class Member:
    """
    One kernel of a group.

    Parameters
    ----------
    function : KernelFunction
        The kernel function.
    parameters : dict
        Its parameters.
    """

    function: KernelFunction
    parameters: dict[str, Any]

    @lazy_property
    def title(self) -> str:
        """Function and parameters, readable; the same for all groups."""
        shown = ", ".join(f"{_SHORT.get(key, key)}={_shown(value)}" for key, value in self.parameters.items())
        return f"{self.function.name}({shown})" if shown else self.function.name

    def name_on(self, label: str) -> str:
        """
        Name this kernel readably.

        Parameters
        ----------
        label : str
            Name of the group.

        Returns
        -------
        str
            Function, parameters and group.
        """
        return f"{self.title} on {label}"


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def gather(specs: Sequence[KernelSpec], samples: Samples) -> list[tuple[str, list[int], list[Member]]]:
    """
    Expand specifications on samples, so that kernels on the same columns are together.

    Parameters
    ----------
    specs : sequence of KernelSpec
        Families of kernels.
    samples : Samples
        What they are to be put on.

    Returns
    -------
    list of (str, list of int, list of Member)
        Label, columns and kernels of each group.
    """
    groups: dict[tuple[str, tuple[int, ...]], list[Member]] = {}
    if isinstance(specs, KernelSpec) or not isinstance(specs, Sequence):
        raise ValueError(f"specs: expected a list of KernelSpec objects, got {specs!r}. Write [KernelSpec(...)].")
    for spec in specs:
        if not isinstance(spec, KernelSpec):
            raise ValueError(f"specs: expected KernelSpec objects, got {spec!r}.")
        function = find_kernel(spec.kernel)
        members = [Member(function, parameters) for parameters in spec.grid()]
        for label, positions in samples.find(spec.on):
            groups.setdefault((label, tuple(positions)), []).extend(members)
    if not groups:
        raise ValueError("specs: expected at least one KernelSpec, got none.")
    return [(label, list(positions), members) for (label, positions), members in groups.items()]


@dataclass(frozen=True, slots=True, eq=False)
class FittedGroup:
    """
    A group of columns, with what was learned from its training samples and the kernels on it.

    Parameters
    ----------
    label : str
        Name of the group.
    columns : list of str
        Names of its columns.
    positions : list of int
        Places of its columns among those of the training samples.
    named : bool
        Whether the names came with the training samples.
    width : int
        Number of features; 0 for sequences.
    members : list of Member
        Its kernels.
    mean : ndarray of shape (n_features,) or float
        What is subtracted from the points.
    deviation : ndarray of shape (n_features,) or float
        What they are divided by.
    points : ndarray of shape (n_basis, n_features) or list of str
        Basis points, standardised.
    present : ndarray of shape (n_basis,)
        1 for basis points that have this group, 0 for missing ones.
    scalings : list of Scaling or None
        Fitted scaling of each kernel, once there is one.
    """

    label: str
    columns: list[str]
    positions: list[int]
    named: bool
    width: int
    members: list[Member]
    mean: Any
    deviation: Any
    points: Any
    present: Array
    scalings: list[Scaling] | None = None

    def read(self, samples: Samples) -> tuple[Any, Array]:
        """
        Take this group's points of some samples.

        Parameters
        ----------
        samples : Samples
            The samples.

        Returns
        -------
        points : ndarray of shape (n_samples, n_features) or list of str
            The points, standardised like the training samples.
        present : ndarray of shape (n_samples,)
            1 for samples that have this group, 0 for missing ones.
        """
        by_name = self.named and samples.named
        positions = samples.find(self.columns)[0][1] if by_name else self.positions
        points, present = split_missing(self.label, samples.take(positions))
        width = _width(points)
        if width != self.width:
            expected, found = (f"{count} features" if count else "sequences" for count in (self.width, width))
            raise ValueError(f"X: {self.label} has {found}, in training it had {expected}. Pass the same columns.")
        return _standardised(self.label, points, self.mean, self.deviation), present

    def restricted(self, rows: Any) -> FittedGroup:
        """
        Keep only some of the basis points.

        Parameters
        ----------
        rows : ndarray of int
            Which ones.

        Returns
        -------
        FittedGroup
            The group with these basis points.
        """
        points = [self.points[i] for i in rows] if isinstance(self.points, list) else self.points[rows]
        return replace(self, points=points, present=self.present[rows])

    def fill(self, out: Any, points: Any, present: Array, distances: Distances | None = None) -> None:
        """
        Write the kernels between points and basis points, before scaling; distances are computed once.

        Parameters
        ----------
        out : ndarray of shape (n_members, n_samples, n_basis)
            Where to write.
        points : ndarray of shape (n_samples, n_features) or list of str
            The points.
        present : ndarray of shape (n_samples,)
            1 for samples that have this group, 0 for missing ones.
        distances : dict of str to ndarray of shape (n_samples, n_basis), optional
            Distances between these points by their metrics, as far as they are known; others are added.
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

    def _values(self, member: Member, points: Any, distances: Distances, out: Array) -> Any:
        """Compute one kernel between points and basis points, where possible in the place that it will have."""
        function = member.function
        if self.width == 0 and function.name in NUMERIC:
            raise ValueError(
                f"X: {self.label} holds strings, which {function.name} cannot compare. Put the spectrum kernel on "
                "sequences, code categories as numbers, or name the columns of numbers by on=."
            )
        if self.width > 0 and function.name in SEQUENCES:
            raise ValueError(
                f"X: {self.label} holds numbers, and {function.name} compares sequences. Pass one column of strings."
            )
        if function.metric is not None and function.profile is not None:
            if function.metric not in distances:
                distances[function.metric] = cdist(points, self.points, function.metric)
            return function.profile(distances[function.metric], **member.parameters, out=out)
        # Functions of users get copies, in case they write to what they get.
        copied = (points, self.points) if function.name in NAMED else (copy(points), copy(self.points))
        return function.matrix(*copied, **member.parameters)

    def with_scalings(self, name: str, square: Any) -> FittedGroup:
        """
        Fit the scaling of each kernel.

        Parameters
        ----------
        name : str
            Which scaling.
        square : ndarray of shape (n_members, n_basis, n_basis)
            Kernels between the basis points.

        Returns
        -------
        FittedGroup
            The group with scalings.
        """
        there = self.present > 0.0
        with np.errstate(all="ignore"):
            return replace(self, scalings=[SCALINGS[name](Summary.of_matrix(kernel, there)) for kernel in square])

    def scale(self, out: Any, diagonals: Any, present: Array) -> None:
        """
        Scale kernels in place.

        Parameters
        ----------
        out : ndarray of shape (n_members, n_samples, n_basis)
            Kernels between points and basis points.
        diagonals : iterable of ndarray of shape (n_samples,)
            Values k(x, x) of the points, a kernel at a time.
        present : ndarray of shape (n_samples,)
            1 for samples that have this group, 0 for missing ones.
        """
        for kernel, diagonal, scaling in zip(out, diagonals, self.scalings or (), strict=True):
            with np.errstate(all="ignore"):
                scaled = scaling.apply(kernel, diagonal)
            if scaled is not kernel:
                kernel[:] = scaled
        self._drop_missing(out, present)

    def diagonals(self, points: Any, present: Array) -> list[Array]:
        """
        Values k(x, x) of some points, a kernel at a time.

        Parameters
        ----------
        points : ndarray of shape (n_samples, n_features) or list of str
            The points.
        present : ndarray of shape (n_samples,)
            1 for samples that have this group, 0 for missing ones.

        Returns
        -------
        list of ndarray of shape (n_samples,)
            The values.
        """
        with np.errstate(all="ignore"):
            return [present * member.function.diagonal_of(points, **member.parameters) for member in self.members]

    def _drop_missing(self, out: Any, present: Array) -> None:
        """Make missing samples similar to nothing; also after scaling, because centring moves zeros."""
        if not (present.all() and self.present.all()):
            out *= (present[:, None] * self.present).astype(out.dtype)


def learn_group(samples: Samples, family: tuple[str, list[int], list[Member]], *, standardise: bool) -> FittedGroup:
    """
    Learn moments of a group's columns from training samples.

    Parameters
    ----------
    samples : Samples
        The training samples.
    family : (str, list of int, list of Member)
        Label, columns and kernels of the group.
    standardise : bool
        Whether the columns are standardised; a constant one is only centred.

    Returns
    -------
    FittedGroup
        The group with all training samples as basis points.
    """
    label, positions, members = family
    points, present = split_missing(label, samples.take(positions))
    if not present.any():
        raise ValueError(f"X: no training sample has {label}, all its rows are NaN. Leave it out of the specs.")
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
        points=_standardised(label, points, mean, deviation),
        present=present,
    )


def _width(points: Any) -> int:
    """Number of features of points; 0 for sequences."""
    return 0 if isinstance(points, list) else int(points.shape[1])


def _standardised(label: str, points: Any, mean: Any, deviation: Any) -> Any:
    """Standardise points, and refuse those that are out of range then."""
    if isinstance(points, list):
        return points
    with np.errstate(over="ignore"):
        standardised = (points - mean) / deviation
    refuse_out_of_range(f"X, {label}", standardised, "Standardise the columns, use another unit, or take logarithms.")
    return standardised
