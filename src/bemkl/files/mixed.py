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
    """
    Samples of which some views are tables and others are matrices.

    Parameters
    ----------
    tables : dict of str to ndarray
        Columns of a table, or matrices of views.
    matrices : KernelStack
        Matrices between the samples, in rows, and the training samples, in columns.
    """

    tables: dict[str, Array] = field(repr=False)
    matrices: KernelStack = field(repr=False)

    def between(self, rows: Rows, columns: Rows) -> Mixed:
        """
        Take some samples, compared with some of the training samples.

        Parameters
        ----------
        rows : ndarray of int
            Which samples.
        columns : ndarray of int
            Which training samples.

        Returns
        -------
        Mixed
            These.
        """
        return Mixed({name: values[rows] for name, values in self.tables.items()}, self.matrices[rows][:, columns])


class MixedKernels(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """
    Kernels of a bank on tables, beside those of matrices.

    Parameters
    ----------
    bank : KernelBank
        Kernels for the tables.
    repair : KernelRepair
        What is done to the matrices.

    Attributes
    ----------
    bank_ : KernelBank
        The fitted bank.
    repair_ : KernelRepair
        The fitted repair.
    """

    def __init__(self, bank: KernelBank, repair: KernelRepair) -> None:
        self.bank = bank
        self.repair = repair

    def fit_transform(self, X: Mixed, y: Any = None) -> KernelStack:
        """
        Fit both parts, and return all kernels.

        Parameters
        ----------
        X : Mixed
            Training samples.
        y : Any
            Not used.

        Returns
        -------
        KernelStack
            The bank's kernels first.
        """
        self.bank_, self.repair_ = clone(self.bank), clone(self.repair)
        return _joined(self.bank_.fit_transform(X.tables), self.repair_.fit_transform(X.matrices))

    def fit(self, X: Mixed, y: Any = None) -> MixedKernels:
        """
        Fit both parts.

        Parameters
        ----------
        X : Mixed
            Training samples.
        y : Any
            Not used.

        Returns
        -------
        MixedKernels
            This object.
        """
        self.fit_transform(X)
        return self

    def transform(self, X: Mixed) -> KernelStack:
        """
        Return the kernels of new samples.

        Parameters
        ----------
        X : Mixed
            The samples.

        Returns
        -------
        KernelStack
            Kernels with the training samples, in the order of training.
        """
        return _joined(self.bank_.transform(X.tables), self.repair_.transform(X.matrices))


def _joined(*stacks: KernelStack) -> KernelStack:
    kernels = [
        (name, values) for stack in stacks for name, values in zip(stack.names, stack.dense().values, strict=True)
    ]
    twice = [name for name in dict(kernels) if [other for other, _ in kernels].count(name) > 1]
    if twice:
        raise InputError(f"There are two kernels called {listed(twice)}.", "Give the matrix another name.")
    return stack_kernels(dict(kernels))
