"""Predictions for samples that a model was not fitted on: new ones, or those of folds that were left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from bemkl.alignment import aligned_to, aligned_views
from bemkl.arrays import Array
from bemkl.estimators.tasks import take_rows
from bemkl.evaluation.scores import classification_scores, label_scores, regression_scores
from bemkl.kernels import KernelStack
from bemkl.kernels.views import is_views

Rows = npt.NDArray[np.intp]
Labels = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """
    Predictions beside the truth.

    Parameters
    ----------
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        True labels or responses.
    predicted : ndarray of the same shape
        Predicted labels, or means of the responses.
    classes : ndarray of shape (n_classes,) or None
        The classes; None for a regression.
    probability : ndarray of shape (n_samples, n_classes) or None
        Probabilities of the classes; None for a regression.
    decision : ndarray of shape (n_samples,) or (n_samples, n_classes), or None
        Decision values; None for a regression.
    deviation : ndarray of the shape of y or None
        Standard deviations of the responses; None for a classification.
    folds : ndarray of shape (n_samples,)
        Number of the fold that each sample was left out in; zeros for new samples.
    """

    y: Labels = field(repr=False)
    predicted: Labels = field(repr=False)
    classes: Labels | None = None
    probability: Array | None = field(default=None, repr=False)
    decision: Array | None = field(default=None, repr=False)
    deviation: Array | None = field(default=None, repr=False)
    folds: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.intp), repr=False)

    def scores(self) -> dict[str, float]:
        """
        Return all scores that suit the targets.

        Returns
        -------
        dict of str to float
            As of `classification_scores`, `label_scores` or `regression_scores`.
        """
        if self.classes is None:
            return regression_scores(self.y, self.predicted, self.deviation)
        if self.y.ndim == 2 and self.probability is not None and self.decision is not None:
            return label_scores(self.y, self.probability, self.decision)
        return classification_scores(self.y, self.probability, self.classes, self.decision)

    def take(self, rows: Any) -> HeldOut:
        """
        Take some samples.

        Parameters
        ----------
        rows : ndarray of int or bool
            Which ones.

        Returns
        -------
        HeldOut
            These.
        """
        parts = ("y", "predicted", "probability", "decision", "deviation", "folds")
        found = {name: getattr(self, name) for name in parts}
        return replace(self, **{name: values[rows] for name, values in found.items() if values is not None})

    def scores_by_fold(self) -> list[dict[str, float]]:
        """
        Return the scores of each fold.

        Returns
        -------
        list of dict of str to float
            One a fold, in order.
        """
        return [self.take(self.folds == fold).scores() for fold in np.unique(self.folds)]


def predict_held_out(model: Any, X: Any, y: Any) -> HeldOut:
    """
    Predict samples whose targets are known.

    Parameters
    ----------
    model : BEMKLClassifier or BEMKLRegressor
        A fitted model.
    X : Any
        Samples, in any form that the model takes.
    y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.

    Returns
    -------
    HeldOut
        The predictions.
    """
    truth = np.asarray(*aligned_to(X, {"y": y}))
    folds = np.zeros(len(truth), dtype=np.intp)
    if not is_classifier(model):
        mean, deviation = model.predict(X, return_std=True)
        return HeldOut(truth, mean, deviation=deviation, folds=folds)
    parts = {"probability": model.predict_proba(X), "decision": model.decision_function(X)}
    return HeldOut(truth, model.predict(X), model.classes_, folds=folds, **parts)


def cross_predict(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_folds: int = 5,
    seed: int = 0,
    advance: Callable[[], object] = lambda: None,
) -> HeldOut:
    """
    Predict each sample by a model that was fitted on the other folds.

    Parameters
    ----------
    model : BEMKLClassifier or BEMKLRegressor
        The settings; the model itself does not change.
    X : Any
        Samples: a table, a dict of views, kernels between all of them as a `KernelStack`, or an object whose method
        `between(rows, columns)` takes samples compared with training samples.
    y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets. Folds have equal shares of the classes, unless there are several labels a sample.
    n_folds : int
        Number of folds.
    seed : int
        What the folds are drawn with.
    advance : callable
        Called after each fold.

    Returns
    -------
    HeldOut
        Predictions for all samples, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl import BEMKLRegressor
    >>> x = np.linspace(0.0, 6.0, 40)[:, None]
    >>> held_out = cross_predict(BEMKLRegressor(), x, np.sin(x[:, 0]), n_folds=4)
    >>> held_out.scores()["r2"] > 0.9, np.bincount(held_out.folds).tolist()
    (True, [10, 10, 10, 10])
    """
    truth = np.asarray(*aligned_to(X, {"y": y}))
    X = aligned_views(X) if is_views(X) else X
    parts, order = [], []
    for number, (train, test) in enumerate(_splits(model, truth, n_folds, seed)):
        inside, outside = _take(X, train, train), _take(X, test, train)
        fitted = _without_tests(clone(model)).fit(inside, truth[train])
        parts.append(replace(predict_held_out(fitted, outside, truth[test]), folds=np.full(len(test), number)))
        order.append(test)
        advance()
    return _joined(parts).take(np.argsort(np.concatenate(order), kind="stable"))


def _without_tests(model: Any) -> Any:
    """Do without tests of views, of which nobody asks in folds."""
    return model.set_params(test_views=False) if "test_views" in model.get_params() else model


def _splits(model: Any, y: Labels, n_folds: int, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Draw folds, and refuse classes that would be missing in one."""
    if not is_classifier(model) or y.ndim == 2:
        if not 2 <= n_folds <= len(y) // 2:
            raise ValueError(f"n_folds: expected 2 to {len(y) // 2} for {len(y)} samples, got {n_folds}.")
        yield from KFold(n_folds, shuffle=True, random_state=seed).split(y)
        return
    labels, counts = np.unique(y, return_counts=True)
    if not 2 <= n_folds <= counts.min():
        rare = labels[counts.argmin()]
        raise ValueError(
            f"n_folds: expected 2 to the number of samples of the rarest class ({str(rare)!r} has {counts.min()}), got "
            f"{n_folds}. Take fewer folds, or leave that class out."
        )
    yield from StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, y)


def _take(X: Any, rows: Rows, columns: Rows) -> Any:
    """Take samples, and of kernels also the training samples that they are compared with."""
    if hasattr(X, "between"):
        return X.between(rows, columns)
    return X[rows][:, columns] if isinstance(X, KernelStack) else take_rows(X, rows)


def _joined(parts: list[HeldOut]) -> HeldOut:
    names = ("y", "predicted", "probability", "decision", "deviation", "folds")
    found = {name: [getattr(part, name) for part in parts] for name in names}
    return replace(parts[0], **{name: np.concatenate(each) for name, each in found.items() if each[0] is not None})
