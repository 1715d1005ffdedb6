"""Samples of several tasks, below each other or in a dict, taken apart."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.kernels.views import count_samples

Parts = dict[Hashable, tuple[Any, npt.NDArray[Any]]]


def take_rows(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    """
    Take some samples.

    Parameters
    ----------
    X : array_like, data frame, sparse matrix or dict of these
        The samples.
    rows : ndarray of int
        Which ones.

    Returns
    -------
    Any
        The samples, in the form of X.
    """
    if isinstance(X, Mapping):
        return {name: take_rows(view, rows) for name, view in X.items()}
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]


def split_tasks(X: Any, y: Any, task: Any) -> Parts:
    """
    Take the samples and targets of several tasks apart.

    Parameters
    ----------
    X : array_like, data frame, dict of views, or dict of tasks
        Samples.
    y : array_like, dict of tasks or None
        Targets; samples without one are left out. None if there are none to read.
    task : array_like of shape (n_samples,) or None
        Task of each sample; None if X is a dict of tasks.

    Returns
    -------
    dict from task to (samples, targets)
        The parts, tasks in the order in which they come.

    Examples
    --------
    >>> import numpy as np
    >>> parts = split_tasks(np.arange(6.0).reshape(3, 2), [1.0, np.nan, 3.0], ["a", "a", "b"])
    >>> {name: (len(samples), targets.tolist()) for name, (samples, targets) in parts.items()}
    {'a': (1, [1.0]), 'b': (1, [3.0])}
    """
    if task is None:
        if not isinstance(X, Mapping) or (y is not None and not isinstance(y, Mapping)):
            raise ValueError(
                "task: expected the task of each sample, or X and y as dicts from task to samples and targets."
            )
        if y is not None and set(X) != set(y):
            raise ValueError(f"y: expected the tasks of X, {list(X)}, got {list(y)}.")
        pairs = {name: (X[name], None if y is None else y[name]) for name in X}
    else:
        names = np.asarray(task)
        if names.ndim != 1 or len(names) != count_samples(X):
            raise ValueError(
                f"task: expected one task for each of the {count_samples(X)} samples, got shape {names.shape}."
            )
        targets = None if y is None else np.asarray(y)
        if targets is not None and targets.shape != names.shape:
            raise ValueError(f"y: expected one target a sample, shape {names.shape}, got {targets.shape}.")
        pairs = {}
        for name in dict.fromkeys(names.tolist()):
            rows = np.flatnonzero(names == name)
            pairs[name] = take_rows(X, rows), None if targets is None else targets[rows]
    if not pairs:
        raise ValueError("X: expected samples of at least one task, got none.")
    return {name: _with_targets(name, *pair, needed=y is not None) for name, pair in pairs.items()}


def _with_targets(name: Hashable, samples: Any, targets: Any, *, needed: bool) -> tuple[Any, npt.NDArray[Any]]:
    """Leave out samples without a target."""
    if not needed:
        return samples, np.empty(0)
    values = np.asarray(targets)
    if values.ndim != 1 or len(values) != count_samples(samples):
        raise ValueError(
            f"y: expected one target for each of the {count_samples(samples)} samples of task {name!r}, "
            f"got shape {values.shape}."
        )
    known = np.array([value is not None and value == value for value in values.tolist()], dtype=bool)
    kept = values[known]
    if kept.dtype == object:
        kept = np.array(kept.tolist())
    return (samples if known.all() else take_rows(samples, np.flatnonzero(known))), kept
