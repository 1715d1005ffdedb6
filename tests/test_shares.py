"""The share of right labels: whatever form labels come in, and also for classes that training never saw."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GroupKFold, cross_val_score

from bemkl import BEMKLClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.where(X[:, 0] > 0.0, 1, 0)
WEIGHTS = RNG.uniform(size=30)
MODEL = BEMKLClassifier(tol=1e-3).fit(X, Y)


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        list,
        pd.Series,
        lambda y: y.astype(float),
        lambda y: y.astype(object),
        lambda y: y > 0,
        lambda y: pd.Series(y, dtype="Int64"),
    ],
)
def test_labels_in_any_form(form):
    y = np.where(np.arange(30) % 4 == 0, 1 - Y, Y)
    found = MODEL.predict(X)
    assert MODEL.score(X, form(y)) == pytest.approx(accuracy_score(y, found))
    weighted = accuracy_score(y, found, sample_weight=WEIGHTS)
    assert MODEL.score(X, form(y), sample_weight=WEIGHTS) == pytest.approx(weighted)


def test_strings():
    names = np.array(["no", "yes"])[Y]
    model = BEMKLClassifier(tol=1e-3).fit(X, names)
    for y in (names, names.tolist(), names.astype(object), pd.Series(names), pd.Series(names, dtype="category")):
        assert model.score(X, y) == pytest.approx(accuracy_score(names, model.predict(X)))


def test_a_label_that_training_never_saw_counts_as_wrong_with_a_warning():
    y = np.where(np.arange(30) < 3, 7, MODEL.predict(X))
    with pytest.warns(UserWarning, match=r"y: the labels \[7\] were not there in training, .* \[0, 1\]") as caught:
        assert MODEL.score(X, y) == pytest.approx(0.9)
    assert caught[0].filename == __file__


def test_folds_of_groups_have_a_score():
    """A class may live in one group only: its fold is a number, where it used to be NaN."""
    groups = np.repeat([0, 1, 2], 10)
    y = np.where(groups == 2, 2, Y)
    with pytest.warns(UserWarning, match="were not there in training"):
        scores = cross_val_score(BEMKLClassifier(tol=1e-3), X, y, groups=groups, cv=GroupKFold(3))
    assert np.isfinite(scores).all()
    assert scores.min() == 0.0


@pytest.mark.parametrize("marker", [None, "?", np.nan, -1])
def test_samples_without_a_label_do_not_count(marker):
    y = [marker if i % 3 == 0 else int(label) for i, label in enumerate(Y)]
    # One kind of labels: a string marks those without one among strings.
    y = [str(label) for label in y] if marker == "?" else y
    there = np.arange(30) % 3 != 0
    kernels = [X @ X.T, np.eye(30)]
    for samples, model in ((X, BEMKLClassifier()), (kernels, BEMKLClassifier("precomputed"))):
        model.set_params(unlabeled=marker, tol=1e-3).fit(samples, y)
        right = np.array([str(label) for label in y])[there] == model.predict(samples)[there].astype(str)
        assert model.score(samples, y) == pytest.approx(right.mean())


def test_several_labels():
    labels = np.column_stack([X[:, 0] > 0.0, X[:, 1] > 0.0]).astype(int)
    model = BEMKLClassifier(tol=1e-3).fit(X, labels)
    expected = accuracy_score(labels, model.predict(X))
    for y in (labels, labels.tolist(), csr_array(labels), pd.DataFrame(labels), labels > 0):
        assert model.score(X, y) == pytest.approx(expected)
