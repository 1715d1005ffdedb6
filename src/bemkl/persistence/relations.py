"""What fields of one object have to say about one another, beyond their types and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bemkl.estimators import BEMKLClassifier, BEMKLMultiTask
from bemkl.estimators.base import BEMKLEstimator
from bemkl.estimators.sources import BankSource, PrecomputedSource, Source
from bemkl.estimators.tasks import FittedTask
from bemkl.inference import FittedBlock
from bemkl.kernels import KernelBank
from bemkl.kernels.groups import FittedGroup
from bemkl.kernels.specs import NAMED, KernelFunction, find_kernel


def _function_is_known(function: KernelFunction) -> bool:
    """Names stand for the functions of the registry; other functions stand for themselves."""
    by_name = NAMED.get(function.name) == function
    return by_name or (not isinstance(function.matrix, type | np.ufunc) and function in _alike(function))


def _alike(function: KernelFunction) -> list[KernelFunction]:
    """Return what the registry makes of the same function, or of the same name."""
    found = [find_kernel(function.matrix)]
    try:
        return [*found, find_kernel(function.name)]
    except ValueError:
        return found


def _group_fits(group: FittedGroup) -> bool:
    points, size = group.points, len(group.present)
    if isinstance(points, list):
        fits = all(isinstance(point, str) for point in points) and len(points) == size and group.width == 0
    else:
        fits = _are_numbers(points, (size, group.width)) and group.width > 0
    moments = [_are_numbers(values, (), (group.width,)) for values in (group.mean, group.deviation)]
    return fits and all(moments) and bool(np.all(np.asarray(group.deviation) > 0.0)) and min(group.positions) >= 0


def _are_numbers(values: Any, *shapes: tuple[int, ...]) -> bool:
    """Tell finite numbers in an array of one of some shapes, or one number, from everything else."""
    if not isinstance(values, float | int | np.number | np.ndarray) or isinstance(values, bool):
        return False
    array = np.asarray(values)
    return array.shape in shapes and array.dtype.kind in "fiu" and bool(np.isfinite(array).all())


def _bank_fits(bank: KernelBank) -> bool:
    if not hasattr(bank, "groups_"):
        return True
    groups, names = bank.groups_, getattr(bank, "feature_names_in_", None)
    return (
        len(groups) > 0
        and sum(len(group.members) for group in groups) == len(bank.kernel_names_)
        and len({len(group.present) for group in groups}) == 1
        and all((group.scalings is None) == (bank.scaling is None) for group in groups)
        and all(max(group.positions) < bank.n_features_in_ for group in groups)
        and (bank._basis_ids is None or len(bank._basis_ids) == len(groups[0].present))
        and (names is None or (len(set(names)) == bank.n_features_in_ and all(isinstance(name, str) for name in names)))
    )


def _estimator_fits(model: BEMKLEstimator) -> bool:
    if not hasattr(model, "_fitted"):
        return True
    outputs, one = sum(len(fitted.weights.bias) for fitted in model._fitted), len(model._fitted) == 1
    kernels = len(model.kernel_names_)
    by_kernel = [model.kernel_weights_, model.kernel_weights_std_, getattr(model, "kernel_inclusion_", None)]
    shape = (kernels,) if one else (len(model._fitted), kernels)
    return (
        outputs == len(model._scale)
        and (outputs == 1 or not model._single)
        and all(values is None or values.shape == shape for values in by_kernel)
        and _basis_size(model._source) == len(model._fitted[0].gram)
        and _features_fit(model)
        and bool(np.isin(model.selected_kernels_, np.arange(kernels)).all())
    )


def _features_fit(model: BEMKLEstimator) -> bool:
    """Model and bank have seen the same samples."""
    if not isinstance(model._source, BankSource):
        return model._precomputed
    bank = model._source.bank
    names, of_bank = getattr(model, "feature_names_in_", None), getattr(bank, "feature_names_in_", None)
    same = names is None or (of_bank is not None and names.tolist() == of_bank.tolist())
    return same and model.n_features_in_ == bank.n_features_in_ and not model._precomputed


def _classes_fit(model: BEMKLClassifier) -> bool:
    if not hasattr(model, "classes_"):
        return True
    outputs = len(model._scale)
    expected = outputs if model._several else max(2, outputs)
    # Dates are plain in an array of their own type, whatever Python makes of them.
    classes = model.classes_
    return len(classes) == expected and (classes.dtype.kind in "mM" or all(map(is_plain_name, classes.tolist())))


def _task_fits(task: FittedTask) -> bool:
    outputs = len(task.fitted.weights.bias)
    fits = outputs == 1 if task.classes is None else len(task.classes) == max(2, outputs)
    return fits and task.classes.ndim == 1 if task.classes is not None else fits


def _tasks_fit(model: BEMKLMultiTask) -> bool:
    if not hasattr(model, "_fitted_tasks"):
        return True
    one = model.kernel_weights_.ndim == 1
    shape = (len(model.kernel_names_),) if one else (len(model.tasks_), len(model.kernel_names_))
    return (
        len(model.tasks_) > 0
        and model.kernel_weights_.shape == model.kernel_weights_std_.shape == shape
        and all(_basis_size(task.source) == len(task.fitted.gram) for task in model._fitted_tasks)
        and all(map(is_plain_name, model.tasks_))
        and len(set(model.tasks_)) == len(model.tasks_)
    )


def is_plain_name(name: Any) -> bool:
    """Tell names of tasks that a file can hold from others."""
    if isinstance(name, tuple):
        return all(map(is_plain_name, name))
    return name is None or isinstance(name, str | int | float | np.generic)


def _basis_size(source: Source) -> int:
    if isinstance(source, BankSource):
        return len(source.bank.groups_[0].present)
    assert isinstance(source, PrecomputedSource), "only these two are let through"
    return source.n_train if source.landmarks is None else len(source.landmarks)


def _source_fits(source: PrecomputedSource) -> bool:
    rows, ids = source.landmarks, source.basis_ids
    sizes = {source.n_train} if rows is None else {source.n_train, len(rows)}
    fits = ids is None or len(ids) in sizes
    return fits and (rows is None or (rows.min() >= 0 and rows.max() < source.n_train))


RELATIONS: dict[type, Callable[[Any], Any]] = {
    KernelFunction: _function_is_known,
    FittedGroup: _group_fits,
    KernelBank: _bank_fits,
    BankSource: lambda source: hasattr(source.bank, "groups_"),
    PrecomputedSource: _source_fits,
    FittedBlock: lambda block: block.likelihood.n_samples == 0 and block.likelihood.n_outputs == block.n_outputs,
    FittedTask: _task_fits,
    BEMKLEstimator: _estimator_fits,
    BEMKLClassifier: _classes_fit,
    BEMKLMultiTask: _tasks_fit,
}
"""What has to hold of the objects of a class, once their fields have the right types and shapes."""
