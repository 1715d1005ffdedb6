"""How posteriors are learned, as estimators see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bemkl.arrays import Array
from bemkl.estimators.fitted import Fitted
from bemkl.estimators.fitting import Effort
from bemkl.estimators.multiclass import Fits
from bemkl.estimators.sources import Rows, Source, TrainingStack
from bemkl.marginal.observed import Observed


class Targets(Protocol):
    """What was observed of the training samples, for either posterior."""

    @property
    def n_samples(self) -> int:
        """Number of samples."""

    def fits(self) -> Fits:
        """Return the fits that the mean-field posterior makes."""

    def observed(self) -> Observed:
        """Return what the marginal posterior fits at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """What was observed of one set of samples or of several tasks, and what their kernel weights have in common."""

    targets: Sequence[Targets]  # one a set
    names: tuple[str, ...] = ("fit",)  # what to call them
    sharing: str = "separate"  # "shared" weights, "pooled" ones around common ones, or "separate" ones
    alone: bool = True  # whether this is one set, which users know without a name


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Training samples as their kernels."""

    source: Source
    stack: TrainingStack
    landmarks: Rows | None  # rows that are landmarks


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What a fit brings home."""

    names: tuple[str, ...]  # name of each fit
    fitted: tuple[Fitted, ...]  # what predictions need of each
    posterior: Any  # what users see as `posterior_`
    lower_bounds: Array  # (n_iter,): bound of the evidence, or evidence, after each iteration
    converged: bool
    alike: bool  # whether all fits have the same kernel weights


class Way(Protocol):
    """A posterior with its settings, before it meets samples."""

    def learn(self, samples: Sequence[Samples], rng: np.random.Generator) -> Learned:
        """Fit to one set of training samples or several."""


class MakeWay(Protocol):
    """What is registered of a posterior."""

    def __call__(self, estimator: Any, tasks: Tasks, effort: Effort) -> Way:
        """Read an estimator's parameters, and refuse those that mean nothing."""


def joined(paths: Sequence[Array]) -> Array:
    """
    Add the bounds of separate fits: one model with independent parts, in which ended ones keep their last value.

    Shapes: paths (n_iter,).
    """
    longest = max(len(path) for path in paths)
    bounds: Array = np.sum([np.pad(path, (0, longest - len(path)), mode="edge") for path in paths], axis=0)
    return bounds
