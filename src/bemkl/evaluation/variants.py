"""What a combination of views is compared with: each of them alone, all columns in one, and the mean kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bemkl.arrays import Array
from bemkl.kernels import KernelStack, stack_kernels

OURS = "all together"
"""Name of the combination itself."""
MEAN = "mean kernel"
"""Name of the model with one kernel, the mean of all."""
JOINED = "one view of all columns"
"""Name of the model that sees all columns as one view."""

Build = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """
    A model and what it sees of the samples.

    Parameters
    ----------
    name : str
        Its name in tables.
    model : estimator
        The model, not fitted.
    X : Any
        What it sees.
    """

    name: str
    model: Any = field(repr=False)
    X: Any = field(repr=False)


def variants(X: Any, build: Build, before: Sequence[Any] = ()) -> list[Variant]:
    """
    Return the combination of all kernels, and what to compare it with.

    Every variant is the same Bayesian model with the same settings, so that all scores are to be had for all. The mean
    kernel is one kernel with a weight of its own.

    Parameters
    ----------
    X : dict of str to ndarray, or KernelStack
        Columns of a table, matrices of views, or kernels between all samples.
    build : callable
        Maps samples to an estimator that suits them.
    before : sequence of transformers
        What has to be done to kernels before an estimator takes them.

    Returns
    -------
    list of Variant
        The combination first.
    """
    if isinstance(X, KernelStack):
        single = {name: X[:, :, [name]] for name in X.names} if len(X.names) > 1 else {}
        of_mean = make_pipeline(*before, FunctionTransformer(mean_kernel), build(X))
        return [
            Variant(OURS, make_pipeline(*before, build(X)), X),
            *(Variant(f"only {name}", make_pipeline(*before, build(one)), one) for name, one in single.items()),
            *([Variant(MEAN, of_mean, X)] if single else []),
        ]
    if hasattr(X, "between"):
        return _mixed_variants(X, build, before)
    found = [Variant(OURS, build(X), X)]
    views = any(np.ndim(view) == 2 for view in X.values())
    if views and len(X) > 1:
        found += [Variant(f"only {name}", build({name: view}), {name: view}) for name, view in X.items()]
        if not any(np.isnan(view).any() for view in X.values()):
            joined = {JOINED: np.hstack(list(X.values()))}
            found.append(Variant(JOINED, build(joined), joined))
    combined = build(X)
    bank, alone = combined.kernels, combined.set_params(kernels="precomputed")
    return [*found, Variant(MEAN, make_pipeline(bank, FunctionTransformer(mean_kernel), alone), X)]


def _mixed_variants(X: Any, build: Build, before: Sequence[Any]) -> list[Variant]:
    """Return the variants of tables and matrices: all, the tables, the matrices, and the mean of all kernels."""
    tables, (step,) = build(X.tables), before
    matrices = make_pipeline(step.repair, build(X.matrices))
    of_mean = make_pipeline(step, FunctionTransformer(mean_kernel), build(X))
    return [
        Variant(OURS, make_pipeline(step, build(X)), X),
        Variant("only tables", tables, X.tables),
        Variant("only matrices", matrices, X.matrices),
        Variant(MEAN, of_mean, X),
    ]


def mean_kernel(stack: KernelStack) -> KernelStack:
    """Return the mean of several kernels as a stack of one."""
    mean: Array = np.mean(stack.dense().values, axis=0)
    return stack_kernels({MEAN: mean})
