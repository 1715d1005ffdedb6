"""
What the parts of a fitted model look like: shapes and fields that have to fit one another, and what plain classes hold.

Types of fields are read from data classes themselves. A shape names the axes of an array, or the length of a list, or
the size of a symmetric matrix. Capital letters mean the same all over a model: P kernels, N training samples, D basis
points, L outputs of a block, O outputs of all fits. What such a letter is in one item of a list may be something else
in the next one, unless it was known before. Small letters mean the same within one object. A bound such as "> 0" may
follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.distributions import Gamma, PointMass, Precision
from bemkl.estimators import BEMKLClassifier, BEMKLMultiTask
from bemkl.estimators.base import BEMKLEstimator
from bemkl.estimators.fitted import Fitted
from bemkl.estimators.sources import BankSource, PrecomputedSource, Source
from bemkl.estimators.tasks import FittedTask
from bemkl.files import KernelRepair, MixedKernels, Recipe
from bemkl.inference import BlockPosterior, FittedBlock, Posterior
from bemkl.inference.matrices import Dense, LowRank
from bemkl.inference.moments import JointCovariance, Marginals, SpikesAndSlabs, TruncatedNormals, WeightMoments
from bemkl.inference.pair import SampleWeights
from bemkl.inference.protocols import Likelihood, WeightPosterior
from bemkl.kernels import KernelBank
from bemkl.kernels.groups import FittedGroup
from bemkl.kernels.scaling import Centred, Divided, Scaling, Spherical
from bemkl.kernels.specs import NAMED, KernelFunction, find_kernel
from bemkl.marginal.fitted import FittedProcess, MarginalPosterior
from bemkl.marginal.functions import FeaturePredictor, FullPredictor, Predictor
from bemkl.marginal.outputs import Classes, Labels, Output, Responses
from bemkl.marginal.relevance import Losses
from bemkl.registry import LIKELIHOODS, MULTICLASS, POOLED_WEIGHTS, WEIGHTS

Whole = npt.NDArray[np.intp]

PLUG_INS: dict[Any, tuple[type, ...]] = {
    Output: (Responses, Labels, Classes),
    Precision: (Gamma, PointMass),
    Predictor: (FeaturePredictor, FullPredictor),
    Fitted: (FittedBlock, FittedProcess),
    Marginals: (SpikesAndSlabs, TruncatedNormals),
    Scaling: (Centred, Divided, Spherical),
    Source: (BankSource, PrecomputedSource),
}
"""What stands in fields whose type is a protocol."""

REGISTERED: dict[Any, tuple[Mapping[str, str], ...]] = {
    Likelihood: (LIKELIHOODS, MULTICLASS),
    Marginals: (WEIGHTS,),
    Precision: (MULTICLASS,),
    WeightPosterior: (WEIGHTS, POOLED_WEIGHTS),
}
"""What may stand in such fields besides: classes of the modules that are registered in some groups."""

_COMMON: dict[str, Any] = {
    "kernel_names_": list[str],
    "kernel_weights_": Array,
    "kernel_weights_std_": Array,
    "posterior_": Posterior | MarginalPosterior | tuple[Posterior, ...] | tuple[MarginalPosterior, ...],
    "n_iter_": int,
    "converged_": bool,
    "lower_bound_": float,
}
FITTED: dict[type, dict[str, Any]] = {
    BEMKLEstimator: _COMMON
    | {
        "dual_coef_": Array,
        "intercept_": Array,
        "_source": Source,
        "_fitted": tuple[Fitted, ...],
        "_labels": tuple[str, ...],
        "_offset": Array,
        "_scale": Array,
        "_single": bool,
        "landmarks_": Whole | None,
        "selected_kernels_": Whole,
        "lower_bounds_": Array,
        "n_features_in_": int,
    },
    BEMKLClassifier: {"classes_": npt.NDArray[Any], "_several": bool},
    BEMKLMultiTask: _COMMON | {"tasks_": list[Any], "_fitted_tasks": list[FittedTask]},
    KernelBank: {"groups_": list[FittedGroup], "kernel_names_": list[str], "n_features_in_": int},
    KernelRepair: {"scales_": dict[str, float], "negative_": dict[str, Array]},
    MixedKernels: {"bank_": KernelBank, "repair_": KernelRepair},
}
"""Attributes that a fit gives to estimators; all of them are there, or none."""

OPTIONAL: dict[type, dict[str, Any]] = {
    BEMKLEstimator: {"kernel_inclusion_": Array, "feature_names_in_": npt.NDArray[Any], "files_": Recipe},
    KernelBank: {"feature_names_in_": npt.NDArray[Any], "_basis_ids": list[str]},
}
"""Attributes that some fits give to them."""

PLAIN: dict[type, dict[str, Any]] = {
    Gamma: {"shape": Array, "scale": Array},
}
"""Fields of classes that do not say themselves, or say less than what is there once they are made."""

APART: tuple[type, ...] = (Recipe,)
"""Parts whose capital letters have a meaning of their own: a bank beside matrices has fewer kernels than the model."""

SHAPES: dict[type, dict[str, str]] = {
    BEMKLEstimator: {
        "_fitted": "f",
        "_labels": "f",
        "_offset": "O",
        "_scale": "O",
        "kernel_names_": "P",
        "dual_coef_": "D o",
        "intercept_": "o",
        "selected_kernels_": "s",
        "lower_bounds_": "i",
    },
    BEMKLClassifier: {"classes_": "c"},
    BEMKLMultiTask: {"kernel_names_": "P", "tasks_": "t", "_fitted_tasks": "t"},
    PrecomputedSource: {"names": "P", "landmarks": "D"},
    KernelBank: {"kernel_names_": "P", "feature_names_in_": "f"},
    FittedGroup: {"columns": "c", "positions": "c", "members": "m", "scalings": "m", "present": "D >= 0"},
    Spherical: {"diagonal": "D >= 0"},
    Centred: {"column_means": "D", "present": "D"},
    FittedBlock: {"gram": "D D", "deviation": "L P >= 0"},
    FittedProcess: {"signal": "L P >= 0", "diagonal": "P >= 0", "own_root": "D D", "varying": "P"},
    MarginalPosterior: {
        "weights": "P > 0",
        "design": "P e",
        "covariance": "e e",
        "steps": "r q",
        "sizes": "P > 0",
    },
    Losses: {"evidence": "g", "loss": "g", "loss_deviation": "g >= 0", "probability": "g >= 0"},
    FullPredictor: {"dual": "D u", "intercept": "u", "triangle": "D D", "root": "D >= 0"},
    FeaturePredictor: {"dual": "D u", "intercept": "u", "features": "D D", "triangle": "f f"},
    Responses: {"noise": "L >= 0", "stretch": "L > 0"},
    Labels: {"shift": "L", "slope": "L > 0"},
    Classes: {"share": "L > 0"},
    WeightMoments: {"mean": "P", "covariance": "P P", "bias": "L", "bias_variance": "L >= 0", "cross": "P L"},
    Dense: {"values": "n n"},
    LowRank: {"main": "n", "factor": "n r", "core": "r"},
    SpikesAndSlabs: {"inclusion": "P >= 0", "mean": "P", "deviation": "P > 0"},
    TruncatedNormals: {"location": "P", "deviation": "P > 0"},
    BlockPosterior: {
        "sample_precision": "L D",
        "intermediate_precision": "L",
        "noise_precision": "L",
        "location": "L N",
    },
    SampleWeights: {
        "mean": "L D",
        "variance": "L D >= 0",
        "logdet": "L",
        "trace": "L",
        "diagonal": "L D > 0",
        "scale": "L >= 0",
    },
    JointCovariance: {"biases": "b b", "cross": "P b", "kernels": "P P"},
}
"""Shapes and bounds by class and field."""


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
    outputs, one = sum(fitted.n_outputs for fitted in model._fitted), len(model._fitted) == 1
    kernels = len(model.kernel_names_)
    by_kernel = [model.kernel_weights_, model.kernel_weights_std_, getattr(model, "kernel_inclusion_", None)]
    shape = (kernels,) if one else (len(model._fitted), kernels)
    return (
        outputs == len(model._scale)
        and (outputs == 1 or not model._single)
        and all(values is None or values.shape == shape for values in by_kernel)
        and _basis_size(model._source) == model._fitted[0].n_basis
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
    outputs = task.fitted.n_outputs
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
        and all(_basis_size(task.source) == task.fitted.n_basis for task in model._fitted_tasks)
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
    FittedProcess: lambda fitted: sum(len(part.intercept) for part in fitted.predictors) == fitted.n_outputs,
    MarginalPosterior: lambda posterior: posterior.steps.shape[1] == 1 + posterior.design.shape[1],
    FeaturePredictor: lambda predictor: len(predictor.triangle) == len(predictor.features) + 1,
    FittedBlock: lambda block: block.likelihood.n_samples == 0 and block.likelihood.n_outputs == block.n_outputs,
    FittedTask: _task_fits,
    WeightMoments: lambda moments: moments.marginals is None or callable(moments.marginals.quantile),
    BEMKLEstimator: _estimator_fits,
    BEMKLClassifier: _classes_fit,
    BEMKLMultiTask: _tasks_fit,
}
"""What has to hold of the objects of a class, once their fields have the right types and shapes."""
