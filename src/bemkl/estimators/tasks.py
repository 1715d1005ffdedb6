"""Samples of several tasks, below each other or in a dict, taken apart."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import type_of_target

from bemkl.alignment import aligned_to, aligned_views
from bemkl.arrays import explained, finite_array, refuse_unread
from bemkl.distributions import Gamma
from bemkl.estimators.fitted import Fitted
from bemkl.estimators.labels import encode_labels, is_missing
from bemkl.estimators.multiclass import Labels, LabelTargets
from bemkl.estimators.posteriors import Targets
from bemkl.estimators.responses import ResponseTargets, normalised
from bemkl.estimators.sources import Source
from bemkl.kernels.views import count_samples, is_views

Parts = dict[Hashable, tuple[Any, npt.NDArray[Any]]]


@dataclass(frozen=True, slots=True, eq=False)
class FittedTask:
    """What one task keeps of a fit."""

    source: Source  # its kernels
    fitted: Fitted  # its part of the posterior
    classes: npt.NDArray[Any] | None  # its classes; None for a regression
    offset: float  # what was taken off its responses
    scale: float  # what they were divided by


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What the targets of a task say."""

    targets: Targets
    classes: npt.NDArray[Any] | None  # its classes; None for a regression
    offset: float = 0.0  # what was taken off its responses
    scale: float = 1.0  # what they were divided by


def take_rows(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Take some samples."""
    if isinstance(X, Mapping):
        return {name: take_rows(view, rows) for name, view in X.items()}
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]


def _aligned(X: Any) -> Any:
    """Bring views into one order, where they carry ids."""
    return aligned_views(X) if is_views(X) else X


def places_of_tasks(X: Any, task: Any) -> dict[Hashable, tuple[npt.NDArray[np.intp], Any]]:
    """Find the samples of each task. Shapes: task (n_samples,)."""
    (task,) = aligned_to(X, {"task": task})
    X, names = _aligned(X), _as_column("task", task)
    if names.ndim != 1 or len(names) != count_samples(X):
        raise ValueError(
            f"task: expected one task for each of the {count_samples(X)} samples, got shape {names.shape}."
        )
    rows: dict[Hashable, list[int]] = {}
    for row, name in enumerate(names.tolist()):
        if is_missing(name):
            raise ValueError(f"task: expected a task for every sample, got {name!r} in row {row}.")
        rows.setdefault(name, []).append(row)
    places = {name: np.array(found, dtype=np.intp) for name, found in rows.items()}
    return {name: (found, take_rows(X, found)) for name, found in places.items()}


def _as_column(name: str, values: Any) -> npt.NDArray[Any]:
    """Read labels or names; lists keep the types of their entries."""
    refuse_unread(name, values)
    return np.array(values, dtype=object) if isinstance(values, list | tuple) else np.asarray(values)


def split_tasks(X: Any, y: Any, task: Any) -> Parts:
    """Take the samples and targets of several tasks apart. Shapes: task (n_samples,)."""
    if task is None:
        if not isinstance(X, Mapping) or (y is not None and not isinstance(y, Mapping)):
            raise ValueError(
                "task: expected the task of each sample, or X and y as dicts from task to samples and targets."
            )
        if y is not None and set(X) != set(y):
            raise ValueError(f"y: expected the tasks of X, {list(X)}, got {list(y)}.")
        pairs = {
            name: (
                _aligned(samples),
                None if y is None else aligned_to(samples, {f"y of task {name!r}": y[name]})[0],
            )
            for name, samples in X.items()
        }
    else:
        y, task = aligned_to(X, {"y": y, "task": task})
        places = places_of_tasks(X, task)
        targets = None if y is None else _as_column("y", y)
        if targets is not None and targets.shape != (count_samples(X),):
            raise ValueError(f"y: expected one target a sample, shape {(count_samples(X),)}, got {targets.shape}.")
        pairs = {
            name: (samples, None if targets is None else targets[rows]) for name, (rows, samples) in places.items()
        }
    if not pairs:
        raise ValueError("X: expected samples of at least one task, got none.")
    return {name: _with_targets(name, *pair, needed=y is not None) for name, pair in pairs.items()}


def _with_targets(name: Hashable, samples: Any, targets: Any, *, needed: bool) -> tuple[Any, npt.NDArray[Any]]:
    """Leave out samples without a target."""
    if not needed:
        return samples, np.empty(0)
    values = _as_column("y", targets)
    if values.ndim != 1 or len(values) != count_samples(samples):
        raise ValueError(
            f"y: expected one target for each of the {count_samples(samples)} samples of task {name!r}, "
            f"got shape {values.shape}."
        )
    known = np.array([not is_missing(value) for value in values.tolist()], dtype=bool)
    if not known.any():
        raise ValueError(f"y: expected targets of task {name!r}, got none. Leave the task out.")
    kept = values[known]
    if kept.dtype == object:
        with explained("y", f"Pass one target for each sample of task {name!r}."):
            kept = np.array(kept.tolist())
    return (samples if known.all() else take_rows(samples, np.flatnonzero(known))), kept


def check_task_types(task_types: Any, tasks: Sequence[Hashable]) -> None:
    """Refuse kinds that do not exist, and kinds of tasks that do not exist."""
    by_task = isinstance(task_types, Mapping)
    unknown = [name for name in task_types if name not in tasks] if by_task else []
    if unknown:
        raise ValueError(f"task_types: names the tasks {unknown[:5]}, but the tasks are {list(tasks)[:8]}.")
    for kind in task_types.values() if by_task else [task_types]:
        if kind not in ("auto", "regression", "classification"):
            raise ValueError(f'task_types: expected "auto", "regression" or "classification", got {kind!r}.')


def refuse_other_kernels(name: Hashable, found: Sequence[str], expected: Sequence[str]) -> None:
    """Refuse a task whose kernels are not those of the first one: weights would be shared between different kernels."""
    if list(found) != list(expected):
        here, there = (", ".join(names[:4]) + (", ..." if len(names) > 4 else "") for names in (found, expected))
        raise ValueError(
            f"X: the kernels of task {name!r} are {here}; those of the first task are {there}. "
            "Give all tasks the same columns or views, in the same order."
        )


def read_targets(values: npt.NDArray[Any], kind: str, *, margin: float, noise: Gamma, normalise: bool) -> Reading:
    """Read responses or labels of a task. Shapes: values (n_samples,)."""
    if kind == "auto":
        with explained("y", "Pass a label or a number for each sample."):
            kind = "regression" if type_of_target(values).startswith("continuous") else "classification"
    if kind == "regression":
        responses, offset, scale = normalised(finite_array("y", values)[:, None], normalise=normalise)
        return Reading(ResponseTargets(responses, noise), None, float(offset[0]), float(scale[0]))
    classes, signs, _ = encode_labels("BEMKLMultiTask", values, False)
    return Reading(LabelTargets(Labels(classes, signs, False, margin), "shared"), classes)
