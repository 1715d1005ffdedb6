"""Studies with several labels a sample: ours, and a support vector machine a label on combined kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from bemkl.arrays import Array
from bemkl.estimators import BEMKLClassifier
from bemkl.experiments.baselines import CombinedKernelSVC
from bemkl.experiments.measuring import measured
from bemkl.experiments.studies.banks import bank_of, chosen_views, computed
from bemkl.experiments.studies.learning import FOLD_ITERATIONS, FOLDS, choose_deviation, describe_views
from bemkl.experiments.studies.plan import Rows, Split, take

_SMALLEST_PROBABILITY = 1e-15


def label_scores(y: npt.NDArray[Any], probability: Array, decision: Array) -> dict[str, float]:
    """
    Return the scores of predictions with several labels a sample.

    - `label_accuracy`: share of right zeros and ones, which is 1 minus the Hamming loss.
    - `subset_accuracy`: share of samples all of whose labels are right.
    - `macro_auc`: mean over the labels of the area under the ROC curve; labels that all samples or none have are out.
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
    of_truth = np.where(y > 0, probability, 1.0 - probability)
    return {
        "label_accuracy": float(right.mean()),
        "subset_accuracy": float(right.all(axis=1).mean()),
        "macro_auc": float(np.mean([roc_auc_score(y[:, label], decision[:, label]) for label in mixed])),
        "log_loss": float(-np.log(np.maximum(of_truth, _SMALLEST_PROBABILITY)).mean()),
    }


def run_labels(split: Split, settings: Mapping[str, Any]) -> tuple[dict[str, float], float, dict[str, Any]]:
    """
    Fit and score one method.

    Parameters
    ----------
    split : Split
        Views and labels.
    settings : dict of str to Any
        The method.

    Returns
    -------
    scores : dict of str to float
        Scores of the test samples.
    seconds : float
        CPU time of the training, choices included.
    details : dict of str to Any
        Views and weights of ours, and what was chosen.
    """
    part = chosen_views(split, settings)
    bank = bank_of(part.X, settings)
    if settings["model"] == "svc":
        with measured() as cost:
            K, K_test = computed(bank, part)
            machines = [CombinedKernelSVC("mean").fit(K, labels) for labels in part.y.T]
        probability = np.column_stack([machine.probability(K_test)[:, 1] for machine in machines])
        decision = np.column_stack([machine.decision(K_test) for machine in machines])
        return label_scores(part.y_test, probability, decision), cost.seconds, {"C": [m.C_ for m in machines]}

    def log_density(deviation: float, train: Rows, test: Rows) -> float:
        model = BEMKLClassifier(bank, intermediate_std=deviation, max_iter=FOLD_ITERATIONS)
        model.fit(take(part.X, train), part.y[train])
        X = take(part.X, test)
        return -label_scores(part.y[test], model.predict_proba(X), model.decision_function(X))["log_loss"]

    with measured() as cost:
        folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(part.y))
        deviation = choose_deviation(log_density, folds)
        model = BEMKLClassifier(bank, intermediate_std=deviation).fit(part.X, part.y)
    scores = label_scores(part.y_test, model.predict_proba(part.X_test), model.decision_function(part.X_test))
    return scores, cost.seconds, {"intermediate_std": deviation} | describe_views(model, part.X)
