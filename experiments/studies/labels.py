"""Studies with several labels a sample: ours, and a support vector machine a label on combined kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from bemkl.estimators import BEMKLClassifier
from bemkl.evaluation.scores import label_scores
from experiments.baselines import CombinedKernelSVC
from experiments.measuring import measured
from experiments.studies.banks import bank_of, chosen_views, computed
from experiments.studies.learning import FOLD_ITERATIONS, FOLDS, choose_deviation, describe_views
from experiments.studies.plan import Rows, Split, take


def run_labels(split: Split, settings: Mapping[str, Any]) -> tuple[dict[str, float], float, dict[str, Any]]:
    """Fit and score one method."""
    part = chosen_views(split, settings)
    bank = bank_of(part.X, settings)
    if settings["model"] == "svc":
        with measured() as cost:
            K, K_test = computed(bank, part)
            machines = [CombinedKernelSVC("mean").fit(K, labels) for labels in part.y.T]
        probability = np.column_stack([machine.probability(K_test)[:, 1] for machine in machines])
        decision = np.column_stack([machine.decision(K_test) for machine in machines])
        return label_scores(part.y_test, probability, decision), cost.seconds, {"C": [m.C_ for m in machines]}
    if settings["model"] == "marginal":
        with measured() as cost:
            prior = settings["function_prior"]
            model = BEMKLClassifier(bank, posterior="marginal", function_prior=prior, test_views=False)
            model.fit(part.X, part.y)
        probability, decision = model.predict_proba(part.X_test), model.decision_function(part.X_test)
        return label_scores(part.y_test, probability, decision), cost.seconds, {}

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
