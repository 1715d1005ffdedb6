"""Responses to many drugs, some of them missing: ours as several tasks, and a kernel ridge regression a drug."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from bemkl.arrays import Array
from bemkl.estimators import BEMKLMultiTask
from experiments.measuring import measured
from experiments.studies.banks import bank_of, chosen_views, computed
from experiments.studies.learning import FOLD_ITERATIONS, FOLDS, choose_deviation, describe_views
from experiments.studies.plan import Rows, Split, take
from experiments.studies.ridge import RidgeByFolds

_NORMAL_95 = 1.959963984540054
_ITERATIONS = 1000


def drug_scores(y: Array, mean: Array, deviation: Array) -> dict[str, float]:
    """
    Return the scores of standardised responses, over all that are known.

    - `explained`: 1 minus the squared error over that of predicting zero, the mean of the training responses.
    - `rmse`: root of the mean squared error.
    - `log_density`: mean logarithm of the predictive density, a Gaussian.
    - `coverage`: share of responses in the central 95 % interval.

    Shapes: y (n_samples, n_drugs), mean (n_samples, n_drugs), deviation (n_samples, n_drugs).
    """
    known = ~np.isnan(y)
    truth, centre, spread = y[known], mean[known], deviation[known]
    errors, distance = (truth - centre) ** 2, (truth - centre) / spread
    return {
        "explained": float(1.0 - errors.sum() / (truth**2).sum()),
        "rmse": float(np.sqrt(errors.mean())),
        "log_density": float((-0.5 * (distance**2 + np.log(2.0 * np.pi)) - np.log(spread)).mean()),
        "coverage": float((np.abs(distance) <= _NORMAL_95).mean()),
    }


def run_drugs(split: Split, settings: Mapping[str, Any]) -> tuple[dict[str, float], float, dict[str, Any]]:
    """Fit and score one method on all drugs."""
    offset, scale = np.nanmean(split.y, axis=0), np.nanstd(split.y, axis=0)
    part = chosen_views(Split(split.X, (split.y - offset) / scale, split.X_test, split.y_test), settings)
    y_test = (split.y_test - offset) / scale
    details: dict[str, Any]
    if settings["model"] == "mean":
        mean, deviation, seconds, details = np.zeros(y_test.shape), np.ones(y_test.shape), 0.0, {}
    elif settings["model"] == "ridge":
        mean, deviation, seconds, details = _ridge(part, settings)
    elif settings["model"] == "marginal":
        mean, deviation, seconds, details = _marginal(part, settings)
    else:
        mean, deviation, seconds, details = _ours(part, settings)
    errors = {"errors": np.nansum((y_test - mean) ** 2, axis=0), "errors_of_mean": np.nansum(y_test**2, axis=0)}
    details |= {name: [float(f"{value:.5g}") for value in values] for name, values in errors.items()}
    return drug_scores(y_test, mean, deviation), seconds, details


def _ridge(part: Split, settings: Mapping[str, Any]) -> tuple[Array, Array, float, dict[str, Any]]:
    """Fit a ridge regression a drug on the mean kernel of the samples that have a response."""
    predicted = []
    with measured() as cost:
        K, K_test = (kernels.mean(axis=0) for kernels in computed(bank_of(part.X, settings), part))
        for responses in part.y.T:
            known = np.flatnonzero(~np.isnan(responses))
            ridge = RidgeByFolds([K[np.ix_(known, known)]], responses[known])
            predicted.append(ridge.predict(K_test[:, known]))
    mean, deviation = (np.column_stack(parts) for parts in zip(*predicted, strict=True))
    return mean, deviation, cost.seconds, {}


def _ours(part: Split, settings: Mapping[str, Any]) -> tuple[Array, Array, float, dict[str, Any]]:
    """Fit all drugs as tasks."""
    bank = bank_of(part.X, settings)

    def fitted(deviation: float, rows: Rows, max_iter: int = _ITERATIONS) -> BEMKLMultiTask:
        model = BEMKLMultiTask(
            bank,
            sharing=settings["sharing"],
            task_types="regression",
            intermediate_std=deviation,
            max_iter=max_iter,
        )
        return model.fit(*_tasks(take(part.X, rows), part.y[rows]))

    def log_density(deviation: float, train: Rows, test: Rows) -> float:
        model = fitted(deviation, train, max_iter=FOLD_ITERATIONS)
        return drug_scores(part.y[test], *_predicted(model, take(part.X, test)))["log_density"]

    with measured() as cost:
        folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(part.y))
        chosen = choose_deviation(log_density, folds)
        model = fitted(chosen, np.arange(len(part.y)))
    mean, deviation = _predicted(model, part.X_test)
    described = describe_views(model, None) if settings["sharing"] == "shared" else {}
    return mean, deviation, cost.seconds, {"intermediate_std": chosen} | described


def _marginal(part: Split, settings: Mapping[str, Any]) -> tuple[Array, Array, float, dict[str, Any]]:
    """Fit all drugs as tasks, with the sample weights integrated out."""
    with measured() as cost:
        model = BEMKLMultiTask(
            bank_of(part.X, settings), sharing=settings["sharing"], task_types="regression", posterior="marginal"
        )
        model.fit(*_tasks(part.X, part.y))
    return *_predicted(model, part.X_test), cost.seconds, {}


def _tasks(samples: Any, responses: Array) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return samples and responses of each drug. Shapes: responses (n_samples, n_drugs)."""
    drugs = [str(drug) for drug in range(responses.shape[1])]
    return dict.fromkeys(drugs, samples), dict(zip(drugs, responses.T, strict=True))


def _predicted(model: BEMKLMultiTask, samples: Any) -> tuple[Array, Array]:
    """Return means and deviations of all drugs. Shapes: returns (n_samples, n_drugs), (n_samples, n_drugs)."""
    of_tasks = dict.fromkeys(model.tasks_, samples)
    mean, deviation = model.predict(of_tasks), model.predict_std(of_tasks)
    return (
        np.column_stack([mean[drug] for drug in model.tasks_]),
        np.column_stack([deviation[drug] for drug in model.tasks_]),
    )
