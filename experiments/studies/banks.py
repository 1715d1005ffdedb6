"""Kernels of the studies: one Gaussian a view, or several kernels on all features and on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.kernels import KernelBank, KernelSpec, default_bank
from experiments.studies.plan import Samples, Split

TOGETHER = "all features together"
"""Name of the group of all features of a table."""
JOINED = "all columns"
"""Name of the view that has the columns of all views."""
RELATIVE_WIDTHS = (0.25, 0.5, 1.0, 2.0)
"""Widths on all features, as parts of the root of their number."""
FEATURE_WIDTHS = (0.5, 1.0, 2.0)
"""Widths on each feature, which is standardised."""


def view_bank(views: Samples) -> KernelBank:
    """
    Return one Gaussian kernel a view, as wide as the root of the number of its columns.

    That is about the distance of standardised points, the same for views of any size.

    Shapes: views (n_samples, n_columns).
    """
    specs = [
        KernelSpec("gaussian", {view: [view]}, {"width": float(np.sqrt(values.shape[1]))})
        for view, values in views.items()
    ]
    return KernelBank(specs, standardise=True, scaling="spherical")


def feature_bank(names: Sequence[str], groups: Sequence[str] | None = None) -> KernelBank:
    """Return Gaussian kernels of several widths and a linear one on all features, and Gaussian ones on each."""
    wanted = {TOGETHER, *names} if groups is None else set(groups)
    everything, each = {TOGETHER: list(names)}, {name: [name] for name in names if name in wanted}
    widths = [float(width * np.sqrt(len(names))) for width in RELATIVE_WIDTHS]
    specs = []
    if TOGETHER in wanted:
        specs += [KernelSpec("gaussian", everything, {"width": widths}), KernelSpec("linear", everything)]
    if each:
        specs.append(KernelSpec("gaussian", each, {"width": list(FEATURE_WIDTHS)}))
    # A unit diagonal in the mean: the linear kernel has to stay linear.
    return KernelBank(specs, standardise=True, scaling="trace")


def chosen_views(split: Split, settings: Mapping[str, Any]) -> Split:
    """Keep the views that a method sees, joined to one if it asks for that."""
    names = settings.get("views", list(split.X))
    here, new = ({name: X[name] for name in names} for X in (split.X, split.X_test))
    if settings.get("joined"):
        columns, columns_test = np.hstack(list(here.values())), np.hstack(list(new.values()))
        # One kernel on all columns has no way to leave some of them out: means stand in for what is missing.
        filled = np.where(np.isnan(columns_test), np.nanmean(columns, axis=0), columns_test)
        here, new = {JOINED: columns}, {JOINED: filled}
    return Split(here, split.y, new, split.y_test)


def bank_of(X: Samples, settings: Mapping[str, Any]) -> KernelBank:
    """Return the bank that a method with views asks for. Shapes: X (n_samples, n_columns)."""
    return default_bank(X) if settings["kernels"] == "default" else view_bank(X)


def computed(bank: KernelBank, split: Split) -> tuple[Array, Array]:
    """
    Compute the kernels of a split.

    Shapes: returns K (n_kernels, n_train, n_train), K_test (n_kernels, n_test, n_train).
    """
    K = np.asarray(bank.fit_transform(split.X).dense().values, dtype=np.float64)
    return K, np.asarray(bank.transform(split.X_test).dense().values, dtype=np.float64)
