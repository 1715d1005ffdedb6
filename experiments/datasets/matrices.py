"""Matrices that somebody published, and the blocks of them that a fit and its predictions take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import whole_number

_Matrix = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class MatrixSplit:
    """Matrices of one split by view, and labels."""

    train: dict[str, _Matrix] = field(repr=False)  # (n_train, n_train)
    test: dict[str, _Matrix] = field(repr=False)  # (n_test, n_train)
    y_train: _Matrix = field(repr=False)  # (n_train,)
    y_test: _Matrix = field(repr=False)  # (n_test,)


@dataclass(frozen=True, slots=True, eq=False)
class MatrixSet:
    """Distances between all samples, with the splits of their authors."""

    matrices: dict[str, _Matrix] = field(repr=False)  # (n_samples, n_samples), by view, in the precision of the file
    y: _Matrix = field(repr=False)  # (n_samples,): labels
    train: npt.NDArray[np.bool_] = field(repr=False)  # (n_splits, n_samples): the training samples of each split
    test: npt.NDArray[np.bool_] = field(repr=False)  # (n_splits, n_samples): the test samples of each split
    checksum: str  # digest of the values in their order

    def split(self, index: int) -> MatrixSplit:
        """Cut the blocks of one split."""
        position = _position(index, len(self.train))
        train, test = np.flatnonzero(self.train[position]), np.flatnonzero(self.test[position])
        return MatrixSplit(
            {view: matrix[np.ix_(train, train)] for view, matrix in self.matrices.items()},
            {view: matrix[np.ix_(test, train)] for view, matrix in self.matrices.items()},
            self.y[train],
            self.y[test],
        )


@dataclass(frozen=True, slots=True, eq=False)
class SplitMatrixSet:
    """Kernels that differ from split to split, because each split has samples of its own."""

    splits: dict[str, MatrixSplit] = field(repr=False)  # by the names that their authors gave them
    checksum: str  # digest of the values in their order

    def split(self, index: int) -> MatrixSplit:
        """Give the blocks of one split."""
        return list(self.splits.values())[_position(index, len(self.splits))]


def _position(index: int, n_splits: int) -> int:
    position = whole_number("index", index, least=0)
    if position >= n_splits:
        raise ValueError(f"index: expected a number below {n_splits}, the number of splits, got {index!r}.")
    return position
