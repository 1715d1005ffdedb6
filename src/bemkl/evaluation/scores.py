"""Numbers for predictions: how often they are right, and whether their probabilities can be believed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from bemkl.arrays import Array, finite_array
from bemkl.evaluation.weighted import SMALLEST_PROBABILITY, Scores, weighted_classification, weighted_regression

_ROUNDING = 1e-6


def classification_scores(
    y: npt.ArrayLike,
    probability: npt.ArrayLike | None,
    classes: npt.ArrayLike,
    decision: npt.ArrayLike | None = None,
) -> dict[str, float]:
    r"""
    Return the scores of a classifier on samples whose labels are known.

    - `accuracy`: share of right labels; the label is the class of the largest decision value, or of the largest
      probability where no decision is given.
    - `log_loss`: mean of minus the logarithm of the true class's probability, clipped from below at 1e-15.
    - `brier`: for two classes the mean of (p - t)², with p the probability of the second class and t 1 or 0; for more,
      the mean of the sum over classes of these squares, which is between 0 and 2.
    - `calibration_error`: expected calibration error of the most probable class,
      :math:`\sum_b \frac{n_b}{n} |a_b - c_b|`, with the share of right answers a and the mean probability c in ten
      bins of the same width; a probability on an edge belongs to the upper bin.
    - `auc`: area under the ROC curve of the decision values, or of the probabilities where no decision is given; for
      more than two classes the plain mean over the classes, each against the rest.
    - `eer`: equal error rate, where the false positive rate is the false negative rate on the ROC curve, whose points
      are joined by straight lines; for more than two classes the plain mean as for `auc`.

    Classes that no sample has are left out of the means of `auc` and `eer`. Both are NaN if there is only one class.

    Parameters
    ----------
    y : array_like of shape (n_samples,)
        True labels.
    probability : array_like of shape (n_samples, n_classes) or None
        Probabilities of the classes; None leaves out `log_loss`, `brier` and `calibration_error`.
    classes : array_like of shape (n_classes,)
        Labels of the columns.
    decision : array_like of shape (n_samples, n_classes), or (n_samples,) or (n_samples, 1) for two classes, optional
        Decision values, the larger the surer. For two classes a positive one means the second class.

    Returns
    -------
    dict of str to float
        The scores by name.

    Raises
    ------
    ValueError
        If shapes do not match, a label is not among the classes, probabilities are none, or there is nothing to score.

    Examples
    --------
    >>> scores = classification_scores(["a", "b", "b"], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], ["a", "b"])
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'accuracy': 0.667, 'auc': 1.0, 'eer': 0.0, 'log_loss': 0.415, 'brier': 0.137, 'calibration_error': 0.3}
    >>> classification_scores([0, 1, 1], None, [0, 1], decision=[-2.0, -0.5, 1.0])["accuracy"]  # doctest: +ELLIPSIS
    0.666...
    """
    labels = np.asarray(classes)
    truth = _positions(y, labels)
    P = None if probability is None else _probabilities(probability, len(truth), len(labels))
    D = None if decision is None else _decisions(decision, len(truth), len(labels))
    if P is None and D is None:
        raise ValueError("probability: got None without a decision: there is nothing to score. Pass one of them.")
    return _of_all(weighted_classification(truth, P, D, len(labels), np.ones((1, len(truth)))))


def label_scores(y: npt.NDArray[np.int_], probability: Array, decision: Array) -> dict[str, float]:
    """
    Return the scores of predictions with several labels a sample.

    - `label_accuracy`: share of right zeros and ones, which is 1 minus the Hamming loss.
    - `subset_accuracy`: share of samples all of whose labels are right.
    - `macro_auc`: mean over the labels of the area under the ROC curve; labels that all samples or none have are out,
      and it is NaN if there are no others.
    - `log_loss`: mean over samples and labels.

    Parameters
    ----------
    y : ndarray of int of shape (n_samples, n_labels)
        Zeros and ones.
    probability : ndarray of shape (n_samples, n_labels)
        Probabilities of ones.
    decision : ndarray of shape (n_samples, n_labels)
        Decision values; positive ones predict a one.

    Returns
    -------
    dict of str to float
        The scores by name.

    Examples
    --------
    >>> y = np.array([[1, 0], [0, 0], [1, 1], [0, 1]])
    >>> probability = np.array([[0.8, 0.6], [0.3, 0.1], [0.7, 0.9], [0.2, 0.8]])
    >>> {name: round(score, 3) for name, score in label_scores(y, probability, probability - 0.5).items()}
    {'label_accuracy': 0.875, 'subset_accuracy': 0.75, 'macro_auc': 1.0, 'log_loss': 0.314}
    """
    right = (decision > 0.0) == (y > 0)
    mixed = [label for label, column in enumerate(y.T) if 0 < column.sum() < len(column)]
    areas = [roc_auc_score(y[:, label], decision[:, label]) for label in mixed]
    of_truth = np.where(y > 0, probability, 1.0 - probability)
    return {
        "label_accuracy": float(right.mean()),
        "subset_accuracy": float(right.all(axis=1).mean()),
        "macro_auc": float(np.mean(areas)) if areas else float("nan"),
        "log_loss": float(-np.log(np.maximum(of_truth, SMALLEST_PROBABILITY)).mean()),
    }


def regression_scores(
    y: npt.ArrayLike, mean: npt.ArrayLike, deviation: npt.ArrayLike | None = None
) -> dict[str, float]:
    """
    Return the scores of a regression on samples whose values are known.

    - `r2`: 1 minus the squared error over that of the values' own mean.
    - `rmse`: root of the mean squared error.
    - `log_density`: mean over samples of the logarithm of the predictive density, a Gaussian; larger is better.
    - `coverage`: share of values in the central 95 % interval of that Gaussian.

    With several outputs, each score is the plain mean over the outputs.

    Parameters
    ----------
    y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        True values.
    mean : array_like of the same shape
        Predicted means.
    deviation : array_like of the same shape, optional
        Predicted standard deviations of the values, noise included; without them there is no `log_density` and no
        `coverage`.

    Returns
    -------
    dict of str to float
        The scores by name.

    Raises
    ------
    ValueError
        If shapes do not match, there are fewer than two samples, or a deviation is not positive.

    Examples
    --------
    >>> scores = regression_scores([1.0, 2.0, 3.0], [1.0, 2.0, 2.0], [0.5, 0.5, 0.5])
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'r2': 0.5, 'rmse': 0.577, 'log_density': -0.892, 'coverage': 0.667}
    """
    truth, centre = finite_array("y", y), finite_array("mean", mean)
    if truth.ndim not in (1, 2) or len(truth) < 2 or truth.size == 0:
        raise ValueError(f"y: expected values of at least two samples, got shape {truth.shape}.")
    if centre.shape != truth.shape:
        raise ValueError(f"mean: expected the shape of y, {truth.shape}, got {centre.shape}.")
    spread = None if deviation is None else finite_array("deviation", deviation)
    if spread is not None:
        if spread.shape != truth.shape:
            raise ValueError(f"deviation: expected the shape of y, {truth.shape}, got {spread.shape}.")
        if spread.min() <= 0.0:
            raise ValueError(f"deviation: expected positive numbers, got {spread.min():g}.")
    return _of_all(weighted_regression(truth, centre, spread, np.ones((1, len(truth)))))


def _of_all(scores: Scores) -> dict[str, float]:
    """Take the scores of the only draw, which has each sample once."""
    return {name: float(values[0]) for name, values in scores.items()}


def _positions(y: npt.ArrayLike, classes: npt.NDArray[np.generic]) -> npt.NDArray[np.intp]:
    """Return the column of each label, shape (n_samples,)."""
    labels = np.asarray(y)
    if classes.ndim != 1 or len(classes) < 2 or len(np.unique(classes)) < len(classes):
        raise ValueError(f"classes: expected two or more different labels, got {classes.tolist()!r}.")
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"y: expected one label for each of one or more samples, got shape {labels.shape}.")
    unknown = ~np.isin(labels, classes)
    if unknown.any():
        raise ValueError(f"y: got the label {str(labels[unknown][0])!r}, which is not among the classes.")
    order = np.argsort(classes)
    positions: npt.NDArray[np.intp] = order[np.searchsorted(classes, labels, sorter=order)]
    return positions


def _probabilities(probability: npt.ArrayLike, n_samples: int, n_classes: int) -> Array:
    P = finite_array("probability", probability)
    if P.shape != (n_samples, n_classes):
        raise ValueError(
            f"probability: expected shape {(n_samples, n_classes)}, a column for each class, got {P.shape}."
        )
    if P.min() < -_ROUNDING or np.abs(P.sum(axis=1) - 1.0).max() > _ROUNDING:
        raise ValueError(
            f"probability: expected numbers of at least 0 that sum to 1 over the classes, got a least of {P.min():g} "
            f"and sums from {P.sum(axis=1).min():g} to {P.sum(axis=1).max():g}. Pass other values as decision."
        )
    return np.clip(P, 0.0, 1.0)


def _decisions(decision: npt.ArrayLike, n_samples: int, n_classes: int) -> Array:
    D = finite_array("decision", decision)
    if D.ndim == 1 and n_classes == 2:
        D = D[:, None]
    expected = (n_samples, n_classes if n_classes > 2 else 1)
    if D.shape != expected:
        raise ValueError(
            f"decision: expected shape {expected} for {n_classes} classes, got {D.shape}. "
            "Two classes have one column, whose sign decides."
        )
    return D
