"""What a loader gives back: a table or views with their responses, or matrices that somebody published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, whole_number

Kind = Literal["binary", "multiclass", "multilabel", "regression"]


@dataclass(frozen=True, slots=True, eq=False)
class DataSet:
    """
    A data set: samples, responses, names, and where they came from.

    Parameters
    ----------
    name : str
        Name in the catalogue.
    X : ndarray of shape (n_samples, n_features), or dict of these
        The samples: one table, or a view each. A sample that lacks a view has a row of NaN there.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Labels or responses; NaN where a response is missing.
    feature_names : tuple of str, or dict of these
        Names of the columns, for each view where there are views.
    target_names : tuple of str
        Names of the classes in the order of the labels, or of the columns of y; empty where no names are known.
    train : ndarray of bool of shape (n_splits, n_samples), or None
        The training samples of each predefined split; None if there is no such split.
    kind : "binary", "multiclass", "multilabel" or "regression"
        What there is to predict.
    checksum : str
        Digest of the values, whatever the order of the rows and the source.
    source : str
        Where the values were found.
    licence : str
        Terms of the data, as far as they are known.
    citation : str
        Whom to cite.
    """

    name: str
    X: Array | dict[str, Array] = field(repr=False)
    y: npt.NDArray[Any] = field(repr=False)
    feature_names: tuple[str, ...] | dict[str, tuple[str, ...]] = field(repr=False)
    target_names: tuple[str, ...] = field(repr=False)
    train: npt.NDArray[np.bool_] | None = field(repr=False)
    kind: Kind
    checksum: str
    source: str
    licence: str
    citation: str


@dataclass(frozen=True, slots=True, eq=False)
class MatrixSplit:
    """
    Matrices of one split, in the blocks that a fit and its predictions take.

    Parameters
    ----------
    train : dict of ndarray of shape (n_train, n_train)
        Between the training samples, by view.
    test : dict of ndarray of shape (n_test, n_train)
        Between the test samples and the training samples, by view.
    y_train : ndarray of shape (n_train,)
        Labels of the training samples.
    y_test : ndarray of shape (n_test,)
        Labels of the test samples.
    """

    train: dict[str, npt.NDArray[Any]] = field(repr=False)
    test: dict[str, npt.NDArray[Any]] = field(repr=False)
    y_train: npt.NDArray[Any] = field(repr=False)
    y_test: npt.NDArray[Any] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class MatrixSet:
    """
    Published matrices between all samples, with the splits of their authors.

    Parameters
    ----------
    name : str
        Name in the catalogue.
    matrices : dict of ndarray of shape (n_samples, n_samples)
        One matrix a view, in the precision of the file.
    distances : bool
        Whether the matrices are distances; if not, they are kernels.
    y : ndarray of shape (n_samples,)
        Labels.
    train : ndarray of bool of shape (n_splits, n_samples)
        The training samples of each split.
    test : ndarray of bool of shape (n_splits, n_samples)
        The test samples of each split.
    checksum : str
        Digest of the values in their order.
    source : str
        Where the values were found.
    licence : str
        Terms of the data, as far as they are known.
    citation : str
        Whom to cite.
    """

    name: str
    matrices: dict[str, npt.NDArray[Any]] = field(repr=False)
    distances: bool
    y: npt.NDArray[Any] = field(repr=False)
    train: npt.NDArray[np.bool_] = field(repr=False)
    test: npt.NDArray[np.bool_] = field(repr=False)
    checksum: str
    source: str
    licence: str
    citation: str

    def split(self, index: int) -> MatrixSplit:
        """
        Cut the blocks of one split.

        Parameters
        ----------
        index : int
            Number of the split, from 0.

        Returns
        -------
        MatrixSplit
            Its blocks and labels.
        """
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
    """
    Published kernel matrices that differ from split to split, because each split has samples of its own.

    Parameters
    ----------
    name : str
        Name in the catalogue.
    splits : dict of MatrixSplit
        Blocks and labels of each split, by the name that its authors gave it.
    distances : bool
        Whether the matrices are distances; if not, they are kernels.
    checksum : str
        Digest of the values in their order.
    source : str
        Where the values were found.
    licence : str
        Terms of the data, as far as they are known.
    citation : str
        Whom to cite.
    """

    name: str
    splits: dict[str, MatrixSplit] = field(repr=False)
    distances: bool
    checksum: str
    source: str
    licence: str
    citation: str

    def split(self, index: int) -> MatrixSplit:
        """
        Give the blocks of one split.

        Parameters
        ----------
        index : int
            Number of the split, from 0.

        Returns
        -------
        MatrixSplit
            Its blocks and labels.
        """
        return list(self.splits.values())[_position(index, len(self.splits))]


def _position(index: int, n_splits: int) -> int:
    position = whole_number("index", index, least=0)
    if position >= n_splits:
        raise ValueError(f"index: expected a number below {n_splits}, the number of splits, got {index!r}.")
    return position
