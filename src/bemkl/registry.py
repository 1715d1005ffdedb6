"""
The one place where banks, posteriors, families of weights, likelihoods and ways with classes are entered.

An entry has a name that users or estimators choose by, and says where the function or class is. Its module may have a
dict `PARTS` of the classes of its own that fitted models hold, likelihoods or posteriors, with the shapes of their
fields as in `persistence/layout.py`: models with them can be saved and loaded. Types of the fields are annotations of
the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

# Modules are imported when a name is asked for: the command line shows these names without any of them.
BANKS = {
    "default": "bemkl.kernels.presets:default_bank",
    "paper": "bemkl.kernels.presets:paper_bank_for",
    "gaussian": "bemkl.kernels.presets:gaussian_bank",
    "laplacian": "bemkl.kernels.presets:laplacian_bank",
    "matern": "bemkl.kernels.presets:matern_bank",
    "linear": "bemkl.kernels.presets:linear_bank",
    "cosine": "bemkl.kernels.presets:cosine_bank",
    "polynomial": "bemkl.kernels.presets:polynomial_bank",
    "chi2": "bemkl.kernels.presets:chi2_bank",
    "intersection": "bemkl.kernels.presets:intersection_bank",
    "tanimoto": "bemkl.kernels.presets:tanimoto_bank",
    "hamming": "bemkl.kernels.presets:hamming_bank",
}
"""Ready-made banks: functions of the samples that they will be fitted on."""

WEIGHTS = {
    "free": "bemkl.inference.weights.newton:strategy",
    "nonnegative": "bemkl.inference.weights.nonnegative:strategy",
    "factorized": "bemkl.inference.weights.factorized:strategy",
    "spike_slab": "bemkl.inference.weights.spike_slab:strategy",
}
"""Families of posteriors of kernel weights: functions of `bold` that return a `WeightStrategy`."""

POOLED_WEIGHTS = {"pooled": "bemkl.inference.weights.pooled:Pooled"}
"""Families that weights of several blocks have around common ones: classes, which estimators choose."""

LIKELIHOODS = {
    "gaussian": "bemkl.inference.likelihoods.gaussian:Gaussian",
    "multinomial": "bemkl.inference.likelihoods.multinomial:Multinomial",
    "probit": "bemkl.inference.likelihoods.probit:Probit",
    "semi_supervised": "bemkl.inference.likelihoods.semi_supervised:SemiSupervisedProbit",
}
"""Likelihoods: classes, which estimators choose."""

MULTICLASS = {
    "shared": "bemkl.estimators.multiclass:shared",
    "ovr": "bemkl.estimators.multiclass:separate",
    "pooled": "bemkl.estimators.multiclass:pooled",
    "multinomial": "bemkl.estimators.multiclass:multinomial",
}
"""Ways with several classes: functions of `Labels` that return the `Fits` to make."""

POSTERIORS = {
    "mean_field": "bemkl.estimators.mean_field:MeanField",
    "marginal": "bemkl.estimators.marginal:Marginal",
}
"""Posteriors of the estimators: what makes a `Way` of an estimator, its targets and an effort."""

FUNCTION_PRIORS = {
    "sum": "bemkl.marginal.fit:sum_of_processes",
    "kernel": "bemkl.marginal.fit:mean_kernel",
    "samples": "bemkl.marginal.fit:independent_samples",
}
"""Priors on functions of the marginal posterior: functions of training kernels and equal weights."""


def find(parameter: str, name: Any, known: Mapping[str, str]) -> Any:
    """Return what a name stands for, or refuse it."""
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"{parameter}: expected one of {', '.join(known)}; got {name!r}.")
    module, _, attribute = known[name].partition(":")
    return getattr(import_module(module), attribute)


def registered_parts(*groups: Mapping[str, str]) -> dict[type, dict[str, str]]:
    """Return the classes that fitted models hold, with the shapes of their fields: those of some groups, or of all."""
    chosen = groups or (WEIGHTS, POOLED_WEIGHTS, LIKELIHOODS, MULTICLASS)
    return _parts_of(tuple(entry for group in chosen for entry in group.values()))


@cache
def _parts_of(entries: tuple[str, ...]) -> dict[type, dict[str, str]]:
    modules = [import_module(entry.partition(":")[0]) for entry in entries]
    return {kind: shapes for module in modules for kind, shapes in getattr(module, "PARTS", {}).items()}
