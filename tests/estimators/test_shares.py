"""The share of right labels: whatever form labels come in, and also for classes that training never saw."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GroupKFold, cross_val_score

from bemkl import BEMKLClassifier, BEMKLMultiTask, BEMKLRegressor

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


class TestExplainedShare:
    """Scores of responses are held to what fits are."""

    MODEL = BEMKLRegressor(tol=1e-3).fit(X, X[:, 0])

    @pytest.mark.parametrize(
        ("y", "sentence"),
        [
            (X[:, 0] * 1e300, r"expected numbers of at most 1e\+50 in size, got .*Use another unit"),
            ([float("nan")] * len(X), "contains NaN.* Pass a number for each sample"),
            ([None] * len(X), "contains NaN.* Pass a number for each sample"),
            (None, r"expected responses of shape \(30,\), got None\. Pass those of the samples in X"),
            ("abc", "could not convert string to float.*Pass a number"),
            (X[:3, 0], r"expected responses of shape \(30,\), as the predictions have, got shape \(3,\)\. Pass"),
            (X, r"expected responses of shape \(30,\), as the predictions have, got shape \(30, 3\)"),
            (np.ma.masked_greater(X[:, 0], 0.0), "got a masked array.*Fill or remove"),
            (pl.DataFrame({"y": X[:, 0]}).lazy(), "expected a data frame with its values, got a LazyFrame. Collect"),
        ],
    )
    @pytest.mark.filterwarnings("error")
    def test_targets(self, y, sentence):
        with pytest.raises(ValueError, match=f"^y: .*{sentence}"):
            self.MODEL.score(X, y)
        several = BEMKLMultiTask(tol=1e-3).fit({"a": X}, {"a": X[:, 0]})
        with pytest.raises(ValueError, match="y"):
            several.score({"a": X}, {"a": y})

    @pytest.mark.parametrize(
        ("weights", "sentence"),
        [
            (np.ones(3), r"expected 30 weights, .*got shape \(3,\).* Pass a weight for each sample"),
            (-np.ones(30), "none below zero"),
            (np.zeros(30), "not all zero"),
            (np.full(30, 1e300), r"expected numbers of at most 1e\+50 in size"),
            ([None] * 30, "expected finite numbers"),
            ("abc", "expected real numbers"),
        ],
    )
    @pytest.mark.filterwarnings("error")
    def test_weights(self, weights, sentence):
        for model, y in ((self.MODEL, X[:, 0]), (BEMKLClassifier(tol=1e-3).fit(X, X[:, 0] > 0), X[:, 0] > 0)):
            with pytest.raises(ValueError, match=f"^sample_weight: .*{sentence}"):
                model.score(X, y, sample_weight=weights)

    def test_it_is_the_coefficient_of_determination(self):
        weights = np.arange(30.0)
        expected = r2_score(X[:, 0], self.MODEL.predict(X), sample_weight=weights)
        for y in (X[:, 0], X[:, :1], pd.Series(X[:, 0]), pl.Series(X[:, 0]), X[:, 0].tolist()):
            assert self.MODEL.score(X, y, sample_weight=weights) == expected
        both = BEMKLRegressor(tol=1e-3).fit(X, X)
        assert both.score(X, X) == r2_score(X, both.predict(X))


class TestTargetsOfPolars:
    LABELS = ["a", "b"] * 15

    @pytest.mark.parametrize(("row", "values"), [(29, [*LABELS[:29], None]), (0, [None, *LABELS[1:]])])
    def test_missing_labels(self, row, values):
        with pytest.raises(ValueError, match=rf"y: label {row} is missing\. Leave that sample out, or pass unlabeled="):
            BEMKLClassifier().fit(X, pl.Series(values))
        assert BEMKLClassifier(unlabeled=None, tol=1e-3).fit(X, pl.Series(values)).classes_.tolist() == ["a", "b"]

    @pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["a", "b"])])
    def test_labels(self, kind):
        model = BEMKLClassifier(tol=1e-3).fit(X, pl.Series(self.LABELS, dtype=kind))
        assert model.lower_bound_ == BEMKLClassifier(tol=1e-3).fit(X, self.LABELS).lower_bound_

    @pytest.mark.parametrize("model", [BEMKLClassifier(), BEMKLClassifier(unlabeled=None), BEMKLRegressor()])
    def test_what_is_not_computed_yet(self, model):
        with pytest.raises(ValueError, match=r"y: expected a data frame with its values, got a LazyFrame\. Collect it"):
            model.fit(X, pl.DataFrame({"y": self.LABELS}).lazy())
        with pytest.raises(ValueError, match=r"y: got a masked array.* Fill or remove"):
            model.fit(X, np.ma.masked_equal([0, 1] * 15, 1))
