"""A trial of a loaded model on two of its own basis points: what would fail in a prediction fails here."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bemkl.estimators import BEMKLClassifier, BEMKLMultiTask
from bemkl.estimators.base import BEMKLEstimator
from bemkl.estimators.fitted import Fitted
from bemkl.estimators.sources import BankSource, PrecomputedSource
from bemkl.exceptions import ModelFileError
from bemkl.kernels import DenseStack, KernelBank, KernelStack

_ROWS = 2
_MOST_WORK = 1e9
"""Variances need a Cholesky factor an output: they are left out where these take more products than this, 0.1 s."""


def try_out(parts: list[Any]) -> None:
    """Predict with every fitted estimator among the parts of a model, and describe it."""
    for part in parts:
        try:
            with np.errstate(all="ignore"):
                if isinstance(part, BEMKLEstimator) and hasattr(part, "_fitted"):
                    _try_estimator(part)
                elif isinstance(part, BEMKLMultiTask) and hasattr(part, "_fitted_tasks"):
                    _try_tasks(part)
                elif isinstance(part, KernelBank) and hasattr(part, "groups_"):
                    _kernels(part)
        except Exception as error:
            raise ModelFileError(
                f"the model was altered, a {type(part).__name__} in it cannot predict ({error!r:.200})."
            ) from None


@dataclass(frozen=True)
class _OwnPoints:
    """A source that has the kernels of a few basis points ready, whatever it is asked for."""

    kernels: KernelStack

    def blocks(self, X: Any) -> Iterator[KernelStack]:
        yield self.kernels


def _try_estimator(model: BEMKLEstimator) -> None:
    trial = copy(model)
    trial._source = _own_points(model._source)
    X: dict[str, Any] = {}
    for method in (trial.predict, trial.contributions, trial.combined_kernel):
        method(X)
    trial.summary()
    trial.weight_intervals()
    trial._check_rule()
    if isinstance(trial, BEMKLClassifier):
        trial.decision_function(X)
    if _is_cheap(model._fitted):
        _ = trial.predict_proba(X) if isinstance(trial, BEMKLClassifier) else trial.predict(X, return_std=True)


def _try_tasks(model: BEMKLMultiTask) -> None:
    trial = copy(model)
    trial._fitted_tasks = [replace(task, source=_own_points(task.source)) for task in model._fitted_tasks]
    X: dict[Any, Any] = {name: {} for name in model.tasks_}
    trial.predict(X)
    trial.weight_intervals()
    if _is_cheap([task.fitted for task in model._fitted_tasks]):
        trial.predict_std(X)
        labelled = [
            name for name, task in zip(model.tasks_, model._fitted_tasks, strict=True) if task.classes is not None
        ]
        if labelled:
            trial.predict_proba({name: {} for name in labelled})


def _own_points(source: Any) -> Any:
    if isinstance(source, BankSource):
        return _OwnPoints(_kernels(source.bank))
    assert isinstance(source, PrecomputedSource), "only these two were let through"
    n_basis = source.n_train if source.landmarks is None else len(source.landmarks)
    return _OwnPoints(KernelStack.from_dense(DenseStack(np.ones((len(source.names), _ROWS, n_basis))), source.names))


def _kernels(bank: KernelBank) -> KernelStack:
    """Compute kernels between the first basis points, which need not be read, and all of them."""
    found = []
    for group in bank.groups_:
        points, present = group.points[:_ROWS], group.present[:_ROWS]
        kernels = np.empty((len(group.members), len(present), len(group.present)))
        group.fill(kernels, points, present)
        if bank.scaling is not None:
            group.scale(kernels, group.diagonals(points, present), present)
        found.append(kernels)
    return KernelStack.from_dense(DenseStack(np.concatenate(found)), bank.kernel_names_)


def _is_cheap(fitted: Any) -> bool:
    blocks: list[Fitted] = list(fitted)
    return sum(block.n_basis**3 * block.n_outputs for block in blocks) <= _MOST_WORK
