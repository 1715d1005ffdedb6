"""scikit-learn's tools around the estimators: each runs, and gives what doing it by hand gives."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, stack_kernels

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])]
BANK = KernelBank([KernelSpec("gaussian", on, {"width": [1.0, 3.0]}) for on in ([0, 1], [2, 3])])
STACK = clone(BANK).fit_transform(X)
FOLDS = StratifiedKFold(3)

INPUTS = {
    "bank": (BEMKLClassifier(BANK, tol=1e-3), X),
    "array": (BEMKLClassifier("precomputed", tol=1e-3), np.asarray(STACK)),
    "stack": (BEMKLClassifier("precomputed", tol=1e-3), STACK),
}


def by_hand(score):
    """Cross-validate without any tool, on the samples."""
    results = []
    for train, test in FOLDS.split(X, Y):
        model = BEMKLClassifier(BANK, tol=1e-3).fit(X[train], Y[train])
        results.append(score(model, test))
    return results


@pytest.mark.parametrize("kind", INPUTS)
class TestCrossValidation:
    """Gaussian kernels without standardisation do not depend on the fold, so kernels can be sliced."""

    def test_cross_val_score(self, kind):
        model, samples = INPUTS[kind]
        expected = by_hand(lambda model, test: model.score(X[test], Y[test]))
        assert_array_equal(cross_val_score(model, samples, Y, cv=FOLDS), expected)

    def test_cross_val_predict(self, kind):
        model, samples = INPUTS[kind]
        found = cross_val_predict(model, samples, Y, cv=FOLDS, method="predict_proba")
        expected = np.empty((60, 3))
        for (_, test), values in zip(
            FOLDS.split(X, Y), by_hand(lambda model, test: model.predict_proba(X[test])), strict=True
        ):
            expected[test] = values
        assert_allclose(found, expected, rtol=1e-8)

    def test_grid_search(self, kind):
        model, samples = INPUTS[kind]
        search = GridSearchCV(model, {"margin": [0.0, 1.0], "kernel_prior": ["dense", "sparse"]}, cv=FOLDS)
        search.fit(samples, Y)
        by_margin = clone(model).set_params(margin=0.0)
        assert_allclose(
            search.cv_results_["mean_test_score"][0], cross_val_score(by_margin, samples, Y, cv=FOLDS).mean()
        )
        assert search.predict(samples).shape == (60,)

    def test_nested(self, kind):
        model, samples = INPUTS[kind]
        search = GridSearchCV(model, {"margin": [0.0, 1.0]}, cv=2)
        assert len(cross_val_score(search, samples, Y, cv=FOLDS)) == 3

    def test_learning_curve(self, kind):
        model, samples = INPUTS[kind]
        sizes, train_scores, test_scores = learning_curve(model, samples, Y, train_sizes=[20, 40], cv=FOLDS)
        assert_array_equal(sizes, [20, 40])
        assert train_scores.shape == test_scores.shape == (2, 3)
        assert_array_equal(test_scores[1], by_hand(lambda model, test: model.score(X[test], Y[test])))

    def test_calibration(self, kind):
        model, samples = INPUTS[kind]
        # Without an ensemble the calibrator cross-validates, which slices kernels; with one it takes rows alone.
        calibrated = CalibratedClassifierCV(model, cv=3, ensemble=False).fit(samples, Y)
        probability = calibrated.predict_proba(samples)
        assert_allclose(probability.sum(axis=1), 1.0)
        if kind == "bank":
            assert CalibratedClassifierCV(model, cv=3).fit(X, Y).predict_proba(X).shape == (60, 3)
            frozen = FrozenEstimator(clone(model).fit(X[:40], Y[:40]))
            assert CalibratedClassifierCV(frozen).fit(X[40:], Y[40:]).predict_proba(X).shape == (60, 3)

    def test_several_scores(self, kind):
        model, samples = INPUTS[kind]
        scores = cross_validate(model, samples, Y, cv=FOLDS, scoring=["accuracy", "neg_log_loss", "roc_auc_ovr"])
        assert np.isfinite(scores["test_neg_log_loss"]).all()
        assert (scores["test_roc_auc_ovr"] > 0.5).all()

    def test_pipeline(self, kind):
        model, samples = INPUTS[kind]
        pipeline = Pipeline([("model", model)])
        assert_array_equal(
            cross_val_score(pipeline, samples, Y, cv=FOLDS), cross_val_score(model, samples, Y, cv=FOLDS)
        )


def test_slices_of_slices_share_the_matrices():
    part = STACK[np.ix_(np.arange(0, 60, 2), np.arange(0, 60, 3))]
    assert part._matrices is STACK._matrices
    again = part[np.ix_([1, 3], [0, 2])]
    assert_array_equal(np.asarray(again), np.asarray(STACK)[np.ix_([2, 6], [0, 6])])
    assert again._matrices is STACK._matrices


def test_indices_of_a_stack():
    array = np.asarray(STACK)
    for index in (np.s_[5:7], np.s_[[3, -1], ...], X[:, 0] > 0, np.s_[:, :, [2, 0]], np.s_[..., [1]]):
        assert_array_equal(np.asarray(STACK[index]), array[index])
    assert_array_equal(np.asarray(STACK[[4], ..., [1]]), array[[4]][..., [1]])
    name = STACK.names[1]
    assert STACK[:, :, name].names == (name,)
    assert_array_equal(np.asarray(STACK[:, :2, [name]])[..., 0], array[:, :2, 1])
    assert STACK[[]].shape == (0, 60, 4)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([True], "mask of 60"),
        ([60], "60"),
        ([0.5], "positions, a mask or a slice"),
        ((0, 0, 0, 0), "4 indices"),
        (np.s_[:, :, "nobody"], "no kernels"),
    ],
)
def test_bad_indices_of_a_stack(index, message):
    with pytest.raises(LookupError, match=message):
        STACK[index]


def test_a_bank_as_a_step_of_a_pipeline():
    """The bank makes kernels, the classifier takes them; folds split samples, not kernels."""
    pipeline = make_pipeline(clone(BANK), BEMKLClassifier("precomputed", tol=1e-3))
    assert_array_equal(cross_val_score(pipeline, X, Y, cv=FOLDS), cross_val_score(INPUTS["bank"][0], X, Y, cv=FOLDS))
    grid = {"bemklclassifier__kernel_prior": ["dense", "sparse"], "kernelbank__scaling": [None, "trace"]}
    assert GridSearchCV(pipeline, grid, cv=2).fit(X, Y).score(X, Y) > 0.5


def test_banks_can_be_searched():
    wide = KernelBank([KernelSpec("gaussian", "all", {"width": 10.0})])
    grid = {"kernels": [BANK, wide], "kernels__standardise": [False, True]}
    search = GridSearchCV(BEMKLClassifier(BANK, tol=1e-3), grid, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    random = RandomizedSearchCV(BEMKLRegressor(tol=1e-3), {"intermediate_std": [0.1, 1.0, "learn"]}, n_iter=2, cv=2)
    assert random.fit(X, X[:, 0]).best_score_ > 0.0


def test_clone():
    model = BEMKLClassifier(BANK, kernel_prior=(2.0, 1.0), landmarks=[1, 2, 3], random_state=7)
    copy = clone(model)
    ours, theirs = model.get_params(deep=False), copy.get_params(deep=False)
    assert ours.pop("kernels").specs == theirs.pop("kernels").specs
    assert ours == theirs
    copy.set_params(kernels__standardise=True)
    assert not model.kernels.standardise


def test_names_of_features_reach_the_kernels():
    table = pandas.DataFrame(X, columns=["age", "height", "weight", "dose"])
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": 1.0})])
    model = make_pipeline(StandardScaler(), BEMKLClassifier(bank, tol=1e-3)).set_output(transform="pandas")
    model.fit(table, Y)
    assert model[-1].kernel_names_[0] == "gaussian(w=1) on age"
    assert_array_equal(model[-1].feature_names_in_, table.columns)
    assert_array_equal(
        model[-1].predict(StandardScaler().fit(table).set_output(transform="pandas").transform(table)),
        model.predict(table),
    )
    fitted = clone(bank).fit(table)
    assert_array_equal(fitted.feature_names_in_, table.columns)
    assert_array_equal(fitted.get_feature_names_out(), model[-1].kernel_names_)
    with pytest.raises(ValueError, match="feature names should match"):
        model[-1].predict(table.rename(columns={"age": "years"}))


def test_set_output_of_a_bank_is_refused():
    """Kernels have three axes, a data frame has two."""
    assert not hasattr(BANK, "set_output")
    with pytest.raises(ValueError, match="Unable to configure output for KernelBank"):
        make_pipeline(clone(BANK), BEMKLClassifier("precomputed")).set_output(transform="pandas")


class TestSampleWeights:
    weights = rng.uniform(size=60)

    @pytest.mark.parametrize("model", [BEMKLClassifier(), BEMKLRegressor()])
    def test_fit_refuses_them_with_a_sentence(self, model):
        with pytest.raises(TypeError, match=r"sample_weight: BEMKL\w+\.fit takes no weights of samples"):
            model.fit(X, X[:, 0] > 0, sample_weight=self.weights)
        with pytest.raises(TypeError, match="unexpected keyword argument 'temperature'"):
            model.fit(X, X[:, 0] > 0, temperature=1.0)

    def test_routing(self):
        with config_context(enable_metadata_routing=True):
            model = BEMKLClassifier(BANK, tol=1e-3).set_score_request(sample_weight=True)
            weighted = cross_val_score(model, X, Y, cv=FOLDS, params={"sample_weight": self.weights})
            expected = by_hand(
                lambda model, test: np.average(model.predict(X[test]) == Y[test], weights=self.weights[test])
            )
            assert_allclose(weighted, expected)
            assert not hasattr(model, "set_fit_request")
            with pytest.raises(UnsetMetadataPassedError):
                cross_val_score(BEMKLClassifier(), X, Y, cv=FOLDS, params={"sample_weight": self.weights})


def test_other_meta_estimators():
    voting = VotingClassifier([("a", BEMKLClassifier(tol=1e-3)), ("b", BEMKLClassifier(BANK, tol=1e-3))], voting="soft")
    assert voting.fit(X, Y).score(X, Y) > 0.5
    several = MultiOutputClassifier(BEMKLClassifier(tol=1e-3)).fit(X, np.column_stack([X[:, 0] > 0, X[:, 1] > 0]))
    assert several.predict(X).shape == (60, 2)
    model = BEMKLRegressor(tol=1e-3).fit(X, X[:, 0])
    importance = permutation_importance(model, X, X[:, 0], n_repeats=3, random_state=0).importances_mean
    assert importance.argmax() == 0
    assert get_scorer("r2")(model, X, X[:, 0]) == model.score(X, X[:, 0])


def test_stacks_from_stacks():
    assert stack_kernels(STACK) is STACK
    assert_array_equal(np.asarray(stack_kernels(np.asarray(STACK))), np.asarray(STACK))
    assert stack_kernels([X @ X.T, np.eye(60)], names=["linear", "identity"]).names == ("linear", "identity")
    with pytest.raises(ValueError, match="by a copy"):
        np.array(STACK, copy=False)
