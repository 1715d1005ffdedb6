"""Banks of kernels: kernel functions on groups of columns, fitted on training samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bemkl.arrays import Array
from bemkl.kernels.registry import KernelFunction, Matrix, find_kernel
from bemkl.kernels.scaling import SCALINGS, Scaling
from bemkl.kernels.stack import DenseStack
from bemkl.kernels.views import Columns, Samples, read_samples, split_missing


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """
    A family of kernels: one function, some groups of columns, a grid of parameters.

    Parameters
    ----------
    kernel : str or callable
        Name of a kernel, or a function of X and Z.
    on : str, int, or sequence of these
        "all" columns together, "each" column alone, or the columns of one group by name or position. In a dict of
        views, a view is a column.
    parameters : mapping of str to value or sequence of values
        Parameters of the kernel; sequences span a grid, with a kernel for each combination.
    """

    kernel: str | Matrix
    on: Columns = "all"
    parameters: Mapping[str, Any] | None = None

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
        return [dict(zip(names, combination, strict=True)) for combination in product(*values)]


@dataclass(frozen=True, slots=True)
class FittedGroup:
    """
    A group of columns with the training points it has there, and the kernels on it.

    Parameters
    ----------
    label : str
        Name of the group.
    columns : list of str
        Names of its columns.
    mean : ndarray of shape (n_features,) or float
        What is subtracted from the points.
    deviation : ndarray of shape (n_features,) or float
        What they are divided by.
    points : ndarray of shape (n_basis, n_features) or list of str
        Training points, standardised.
    present : ndarray of shape (n_basis,)
        1 for training samples that have this group, 0 for missing ones.
    members : list of (KernelFunction, dict, Scaling or None)
        Kernels on the group with their parameters and fitted scalings.
    """

    label: str
    columns: list[str]
    mean: Any
    deviation: Any
    points: Any
    present: Array
    members: list[tuple[KernelFunction, dict[str, Any], Scaling | None]]


class KernelBank(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """
    Kernels on groups of columns, with everything learned on training samples only.

    Parameters
    ----------
    specs : sequence of KernelSpec
        Families of kernels.
    standardise : bool
        Whether columns are standardised with the training samples' mean and deviation; a constant one is only centred.
    scaling : {"spherical", "centred", "trace", "variance"} or None
        Scaling of every kernel, fitted on the training kernel.

    Attributes
    ----------
    kernel_names_ : list of str
        A readable name for each kernel.
    groups_ : list of FittedGroup
        The groups in the order of the kernels.

    Examples
    --------
    >>> bank = KernelBank([KernelSpec("gaussian", "each", {"width": [0.5, 1.0]}), KernelSpec("linear")])
    >>> stack = bank.fit_transform([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]])
    >>> stack.shape
    (5, 3, 3)
    >>> bank.kernel_names_[:2], bank.kernel_names_[-1]
    (['gaussian(w=0.5) on x0', 'gaussian(w=1) on x0'], 'linear on all features')
    >>> bank.transform([[0.5, 0.5]]).shape
    (5, 1, 3)
    """

    def __init__(self, specs: Sequence[KernelSpec], *, standardise: bool = False, scaling: str | None = None) -> None:
        self.specs = specs
        self.standardise = standardise
        self.scaling = scaling

    def fit(self, X: Any, y: Any = None) -> KernelBank:
        """
        Learn groups, moments and scalings from training samples.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, or dict of these
            Training samples.
        y : Any
            Not used.

        Returns
        -------
        KernelBank
            This bank.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> DenseStack:
        """
        Learn from training samples, and return their kernels.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, or dict of these
            Training samples.
        y : Any
            Not used.

        Returns
        -------
        DenseStack
            Kernels of shape (n_kernels, n_train, n_train).
        """
        if self.scaling is not None and self.scaling not in SCALINGS:
            raise ValueError(f"scaling: expected one of {', '.join(SCALINGS)} or None, got {self.scaling!r}.")
        samples = read_samples(X)
        families = _families(self.specs, samples)
        n_kernels = sum(len(members) for _, _, members in families)
        kernels = np.empty((n_kernels, samples.n_samples, samples.n_samples))
        groups: list[FittedGroup] = []
        names: list[str] = []
        for label, positions, members in families:
            mean, deviation, points, present = self._prepare(label, samples.take(positions))
            out = kernels[len(names) : len(names) + len(members)]
            _fill(out, members, points, points)
            _drop_missing(out, present, present)
            fitted = []
            for kernel, (function, parameters) in zip(out, members, strict=True):
                scaling: Scaling | None = None if self.scaling is None else SCALINGS[self.scaling](kernel)
                if scaling is not None:
                    kernel[:] = scaling.apply(kernel, kernel.diagonal().copy())
                fitted.append((function, parameters, scaling))
                names.append(_name(function, parameters, label))
            _drop_missing(out, present, present)
            columns = [samples.names[j] for j in positions]
            groups.append(FittedGroup(label, columns, mean, deviation, points, present, fitted))
        self.groups_ = groups
        self.kernel_names_ = names
        self.feature_names_in_ = np.array(samples.names, dtype=object)
        return DenseStack(kernels)

    def transform(self, X: Any) -> DenseStack:
        """
        Return the kernels between samples and training samples.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, or dict of these
            Samples with the columns of the training samples.

        Returns
        -------
        DenseStack
            Kernels of shape (n_kernels, n_samples, n_train).
        """
        check_is_fitted(self)
        samples = read_samples(X)
        if samples.kind == "features" and len(samples.names) != len(self.feature_names_in_):
            raise ValueError(
                f"X: expected the {len(self.feature_names_in_)} features of training, got {len(samples.names)}."
            )
        kernels = np.empty((len(self.kernel_names_), samples.n_samples, len(self.groups_[0].present)))
        first = 0
        for group in self.groups_:
            positions = samples.find(group.columns)[0][1]
            points, present = split_missing(group.label, samples.take(positions))
            points = _shift(points, group.mean, group.deviation)
            out = kernels[first : first + len(group.members)]
            members = [(function, parameters) for function, parameters, _ in group.members]
            _fill(out, members, points, group.points)
            _drop_missing(out, present, group.present)
            for kernel, (function, parameters, scaling) in zip(out, group.members, strict=True):
                if scaling is not None:
                    kernel[:] = scaling.apply(kernel, present * function.diagonal_of(points, **parameters))
            _drop_missing(out, present, group.present)
            first += len(group.members)
        return DenseStack(kernels)

    def _prepare(self, label: str, raw: Any) -> tuple[Any, Any, Any, Array]:
        """Return mean, deviation, standardised points and presence of the training samples of a group."""
        points, present = split_missing(label, raw)
        if not present.any():
            raise ValueError(f"X: no training sample has {label}, all its rows are NaN. Leave it out of the specs.")
        mean: Any = 0.0
        deviation: Any = 1.0
        if self.standardise and not isinstance(points, list):
            there = points[present > 0.0]
            mean, deviation = there.mean(axis=0), there.std(axis=0)
            # The deviation of a constant column is zero only up to the rounding of its mean.
            constant = deviation <= 10.0 * np.finfo(np.float64).eps * np.abs(there).max(axis=0)
            deviation = np.where(constant, 1.0, deviation)
        return mean, deviation, _shift(points, mean, deviation), present


def paper_bank() -> KernelBank:
    """
    Return the bank of the paper's first experiment (section 6.1).

    Ten Gaussian and three polynomial kernels on all features and on each feature, standardised, with unit diagonal:
    13 (n_features + 1) kernels, known when the bank meets the data.

    Returns
    -------
    KernelBank
        The bank, not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> paper_bank().fit_transform(np.random.default_rng(0).normal(size=(4, 2))).shape
    (39, 4, 4)
    """
    widths, degrees = [2.0**power for power in range(-3, 7)], [1, 2, 3]
    specs = [
        KernelSpec(kernel, on, parameters)
        for on in ("all", "each")
        for kernel, parameters in (("gaussian", {"width": widths}), ("polynomial", {"degree": degrees}))
    ]
    return KernelBank(specs, standardise=True, scaling="spherical")


_SHORT = {"width": "w", "degree": "d", "length": "l", "period": "p"}
Members = list[tuple[KernelFunction, dict[str, Any]]]


def _families(specs: Sequence[KernelSpec], samples: Samples) -> list[tuple[str, list[int], Members]]:
    """Return label, columns and kernels of each group, so that kernels on the same columns are together."""
    groups: dict[tuple[int, ...], tuple[str, Members]] = {}
    for spec in specs:
        if not isinstance(spec, KernelSpec):
            raise ValueError(f"specs: expected KernelSpec objects, got {spec!r}.")
        function = find_kernel(spec.kernel)
        for label, positions in samples.find(spec.on):
            _, members = groups.setdefault(tuple(positions), (label, []))
            members.extend((function, parameters) for parameters in spec.grid())
    if not groups:
        raise ValueError("specs: expected at least one KernelSpec, got none.")
    return [(label, list(positions), members) for positions, (label, members) in groups.items()]


def _fill(out: Array, members: Members, X: Any, Z: Any) -> None:
    """Write the kernels of one group; distances are computed once."""
    distances: dict[str, Array] = {}
    for kernel, (function, parameters) in zip(out, members, strict=True):
        if function.metric is not None and function.profile is not None:
            if function.metric not in distances:
                distances[function.metric] = cdist(X, Z, function.metric)
            kernel[:] = function.profile(distances[function.metric], **parameters)
        else:
            kernel[:] = function.matrix(X, Z, **parameters)


def _drop_missing(out: Array, rows: Array, columns: Array) -> None:
    """Make missing samples similar to nothing; also after scaling, because centring moves zeros."""
    if not (rows.all() and columns.all()):
        out *= rows[:, None] * columns


def _shift(points: Any, mean: Any, deviation: Any) -> Any:
    return points if isinstance(points, list) else (points - mean) / deviation


def _name(function: KernelFunction, parameters: dict[str, Any], label: str) -> str:
    values = {_SHORT.get(key, key): f"{v:g}" if isinstance(v, float) else v for key, v in parameters.items()}
    shown = ", ".join(f"{key}={value}" for key, value in values.items())
    return f"{function.name}({shown}) on {label}" if shown else f"{function.name} on {label}"
