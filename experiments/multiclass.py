"""Several classes and ready kernels: fit one method on one split, and score it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.estimators import BEMKLClassifier
from bemkl.evaluation.scores import classification_scores
from bemkl.inference import Probit
from bemkl.kernels import DenseStack, KernelStack
from bemkl.registry import FUNCTION_PRIORS
from experiments.as_printed import fit_as_printed
from experiments.baselines import PRICES, CombinedKernelSVC
from experiments.datasets import MatrixSplit
from experiments.job import Outcome
from experiments.measuring import measured

MARGINAL: dict[str, dict[str, Any]] = {
    f"marginal, {prior}": {"posterior": "marginal", "function_prior": prior, "test_views": False}
    for prior in (*FUNCTION_PRIORS, "evidence")
}
"""Our posterior with the sample weights integrated out."""
OTHERS: dict[str, dict[str, Any]] = {
    name: {"rule": rule, "C": list(PRICES)} for name, rule in (("SVC, mean kernel", "mean"), ("EasyMKL", "easy"))
}
"""Other methods, and the settings of each."""


def score_ours(
    split: MatrixSplit, settings: Mapping[str, Any], checksum: str, *, probabilities: bool = True
) -> Outcome:
    """Fit and score our classifier."""
    names = list(split.train)
    with measured() as cost:
        model = BEMKLClassifier("precomputed", **settings).fit(
            KernelStack(list(split.train.values()), names), split.y_train
        )
    new = KernelStack([split.test[name] for name in names], names)
    probability = model.predict_proba(new) if probabilities else None
    scores = classification_scores(split.y_test, probability, model.classes_, model.decision_function(new))
    fit = {"sweeps": float(model.n_iter_), "lower_bound": model.lower_bound_, "megabytes": cost.megabytes}
    weights = np.atleast_2d(model.kernel_weights_)
    details = {"kernels": names, "weights": weights.mean(axis=0).round(4).tolist()}
    return Outcome(scores | fit, cost.seconds, checksum, details)


def score_other(split: MatrixSplit, rule: str, checksum: str) -> Outcome:
    """Fit and score a support vector machine on a combination of the kernels."""
    K, K_test = _arrays(split)
    with measured() as cost:
        model = CombinedKernelSVC(rule).fit(K, split.y_train)
    scores = classification_scores(split.y_test, model.probability(K_test), model.classes_, model.decision(K_test))
    return Outcome(scores | {"megabytes": cost.megabytes, "C": model.C_}, cost.seconds, checksum)


def score_as_printed(split: MatrixSplit, settings: Mapping[str, Any], seed: int, checksum: str) -> Outcome:
    """Fit and score the paper's algorithm as printed, from a random start."""
    K, K_test = _arrays(split)
    stack, new = DenseStack(K), DenseStack(K_test)
    classes = np.unique(split.y_train)
    signs = np.where(split.y_train[:, None] == classes, 1.0, -1.0)
    groups = [signs] if settings["multiclass"] == "shared" else [column[:, None] for column in signs.T]
    rng = np.random.default_rng(seed)
    with measured() as cost:
        fits = [
            fit_as_printed(
                stack,
                Probit(group, margin=settings["margin"]),
                kernel_prior="dense",
                intermediate_std=settings["intermediate_std"],
                rng=rng,
            )
            for group in groups
        ]
    decision = np.hstack([fit.score(new) for fit in fits])
    scores = classification_scores(split.y_test, None, classes, decision)
    return Outcome(scores | {"megabytes": cost.megabytes}, cost.seconds, checksum)


def mean_outcome(outcomes: Sequence[Outcome], names: Sequence[str]) -> Outcome:
    """Put the outcomes of folds together."""
    scores = {name: float(np.mean([one.scores[name] for one in outcomes])) for name in names}
    return Outcome(scores, sum(one.seconds for one in outcomes), outcomes[0].checksum)


def _arrays(split: MatrixSplit) -> tuple[Array, Array]:
    """Return the kernels of training and test samples, kernels first."""
    train, test = (np.stack([blocks[name] for name in split.train]) for blocks in (split.train, split.test))
    return np.asarray(train, dtype=np.float64), np.asarray(test, dtype=np.float64)
