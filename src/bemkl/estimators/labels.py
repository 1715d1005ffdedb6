"""Labels of a classifier: from any kind to signs, and from signs to probabilities and shares of right ones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, column_or_1d

from bemkl.arrays import Array, explained, finite_array, refuse_out_of_range, refuse_unread


def encode_labels(name: str, y: Any, unlabeled: Any) -> tuple[npt.NDArray[Any], Array, bool]:
    """
    Read the labels of a classifier.

    Shapes: y (n_samples,) or (n_samples, n_labels); returns classes (n_classes,), signs (n_samples, n_outputs).
    """
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    refuse_unread("y", y)
    if not isinstance(unlabeled, bool | np.bool_) or unlabeled:
        return _encode_some(y, unlabeled)
    with explained("y", "Pass a label for each sample, or a table of zeros and ones for several labels a sample."):
        y = check_array(of_one_kind(y), ensure_2d=False, accept_sparse=True, dtype=None, input_name="y")
        check_classification_targets(y)
        if type_of_target(y) == "multilabel-indicator":
            several = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
            values = np.unique(several)
            if np.setdiff1d(values, [0, 1]).size:
                raise ValueError(f"y: expected zeros and ones for several labels a sample, got {values[:5].tolist()}.")
            return np.arange(several.shape[1]), np.where(several > 0, 1.0, -1.0), True
        labels = column_or_1d(y, warn=True)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            f"y: expected samples of at least 2 classes, got one class only: {classes.tolist()}. "
            "Add samples of another class."
        )
    signs = np.where(labels[:, None] == classes, 1.0, -1.0)
    return classes, signs[:, 1:] if len(classes) == 2 else signs, False


def of_one_kind(y: Any) -> Any:
    """Read labels without turning numbers into strings, and refuse missing ones."""
    if hasattr(y, "isna") and np.any(y.isna()):
        raise ValueError("y: some labels are missing. Leave those samples out, or pass unlabeled=None.")
    if isinstance(y, Mapping):
        raise ValueError("y: expected a label for each sample, got a dict. Pass its values, in the order of X.")
    # Data frames other than pandas' say in ways of their own what is missing, and arrays say None.
    y = np.asarray(y) if hasattr(y, "__array__") and not hasattr(y, "iloc") else y
    values = np.array(y, dtype=object) if isinstance(y, list | tuple) else y
    if getattr(values, "ndim", 0) != 1 or getattr(getattr(values, "dtype", None), "kind", "") != "O":
        return y
    first: dict[bool, Any] = {}
    for row, value in enumerate(np.asarray(values).tolist()):
        if np.ndim(value) == 0 and is_missing(value):
            raise ValueError(f"y: label {row} is missing. Leave that sample out, or pass unlabeled=None.")
        if not isinstance(value, str | bool | Integral | Real):
            return y
        first.setdefault(isinstance(value, str), value)
    if len(first) > 1:
        shown = " and ".join(f"{value!r} ({type(value).__name__})" for value in first.values())
        raise ValueError(f"y: expected labels of one kind, got {shown}. Make them all strings, or all numbers.")
    return np.array(np.asarray(values).tolist())


def labelled(y: Any, unlabeled: Any) -> npt.NDArray[np.bool_]:
    """Say which samples have a label. Shapes: y (n_samples,); returns (n_samples,)."""
    if is_missing(unlabeled):
        return np.array([not is_missing(value) for value in y], dtype=bool)
    return np.array([is_missing(value) or value != unlabeled for value in y], dtype=bool)


def _encode_some(y: Any, unlabeled: Any) -> tuple[npt.NDArray[Any], Array, bool]:
    """Encode the labels of samples that have one; the others get zeros."""
    if unlabeled is True or np.ndim(unlabeled):
        raise ValueError(f"unlabeled: expected one value that stands for no label, got {unlabeled!r}.")
    values = np.asarray(y, dtype=object)
    if values.ndim != 1:
        raise ValueError(
            f"y: expected one label a sample where some are not known, got shape {values.shape}. "
            "Pass a vector of labels, or unlabeled=False."
        )
    known = labelled(values, unlabeled)
    if known.all():
        warnings.warn(
            f"unlabeled: no sample in y is marked {unlabeled!r}, so all values of y are classes, and the fit is the "
            "usual one. Pass unlabeled=False if that is meant.",
            UserWarning,
            stacklevel=4,  # the line that called fit
        )
    labels = [value for value, there in zip(values, known, strict=True) if there]
    if any(is_missing(value) for value in labels):
        raise ValueError(f"y: some labels are missing, and others are marked {unlabeled!r}. Mark all in the same way.")
    if len(set(map(str, labels))) < 2:
        raise ValueError(
            f"y: without samples marked {unlabeled!r} there are labels of one class or none: "
            f"{sorted(set(map(str, labels)))}. If {unlabeled!r} is a class, mark samples without a label by another "
            "value, such as None, and pass it as unlabeled; else add labels of another class."
        )
    classes, found, _ = encode_labels("", labels, False)
    signs = np.zeros((len(values), found.shape[1]))
    signs[known] = found
    return classes, signs, False


def is_missing(value: Any) -> bool:
    """Tell None, NaN and what pandas has for them from values."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def class_probabilities(positive: Array) -> Array:
    """
    Make probabilities of the classes of those that each class was told from the rest with.

    Shapes: positive (n_samples, n_outputs); returns (n_samples, n_classes).
    """
    if positive.shape[1] == 1:
        return np.hstack([1.0 - positive, positive])
    # A floor keeps the sum above zero where all classes are out of the question.
    positive = np.maximum(positive, np.finfo(np.float64).tiny)
    probability: Array = positive / positive.sum(axis=1, keepdims=True)
    return probability


def share_of_labels(
    y: Any, found: npt.NDArray[Any], classes: npt.NDArray[Any], unlabeled: Any = False, sample_weight: Any = None
) -> float:
    """
    Return the share of samples whose label was predicted.

    Shapes: y (n_samples,), found (n_samples,), classes (n_classes,), sample_weight (n_samples,).
    """
    refuse_unread("y", y)
    with explained("y", "Pass a label for each sample of X."):
        labels = np.array(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != found.shape:
        raise ValueError(f"y: expected a label for each of {len(found)} samples, got shape {labels.shape}.")
    values = labels.tolist()
    there = np.ones(len(values), dtype=bool) if isinstance(unlabeled, bool | np.bool_) else labelled(values, unlabeled)
    if not there.any():
        raise ValueError(f"y: every sample is marked {unlabeled!r}, and a share needs labels. Pass some.")
    known = [value for value, kept in zip(values, there, strict=True) if kept]
    if any(np.ndim(value) > 0 or is_missing(value) for value in known):
        raise ValueError("y: some labels are missing, or are no labels. Leave those samples out.")
    _warn_of_new(known, classes)
    right = np.array([value == guess for value, guess in zip(values, found.tolist(), strict=True)], dtype=np.float64)
    return _weighted(right, sample_weight, there)


def share_of_rows(y: Any, found: npt.NDArray[Any], sample_weight: Any = None) -> float:
    """
    Return the share of samples all of whose labels were predicted.

    Shapes: y (n_samples, n_labels), found (n_samples, n_labels), sample_weight (n_samples,).
    """
    refuse_unread("y", y)
    table = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    labels = finite_array("y", table.astype(np.float64) if table.dtype == bool else table)
    if labels.shape != found.shape or not np.isin(labels, (0.0, 1.0)).all():
        shown = labels[~np.isin(labels, (0.0, 1.0))][:3]
        raise ValueError(
            f"y: expected zeros and ones of shape {found.shape}, got shape {labels.shape} with values such as "
            f"{', '.join(f'{value:g}' for value in shown) or '1'}."
        )
    right = (labels == found).all(axis=1).astype(np.float64)
    return _weighted(right, sample_weight, np.ones(len(right), dtype=bool))


def weights_of(sample_weight: Any, there: npt.NDArray[np.bool_]) -> Array:
    """Read the weights of samples, of which some count. Shapes: there (n_samples,); returns (n_samples,)."""
    weights = np.ones(len(there)) if sample_weight is None else finite_array("sample_weight", sample_weight)
    refuse_out_of_range("sample_weight", weights, "Divide them by the largest one.")
    if weights.shape != there.shape or (weights < 0.0).any() or not weights[there].sum() > 0.0:
        raise ValueError(
            f"sample_weight: expected {len(there)} weights, none below zero and not all zero, got shape "
            f"{weights.shape} with a sum of {weights.sum():g}. Pass a weight for each sample of X."
        )
    return weights


def _weighted(right: Array, sample_weight: Any, there: npt.NDArray[np.bool_]) -> float:
    """Average over the samples that count."""
    return float(np.average(right[there], weights=weights_of(sample_weight, there)[there]))


def _warn_of_new(labels: list[Any], classes: npt.NDArray[Any]) -> None:
    """Warn of labels that training never saw, as in folds that leave whole groups out."""
    seen = set(classes.tolist())
    new = sorted({label for label in labels if label not in seen}, key=str)
    if new:
        warnings.warn(
            f"y: the labels {new[:5]} were not there in training, where the classes were "
            f"{sorted(seen, key=str)[:8]}: their samples count as wrong.",
            UserWarning,
            stacklevel=4,  # the line that called score
        )
