"""Scores of predictions, each against a slow second way."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from bemkl.evaluation.scores import classification_scores, regression_scores

SEED = 3


def predictions(n_samples, n_classes, seed=SEED):
    """Return labels and probabilities that know something about them."""
    generator = np.random.default_rng(seed)
    truth = np.r_[np.arange(n_classes), generator.integers(n_classes, size=n_samples - n_classes)]
    scores = generator.normal(size=(n_samples, n_classes)) + 1.2 * np.eye(n_classes)[truth]
    probability = np.exp(scores)
    return truth, probability / probability.sum(axis=1, keepdims=True)


def slow_calibration_error(truth, probability):
    total = 0.0
    for b in range(10):
        inside = [
            (p.max(), p.argmax() == t)
            for t, p in zip(truth, probability, strict=True)
            if b / 10 <= p.max() < (b + 1) / 10 or (b == 9 and p.max() == 1.0)
        ]
        if inside:
            confidence, right = zip(*inside, strict=True)
            total += len(inside) / len(truth) * abs(np.mean(right) - np.mean(confidence))
    return total


def slow_equal_error_rate(target, values):
    """Walk over all thresholds, and cut the piece where the errors change order."""
    points = []
    for threshold in [np.inf, *sorted(set(values), reverse=True)]:
        says_yes = values >= threshold
        points.append((np.mean(says_yes[~target]), np.mean(~says_yes[target])))
    for (fp, fn), (next_fp, next_fn) in pairwise(points):
        if fp <= fn and next_fp >= next_fn:
            share = (fn - fp) / ((fn - fp) + (next_fp - next_fn))
            return fp + share * (next_fp - fp)
    raise AssertionError("the errors never meet")


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_against_slow_ways(n_classes):
    truth, probability = predictions(60, n_classes)
    decision = np.log(probability[:, 1] / probability[:, 0]) if n_classes == 2 else np.log(probability) * 2.0
    scores = classification_scores(truth, probability, range(n_classes), decision)
    columns = decision[:, None] if n_classes == 2 else decision
    targets = [truth == 1] if n_classes == 2 else [truth == k for k in range(n_classes)]
    pairs = list(zip(targets, columns.T, strict=True))
    assert scores["accuracy"] == np.mean(probability.argmax(axis=1) == truth)
    assert_allclose(scores["log_loss"], log_loss(truth, probability))
    assert_allclose(scores["calibration_error"], slow_calibration_error(truth, probability))
    assert_allclose(scores["eer"], np.mean([slow_equal_error_rate(*pair) for pair in pairs]))
    wins = [np.mean((v[t][:, None] > v[~t]) + 0.5 * (v[t][:, None] == v[~t])) for t, v in pairs]
    assert_allclose(scores["auc"], np.mean(wins))
    one_hot = np.eye(n_classes)[truth]
    brier = np.mean(np.sum((one_hot - probability) ** 2, axis=1))
    assert_allclose(scores["brier"], brier / 2 if n_classes == 2 else brier)


def test_against_scikit_learn():
    truth, probability = predictions(80, 4)
    scores = classification_scores(truth, probability, range(4))
    assert_allclose(scores["auc"], roc_auc_score(truth, probability, multi_class="ovr"))
    truth, probability = predictions(80, 2)
    scores = classification_scores(truth, probability, range(2))
    assert_allclose(scores["brier"], brier_score_loss(truth, probability[:, 1]))
    assert_allclose(scores["auc"], roc_auc_score(truth, probability[:, 1]))


def test_the_equal_error_rate_with_ties():
    generator = np.random.default_rng(SEED)
    for _ in range(50):
        target = np.r_[True, False, generator.random(20) < 0.4]
        values = generator.integers(4, size=22) + 1.0 * target
        found = classification_scores(target, None, [False, True], values - 1.5)["eer"]
        assert_allclose(found, slow_equal_error_rate(target, values), atol=1e-14)
        other = classification_scores(target, None, [True, False], 1.5 - values)["eer"]
        assert_allclose(other, found, atol=1e-14)


def test_the_decision_decides():
    """Where both are given, labels come from the decision, and calibration from the probabilities."""
    probability = np.array([[0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4]])
    scores = classification_scores([0, 1, 1, 0], probability, [0, 1], [-1.0, 0.5, 2.0, -0.1])
    assert scores["accuracy"] == scores["auc"] == 1.0
    assert_allclose([scores["eer"], scores["calibration_error"]], [0.0, 0.1], atol=1e-15)
    only = classification_scores([0, 1, 1, 0], None, [0, 1], np.array([[-1.0], [0.5], [2.0], [0.0]]))
    assert set(only) == {"accuracy", "auc", "eer"}


def test_columns_follow_the_classes():
    truth, probability = predictions(40, 3)
    names = np.array(["pear", "apple", "fig"])
    scores = classification_scores(names[truth], probability, names)
    assert scores == classification_scores(truth, probability, [0, 1, 2])


def test_a_certain_wrong_answer_is_clipped():
    scores = classification_scores([0, 1], [[0.0, 1.0], [0.0, 1.0]], [0, 1])
    assert_allclose(scores["log_loss"], -0.5 * np.log(1e-15))
    assert scores["calibration_error"] == 0.5


def test_classes_without_samples():
    truth, probability = predictions(30, 3)
    with_two = truth < 2
    scores = classification_scores(truth[with_two], probability[with_two], [0, 1, 2])
    areas = [roc_auc_score(truth[with_two] == k, probability[with_two, k]) for k in (0, 1)]
    assert_allclose(scores["auc"], np.mean(areas))
    alone = classification_scores([1, 1], [[0.5, 0.5], [0.2, 0.8]], [0, 1])
    assert np.isnan(alone["auc"])
    assert np.isnan(alone["eer"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], None, [0, 1]), "nothing to score"),
        (([0, 2], [[0.5, 0.5], [0.5, 0.5]], [0, 1]), "not among the classes"),
        (([0, 1], [[0.5, 0.5], [0.5, 0.5]], [0, 0]), "different labels"),
        (([0, 1], [[0.5, 0.5], [0.5, 0.5]], [0]), "different labels"),
        (([], np.empty((0, 2)), [0, 1]), "one or more samples"),
        (([0, 1], [[0.5, 0.5]], [0, 1]), "probability: expected shape"),
        (([0, 1], [[0.5, 0.6], [0.5, 0.5]], [0, 1]), "sum to 1"),
        (([0, 1], [[-0.5, 1.5], [0.5, 0.5]], [0, 1]), "at least 0"),
        (([0, 1], [[np.nan, 1.0], [0.5, 0.5]], [0, 1]), "finite"),
        (([0, 1], None, [0, 1], [[1.0, 2.0], [1.0, 2.0]]), "decision: expected shape"),
        (([0, 1], None, [0, 1, 2], [1.0, 2.0]), "decision: expected shape"),
        (([0, 1], None, [0, 1], [1.0, np.inf]), "finite"),
    ],
)
def test_bad_predictions(arguments, message):
    with pytest.raises(ValueError, match=message):
        classification_scores(*arguments)


@pytest.mark.parametrize("n_outputs", [None, 1, 3])
def test_regression_against_slow_ways(n_outputs):
    generator = np.random.default_rng(SEED)
    shape = (50,) if n_outputs is None else (50, n_outputs)
    y, mean, deviation = generator.normal(size=shape), generator.normal(size=shape), generator.uniform(0.2, 1.5, shape)
    scores = regression_scores(y, mean, deviation)
    columns = [np.reshape(a, (50, -1)).T for a in (y, mean, deviation)]
    r2, rmse, density, coverage = [], [], [], []
    for t, m, s in zip(*columns, strict=True):
        r2.append(1.0 - np.sum((t - m) ** 2) / np.sum((t - t.mean()) ** 2))
        rmse.append(np.sqrt(np.mean((t - m) ** 2)))
        density.append(np.mean(norm.logpdf(t, m, s)))
        lower, upper = norm.interval(0.95, m, s)
        coverage.append(np.mean((lower <= t) & (t <= upper)))
    for name, values in (("r2", r2), ("rmse", rmse), ("log_density", density), ("coverage", coverage)):
        assert_allclose(scores[name], np.mean(values))
    assert set(regression_scores(y, mean)) == {"r2", "rmse"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0]), "at least two samples"),
        (([1.0, 2.0], [1.0, 2.0, 3.0]), "mean: expected the shape of y"),
        (([1.0, 2.0], [1.0, 2.0], [1.0]), "deviation: expected the shape of y"),
        (([1.0, 2.0], [1.0, 2.0], [1.0, 0.0]), "deviation: expected positive"),
        (([1.0, np.nan], [1.0, 2.0]), "y: expected finite"),
    ],
)
def test_bad_regressions(arguments, message):
    with pytest.raises(ValueError, match=message):
        regression_scores(*arguments)
