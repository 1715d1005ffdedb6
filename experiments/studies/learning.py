"""What our models of all studies have in common: the choice of the deviation, and what the weights say of the views."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.estimators import shared_kernels
from bemkl.exceptions import ConvergenceWarning
from bemkl.inference import State
from experiments.studies.plan import Rows, Samples

DEVIATIONS = (0.1, 0.3, 1.0)
"""Deviations of the intermediate outputs to choose from: that of the paper's program, its text, and one between."""
FOLDS = 3
"""Folds of the training samples for that choice."""
FOLD_ITERATIONS = 50
"""Most iterations of a fit on folds: which deviation is best does not need the last digits of the bound."""
_DRAWS = 10_000


def choose_deviation(log_density: Callable[[float, Rows, Rows], float], folds: Sequence[tuple[Rows, Rows]]) -> float:
    """Choose the deviation of the intermediate outputs on folds of the training samples."""
    # The kernels of a fold do not depend on the deviation.
    with shared_kernels(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = [np.mean([log_density(deviation, *fold) for fold in folds]) for deviation in DEVIATIONS]
    return DEVIATIONS[int(np.argmax(means))]


def describe_views(model: Any, X: Samples | None) -> dict[str, Any]:
    """
    Return what the posterior of the kernel weights says of each view.

    The weight of a view is the sum of the weights of its kernels, all of which have a unit diagonal; its deviation
    takes the covariances into account.

    Shapes: X (n_samples, n_columns).
    """
    state: State = model.posterior_
    moments = state.weights.moments(0)
    names = [name.rpartition(" on ")[2] for name in model.kernel_names_]
    views = list(dict.fromkeys(names))
    sums = np.array([[float(name == view) for name in names] for view in views])
    mean, covariance = sums @ moments.mean, sums @ np.asarray(moments.covariance) @ sums.T
    described = {
        "views": views,
        "weights": _rounded(mean),
        "deviations": _rounded(np.sqrt(np.diagonal(covariance))),
        "largest": _rounded(_probability_largest(mean, covariance)),
    }
    if X is not None:
        described["shares"] = _rounded(_shares(model.contributions(X), sums))
    return described


def _probability_largest(mean: Array, covariance: Array) -> Array:
    """Return how often each weight is the largest among draws from the posterior, shape (n_views,)."""
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance, size=_DRAWS, method="eigh")
    largest: Array = np.bincount(draws.argmax(axis=1), minlength=len(mean)) / _DRAWS
    return largest


def _shares(contributions: Array, sums: Array) -> Array:
    """Return deviations of the views' contributions over the samples as parts of their sum, shape (n_views,)."""
    # contributions: samples, kernels and, where there are several, outputs
    table = contributions.reshape(*contributions.shape[:2], -1)
    deviations = np.einsum("vm,nmo->nvo", sums, table).std(axis=0).mean(axis=1)
    shares: Array = deviations / max(deviations.sum(), np.finfo(np.float64).tiny)
    return shares


def _rounded(values: Array) -> list[float]:
    return [float(f"{value:.5g}") for value in values]
