"""Shares of samples with the right label."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, explained, finite_array, refuse_out_of_range, refuse_unread
from bemkl.estimators.labels import is_missing, labelled


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
