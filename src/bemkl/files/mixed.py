"""Tables and matrices of the same samples, and the kernels that they become together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone

from bemkl.arrays import Array
from bemkl.files.problems import InputError, listed
from bemkl.files.repairs import KernelRepair
from bemkl.kernels import KernelBank, KernelStack, stack_kernels

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """Samples of which some views are tables and others are matrices."""

    tables: dict[str, Array] = field(repr=False)  # columns of a table, or matrices of views
    # matrices between the samples, in rows, and the training samples, in columns
    matrices: KernelStack = field(repr=False)

    def between(self, rows: Rows, columns: Rows) -> Mixed:
        """Take some samples, compared with some of the training samples."""
        return Mixed({name: values[rows] for name, values in self.tables.items()}, self.matrices[rows][:, columns])


class MixedKernels(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Kernels of a bank on tables, beside those of matrices."""

    def __init__(self, bank: KernelBank, repair: KernelRepair) -> None:
        self.bank = bank
        self.repair = repair

    def fit_transform(self, X: Mixed, y: Any = None) -> KernelStack:
        """Fit both parts, and return all kernels."""
        self.bank_, self.repair_ = clone(self.bank), clone(self.repair)
        return _joined(self.bank_.fit_transform(X.tables), self.repair_.fit_transform(X.matrices))

    def fit(self, X: Mixed, y: Any = None) -> MixedKernels:
        """Fit both parts."""
        self.fit_transform(X)
        return self

    def transform(self, X: Mixed) -> KernelStack:
        """Return the kernels of new samples."""
        return _joined(self.bank_.transform(X.tables), self.repair_.transform(X.matrices))


def _joined(*stacks: KernelStack) -> KernelStack:
    kernels = [
        (name, values) for stack in stacks for name, values in zip(stack.names, stack.dense().values, strict=True)
    ]
    twice = [name for name in dict(kernels) if [other for other, _ in kernels].count(name) > 1]
    if twice:
        raise InputError(f"There are two kernels called {listed(twice)}.", "Give the matrix another name.")
    return stack_kernels(dict(kernels))
