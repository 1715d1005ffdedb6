"""Regression on one table: ours with kernels on all features and on each, and kernel ridge regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from bemkl.arrays import Array
from bemkl.estimators import BEMKLRegressor
from bemkl.evaluation.scores import regression_scores
from bemkl.kernels import KernelBank, KernelSpec
from experiments.measuring import measured
from experiments.studies.banks import RELATIVE_WIDTHS, computed, feature_bank
from experiments.studies.learning import FOLD_ITERATIONS, FOLDS, choose_deviation, describe_views
from experiments.studies.plan import Rows, Split, take
from experiments.studies.ridge import RidgeByFolds


def run_responses(split: Split, settings: Mapping[str, Any]) -> tuple[dict[str, float], float, dict[str, Any]]:
    """Fit and score one method."""
    if settings["model"] == "ridge":
        with measured() as cost:
            kernels, kernels_test = _candidates(split, settings["kernels"])
            ridge = RidgeByFolds(kernels, split.y)
        mean, deviation = ridge.predict(kernels_test[ridge.chosen_])
        chosen = {"kernel": ridge.chosen_, "penalty": ridge.penalty_}
        return regression_scores(split.y_test, mean, deviation), cost.seconds, chosen
    bank = feature_bank(list(split.X), settings.get("views"))
    if settings["model"] == "marginal":
        with measured() as cost:
            model = BEMKLRegressor(
                bank, posterior="marginal", function_prior=settings["function_prior"], test_views=False
            )
            model.fit(split.X, split.y)
        return regression_scores(split.y_test, *model.predict(split.X_test, return_std=True)), cost.seconds, {}

    def log_density(deviation: float, train: Rows, test: Rows) -> float:
        model = BEMKLRegressor(bank, intermediate_std=deviation, max_iter=FOLD_ITERATIONS)
        model.fit(take(split.X, train), split.y[train])
        predicted = model.predict(take(split.X, test), return_std=True)
        return regression_scores(split.y[test], *predicted)["log_density"]

    with measured() as cost:
        folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(split.y))
        chosen_deviation = choose_deviation(log_density, folds)
        model = BEMKLRegressor(bank, intermediate_std=chosen_deviation).fit(split.X, split.y)
    scores = regression_scores(split.y_test, *model.predict(split.X_test, return_std=True))
    return scores, cost.seconds, {"intermediate_std": chosen_deviation} | describe_views(model, split.X)


def _candidates(split: Split, kernels: str) -> tuple[list[Array], list[Array]]:
    """Return the kernels that a ridge regression chooses from, for training and for test samples."""
    if kernels == "mean":
        K, K_test = computed(feature_bank(list(split.X)), split)
        return [K.mean(axis=0)], [K_test.mean(axis=0)]
    if kernels == "linear":
        spec = KernelSpec("linear", "all")
    else:
        root = np.sqrt(len(split.X))
        spec = KernelSpec("gaussian", "all", {"width": [float(width * root) for width in RELATIVE_WIDTHS]})
    K, K_test = computed(KernelBank([spec], standardise=True, scaling="trace"), split)
    return list(K), list(K_test)
