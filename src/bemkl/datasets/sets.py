"""What a loader gives back, a table or views with their responses, or raises."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array

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


class DatasetNotFound(LookupError):  # noqa: N818 - the name says what happened, and callers read it in a sentence
    """No source has the data set; the message says what happened to each of them."""


class SourceUnavailable(Exception):  # noqa: N818 - caught inside the package, where the next source is tried
    """One source does not have the data set; the message says why."""
