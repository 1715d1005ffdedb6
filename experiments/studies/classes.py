"""Studies with one label a sample: ours, and support vector machines on combined kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from bemkl.estimators import BEMKLClassifier
from bemkl.evaluation.scores import classification_scores
from experiments.baselines import CombinedKernelSVC
from experiments.measuring import measured
from experiments.studies.banks import bank_of, chosen_views, computed
from experiments.studies.learning import FOLD_ITERATIONS, FOLDS, choose_deviation, describe_views
from experiments.studies.plan import Rows, Split, take


def run_classes(split: Split, settings: Mapping[str, Any]) -> tuple[dict[str, float], float, dict[str, Any]]:
    """Fit and score one method."""
    part = chosen_views(split, settings)
    bank = bank_of(part.X, settings)
    if settings["model"] == "svc":
        with measured() as cost:
            K, K_test = computed(bank, part)
            machine = CombinedKernelSVC("mean").fit(K, part.y)
        scores = classification_scores(
            part.y_test, machine.probability(K_test), machine.classes_, machine.decision(K_test)
        )
        return scores, cost.seconds, {"C": machine.C_}
    if settings["model"] == "marginal":
        with measured() as cost:
            model = BEMKLClassifier(
                bank, posterior="marginal", function_prior=settings["function_prior"], test_views=False
            )
            model.fit(part.X, part.y)
        probability, decision = model.predict_proba(part.X_test), model.decision_function(part.X_test)
        return classification_scores(part.y_test, probability, model.classes_, decision), cost.seconds, {}

    def log_density(deviation: float, train: Rows, test: Rows) -> float:
        model = BEMKLClassifier(bank, intermediate_std=deviation, max_iter=FOLD_ITERATIONS)
        model.fit(take(part.X, train), part.y[train])
        probability = model.predict_proba(take(part.X, test))
        return -classification_scores(part.y[test], probability, model.classes_)["log_loss"]

    with measured() as cost:
        folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(part.y)), part.y))
        deviation = choose_deviation(log_density, folds)
        model = BEMKLClassifier(bank, intermediate_std=deviation).fit(part.X, part.y)
    scores = classification_scores(
        part.y_test, model.predict_proba(part.X_test), model.classes_, model.decision_function(part.X_test)
    )
    return scores, cost.seconds, {"intermediate_std": deviation} | describe_views(model, part.X)
