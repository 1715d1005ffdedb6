"""What the page is about: a fitted model, samples to explain, and predictions to judge it by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from bemkl.estimators import BEMKLClassifier, BEMKLRegressor
from bemkl.estimators.fitted import Fitted
from bemkl.estimators.tasks import take_rows
from bemkl.evaluation import HeldOut
from bemkl.kernels import stack_kernels
from bemkl.kernels.views import count_samples
from bemkl.report.markup import plural


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A fitted model and all that the page says about it."""

    model: Any  # the fitted model
    X: Any  # samples to explain
    names: tuple[str, ...]  # their names
    held_out: HeldOut | None  # predictions beside the truth, where there are any that can be scored
    origin: str  # where they come from
    n_dropped: int  # how many of them have no target that the model knows
    settings: Mapping[str, Any]  # more facts to show
    is_multilabel: bool  # whether a sample may have several labels

    @property
    def is_classifier(self) -> bool:
        """Whether targets are labels."""
        return bool(is_classifier(self.model))

    @property
    def n_outputs(self) -> int:
        """Number of scores or responses of a sample."""
        return len(self.model.intercept_)

    @property
    def n_train(self) -> int:
        """Number of samples that the model was fitted on."""
        return self.fits[0].n_samples

    @property
    def fits(self) -> tuple[Fitted, ...]:
        """What the model knows of each set of weights."""
        fitted: tuple[Fitted, ...] = self.model._fitted
        return fitted

    @property
    def never_negative(self) -> bool:
        """Whether no kernel weight can be below zero."""
        return all(fitted.never_negative for fitted in self.fits)

    @property
    def weight_labels(self) -> list[str]:
        """Names of the sets of weights: the classes where each has its own, else one empty name."""
        return [str(label) for label in self.model.classes_] if self.model.kernel_weights_.ndim == 2 else [""]

    @property
    def output_names(self) -> list[str]:
        """Names of the scores or responses."""
        if not self.is_classifier:
            return ["response"] if self.n_outputs == 1 else [f"response {k + 1}" for k in range(self.n_outputs)]
        if self.n_outputs == 1:
            return [str(self.model.classes_[-1])]
        return [f"label {label}" if self.is_multilabel else str(label) for label in self.model.classes_]

    @property
    def views(self) -> list[str]:
        """View of each kernel: what its name has after the last " on ", or all of the name."""
        return [name.rpartition(" on ")[2] for name in self.model.kernel_names_]

    @property
    def targets(self) -> str:
        """How many classes, labels or responses there are."""
        if not self.is_classifier:
            return plural(self.n_outputs, "response")
        return plural(len(self.model.classes_), *(("label",) if self.is_multilabel else ("class", "classes")))

    @property
    def task(self) -> str:
        """What kind of targets there are, in words."""
        if not self.is_classifier:
            return f"regression of {self.targets}"
        if self.is_multilabel:
            return f"classification with {self.targets} a sample"
        return f"classification into {self.targets}"


def read_subject(
    model: Any,
    X: Any,
    held_out: HeldOut | None,
    origin: str,
    names: Sequence[str] | None,
    settings: Mapping[str, Any] | None,
) -> Subject:
    """Check what the user passed."""
    if not isinstance(model, BEMKLClassifier | BEMKLRegressor):
        raise TypeError(f"model: expected a BEMKLClassifier or BEMKLRegressor, got {type(model).__name__}.")
    check_is_fitted(model)
    if isinstance(model.kernels, str):
        X = stack_kernels(X)
    n_samples = count_samples(X)
    shown = [f"sample {i + 1}" for i in range(n_samples)] if names is None else [str(name) for name in names]
    if len(shown) != n_samples:
        raise ValueError(f"names: expected a name for each of the {n_samples} samples of X, got {len(shown)}.")
    kept, n_dropped = _with_targets(held_out)
    several = is_classifier(model) and model.predict(take_rows(X, np.arange(1))).ndim == 2
    return Subject(model, X, tuple(shown), kept, origin, n_dropped, dict(settings or {}), bool(several))


def _with_targets(held_out: HeldOut | None) -> tuple[HeldOut | None, int]:
    """Leave out samples whose target is not known, and count them."""
    if held_out is None:
        return None, 0
    n_samples = len(held_out.y)
    folds = held_out.folds if len(held_out.folds) == n_samples else np.zeros(n_samples, dtype=np.intp)
    known = _known(held_out)
    n_dropped = int((~known).sum())
    kept = replace(held_out, folds=folds).take(known)
    if held_out.classes is not None and held_out.y.ndim == 1:
        kept = replace(kept, y=np.asarray(kept.y.tolist(), dtype=held_out.classes.dtype))
    return (kept if known.any() else None), n_dropped


def _known(held_out: HeldOut) -> npt.NDArray[np.bool_]:
    """Say which samples have a target that can be compared with the prediction."""
    if held_out.classes is None or held_out.y.ndim == 2:
        finite = np.isfinite(held_out.y.astype(np.float64)) & np.isfinite(held_out.predicted.astype(np.float64))
        if held_out.deviation is not None:
            finite &= np.isfinite(held_out.deviation) & (held_out.deviation > 0.0)
        return np.asarray(finite.reshape(len(finite), -1).all(axis=1))
    classes = set(held_out.classes.tolist())
    known = np.array([label in classes for label in held_out.y.tolist()], dtype=bool)
    for values in (held_out.probability, held_out.decision):
        if values is not None:
            known &= np.isfinite(values.reshape(len(known), -1)).all(axis=1)
    return known
