"""
What the parts of a fitted model look like: the shapes that have to fit one another, and the fields of plain classes.

Types of fields are read from data classes themselves. A shape names the axes of an array, or the length of a list, or
the size of a symmetric matrix. Capital letters mean the same all over a model: P kernels, N training samples, D basis
points, L outputs of a block, O outputs of all fits. What such a letter is in one item of a list may be something else
in the next one, unless it was known before. Small letters mean the same within one object. A bound such as "> 0" may
follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.distributions import Gamma, PointMass, Precision
from bemkl.estimators import BEMKLClassifier, BEMKLMultiTask
from bemkl.estimators.base import BEMKLEstimator
from bemkl.estimators.sources import BankSource, PrecomputedSource, Source
from bemkl.estimators.tasks import FittedTask
from bemkl.files import KernelRepair, MixedKernels, Recipe
from bemkl.inference import (
    BlockPosterior,
    FittedBlock,
    Gaussian,
    Multinomial,
    Posterior,
    Probit,
    SemiSupervisedProbit,
)
from bemkl.inference.matrices import Dense, LowRank
from bemkl.inference.moments import JointCovariance, Marginals, SpikesAndSlabs, TruncatedNormals, WeightMoments
from bemkl.inference.pair import SampleWeights
from bemkl.inference.protocols import Likelihood, WeightPosterior
from bemkl.inference.weights.free import FreeWeights
from bemkl.inference.weights.pooled import PooledWeights
from bemkl.inference.weights.spike_slab import SpikeSlabWeights
from bemkl.kernels import KernelBank
from bemkl.kernels.groups import FittedGroup
from bemkl.kernels.scaling import Centred, Divided, Scaling, Spherical

Whole = npt.NDArray[np.intp]

PLUG_INS: dict[Any, tuple[type, ...]] = {
    Precision: (Gamma, PointMass),
    Likelihood: (Gaussian, Multinomial, Probit),
    Marginals: (SpikesAndSlabs, TruncatedNormals),
    Scaling: (Centred, Divided, Spherical),
    Source: (BankSource, PrecomputedSource),
    WeightPosterior: (FreeWeights, PooledWeights, SpikeSlabWeights),
}
"""What stands in fields whose type is a protocol."""

_COMMON: dict[str, Any] = {
    "kernel_names_": list[str],
    "kernel_weights_": Array,
    "kernel_weights_std_": Array,
    "posterior_": Posterior | tuple[Posterior, ...],
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
        "_fitted": tuple[FittedBlock, ...],
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
    Gaussian: {"_target": Array, "_prior": Gamma},
    Multinomial: {"_label": Whole, "_n_classes": int},
    Probit: {"_sign": Array, "margin": float},
    SemiSupervisedProbit: {"unlabeled_margin": float},
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
    Gaussian: {"_target": "L n"},
    Multinomial: {"_label": "n >= 0"},
    Probit: {"_sign": "L n"},
    JointCovariance: {"biases": "b b", "cross": "P b", "kernels": "P P"},
    SpikeSlabWeights: {
        "inclusion": "P >= 0",
        "slab_mean": "t P",
        "slab_variance": "t P >= 0",
        "off_variance": "t P >= 0",
        "bias": "b",
        "bias_variance": "b >= 0",
    },
}
"""Shapes and bounds by class and field."""
