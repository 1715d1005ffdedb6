"""The estimators against the engine, and against themselves by another way."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.exceptions import NotFittedError

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, paper_bank, stack_kernels
from bemkl.distributions import Gamma, PointMass
from bemkl.estimators.summary import WeightTable
from bemkl.exceptions import ConvergenceWarning
from bemkl.inference import (
    SPARSE,
    Block,
    Free,
    Gaussian,
    NewtonMeans,
    NewtonWeights,
    Plain,
    Priors,
    Probit,
    Problem,
    integrated_weights,
    predict,
    run,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
NEW = rng.normal(size=(15, 4))
BINARY = X[:, 0] * X[:, 1] > 0
THREE = np.array(["low", "mid", "high"])[np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])]
LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
BANK = KernelBank([KernelSpec("gaussian", on, {"width": [1.0, 3.0]}) for on in ([0, 1], [2, 3], "all")])


def engine(likelihood, predictive="exact", **priors):
    """Return the run, and what it predicts for the new samples."""
    stack, new = clone(BANK).fit_factored(X), clone(BANK).fit(X).transform(NEW).dense()
    problem = Problem([Block(stack, likelihood)], Priors(**priors), NewtonWeights(), NewtonMeans())
    result = run(problem)
    return result, predict(problem, result.state, new, predictive=predictive)


class TestAgainstTheEngine:
    """The same numbers as calling the engine by hand."""

    def test_binary(self):
        model = BEMKLClassifier(BANK, kernel_prior="sparse", intermediate_std=0.5, margin=0.5).fit(X, BINARY)
        likelihood = Probit(np.where(BINARY, 1, -1), margin=0.5)
        result, expected = engine(likelihood, kernel=SPARSE, intermediate=PointMass.from_std(0.5))
        assert_array_equal(model.decision_function(NEW), expected.mean[:, 0])
        assert_array_equal(model.predict_proba(NEW)[:, 1], expected.probability[:, 0])
        assert_array_equal(model.predict(NEW), expected.mean[:, 0] > 0)
        assert_array_equal(model.lower_bounds_, result.lower_bounds)
        assert model.n_iter_ == result.n_iter
        assert model.converged_
        weights, integrated = (each.moments(0) for each in (result.state.weights, integrated_weights(result.state)))
        assert_array_equal(model.kernel_weights_, weights.mean)
        assert_array_equal(model.kernel_weights_std_, np.sqrt(integrated.covariance.diagonal()))
        assert_array_equal(model.posterior_.weights.covariance, result.state.weights.covariance)

    def test_shared_multiclass(self):
        model = BEMKLClassifier(BANK).fit(X, THREE)
        assert_array_equal(model.classes_, ["high", "low", "mid"])
        _, expected = engine(Probit(np.where(THREE[:, None] == model.classes_, 1, -1)))
        assert_array_equal(model.decision_function(NEW), expected.mean)
        probability = expected.probability / expected.probability.sum(axis=1, keepdims=True)
        assert_allclose(model.predict_proba(NEW), probability, rtol=1e-14)
        assert_array_equal(model.predict(NEW), model.classes_[expected.mean.argmax(axis=1)])
        assert model.kernel_weights_.shape == (6,)

    def test_own_weights_are_binary_classifiers(self):
        model = BEMKLClassifier(BANK, multiclass="ovr").fit(X, THREE)
        single = [BEMKLClassifier(BANK).fit(X, label == THREE) for label in model.classes_]
        assert_array_equal(model.kernel_weights_, [one.kernel_weights_ for one in single])
        assert_allclose(
            model.decision_function(NEW), np.column_stack([one.decision_function(NEW) for one in single]), rtol=1e-12
        )
        positive = np.column_stack([one.predict_proba(NEW)[:, 1] for one in single])
        assert_allclose(model.predict_proba(NEW), positive / positive.sum(axis=1, keepdims=True), rtol=1e-12)
        assert_allclose(model.lower_bound_, sum(one.lower_bound_ for one in single), rtol=1e-12)
        assert len(model.lower_bounds_) == model.n_iter_ == max(one.n_iter_ for one in single)
        assert len(model.posterior_) == 3

    def test_several_labels(self):
        model = BEMKLClassifier(BANK).fit(X, LABELS)
        _, expected = engine(Probit(2 * LABELS - 1))
        assert_array_equal(model.predict_proba(NEW), expected.probability)
        assert_array_equal(model.predict(NEW), (expected.mean > 0).astype(int))
        own = BEMKLClassifier(BANK, multiclass="ovr").fit(X, LABELS)
        assert own.kernel_weights_.shape == (2, 6)
        assert own.predict(NEW).shape == (15, 2)

    @pytest.mark.parametrize("outputs", [1, 2])
    def test_regression(self, outputs):
        y = 50.0 + 7.0 * np.sin(X[:, :outputs])
        model = BEMKLRegressor(BANK, noise_prior=(2.0, 0.5)).fit(X, y if outputs > 1 else y[:, 0])
        mean, std = y.mean(axis=0), y.std(axis=0)
        _, expected = engine(Gaussian((y - mean) / std, noise=Gamma(2.0, 0.5)))
        found, deviation = model.predict(NEW, return_std=True)
        shape = (15, 2) if outputs > 1 else (15,)
        assert_allclose(found, (expected.mean * std + mean).reshape(shape), rtol=1e-14)
        assert_allclose(deviation, (np.sqrt(expected.variance) * std).reshape(shape), rtol=1e-14)
        assert_allclose(model.predict(NEW), found, rtol=1e-12)
        lower, upper = model.predict_interval(NEW, coverage=0.8)
        assert_allclose(upper - lower, 2.0 * ndtri(0.9) * deviation, rtol=1e-12)
        assert_allclose(0.5 * (lower + upper), found, rtol=1e-12)

    def test_responses_as_they_are(self):
        y = X[:, 0]
        model = BEMKLRegressor(BANK, normalize_y=False).fit(X, y)
        assert model.lower_bound_ == engine(Gaussian(y))[0].lower_bound

    def test_the_papers_iteration(self):
        model = BEMKLClassifier(BANK, acceleration=None, max_iter=30, tol=None).fit(X, BINARY)
        stack = clone(BANK).fit_factored(X)
        problem = Problem([Block(stack, Probit(np.where(BINARY, 1, -1)))], weights=Free(), pair=Plain())
        assert_array_equal(model.lower_bounds_, run(problem, max_iter=30, tol=None).lower_bounds)

    def test_the_papers_rule(self):
        model = BEMKLClassifier(BANK, predictive="paper").fit(X, BINARY)
        _, expected = engine(Probit(np.where(BINARY, 1, -1)), predictive="paper")
        assert_array_equal(model.predict_proba(NEW)[:, 1], expected.probability[:, 0])


class TestExplanations:
    @pytest.mark.parametrize("multiclass", ["shared", "ovr", "pooled", "multinomial"])
    @pytest.mark.parametrize(
        ("y", "ends"), [(BINARY, ()), (THREE, (3,)), (LABELS, (2,))], ids=["two", "three", "labels"]
    )
    def test_contributions_and_intercept_sum_to_the_decision(self, y, ends, multiclass):
        """One number a sample for two classes, also where two scores compete; else one for each class or label."""
        if multiclass == "multinomial" and y is LABELS:
            return
        model = BEMKLClassifier(BANK, multiclass=multiclass).fit(X, y)
        parts, decision = model.contributions(NEW), model.decision_function(NEW)
        assert parts.shape == (15, 6, *ends)
        assert model.intercept_.shape == (ends or (1,))
        total = parts.sum(axis=1) + (model.intercept_ if ends else model.intercept_[0])
        assert_allclose(total, decision, rtol=1e-10, atol=1e-12)
        kernel = model.combined_kernel(NEW)
        shared = kernel.ndim == 2
        by_kernel = kernel @ model.dual_coef_ if shared else np.einsum("idc,dc->ic", kernel, model.dual_coef_)
        assert_allclose((by_kernel + model.intercept_).reshape(decision.shape), decision, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("outputs", [1, 2])
    def test_for_responses_in_their_own_units(self, outputs):
        y = 50.0 + 7.0 * X[:, :outputs]
        model = BEMKLRegressor(BANK).fit(X, y if outputs > 1 else y[:, 0])
        total = model.contributions(NEW).sum(axis=1) + (model.intercept_ if outputs > 1 else model.intercept_[0])
        assert_allclose(total, model.predict(NEW), rtol=1e-12)
        kernel = model.combined_kernel(NEW)
        by_kernel = kernel @ model.dual_coef_ + model.intercept_
        assert_allclose(by_kernel.reshape(model.predict(NEW).shape), model.predict(NEW), rtol=1e-12)

    def test_selected_kernels(self):
        for multiclass, y in (("shared", BINARY), ("ovr", THREE)):
            model = BEMKLClassifier(BANK, kernel_prior="sparse", multiclass=multiclass).fit(X, y)
            size = np.atleast_2d(np.abs(model.kernel_weights_))
            expected = (size > 0.01 * size.max(axis=1, keepdims=True)).any(axis=0)
            assert_array_equal(model.selected_kernels_, np.flatnonzero(expected))

    def test_summary(self):
        model = BEMKLClassifier(BANK).fit(X, BINARY)
        table = model.summary()
        assert isinstance(table, pandas.DataFrame)
        assert sorted(table.index) == sorted(model.kernel_names_)
        assert table["weight"].abs().is_monotonic_decreasing
        assert_allclose(table["share"].sum(), 1.0, atol=1e-3)
        order = [model.kernel_names_.index(name) for name in table.index]
        half = ndtri(0.975) * model.kernel_weights_std_[order]
        assert_allclose(table["high"] - table["weight"], half, atol=2e-3)
        narrow = model.summary(coverage=0.5)
        assert (narrow["high"] < table["high"]).all()
        own = BEMKLClassifier(BANK, multiclass="ovr").fit(X, THREE).summary()
        assert own.index.names == ["class", "kernel"]
        assert len(own) == 18

    def test_summary_without_pandas(self, monkeypatch):
        model = BEMKLClassifier(BANK).fit(X, BINARY)
        monkeypatch.setitem(__import__("sys").modules, "pandas", None)
        table = model.summary()
        assert isinstance(table, WeightTable)
        assert len(table) == len(str(table).splitlines()) - 1 == 6
        assert table["weight"][0] == table[0]["weight"] == next(iter(table))["weight"]
        assert len(table[:2]) == 2
        assert table.columns == ["kernel", "weight", "std", "low", "high", "share"]


class TestPrecomputed:
    stack = clone(BANK).fit_transform(X)
    new = clone(BANK).fit(X).transform(NEW)

    def forms(self, stack):
        array = np.asarray(stack)
        matrices = [array[..., m] for m in range(array.shape[2])]
        return {
            "array": array,
            "stack": stack,
            "list": matrices,
            "dict": dict(zip(stack.names, matrices, strict=True)),
        }

    @pytest.mark.parametrize("form", ["array", "stack", "list", "dict"])
    def test_every_form_equals_the_bank(self, form):
        """Forms to the last bit; the kernels of a bank are computed in another way, to a few digits less."""
        expected, given = BEMKLClassifier(BANK).fit(X, BINARY), BEMKLClassifier("precomputed").fit(self.stack, BINARY)
        model = BEMKLClassifier("precomputed").fit(self.forms(self.stack)[form], BINARY)
        new = self.forms(self.new)[form]
        assert_array_equal(model.predict_proba(new), given.predict_proba(self.new))
        assert_allclose(model.predict_proba(new), expected.predict_proba(NEW), rtol=1e-12)
        # Small contributions are sums that cancel: one of 1.3e-4 has terms of 1.2 together here, and their rounding.
        contributions = expected.contributions(NEW)
        assert_allclose(model.contributions(new), contributions, rtol=0, atol=1e-13 * np.abs(contributions).max())
        if form in ("stack", "dict"):
            assert model.kernel_names_ == expected.kernel_names_

    def test_named_kernels_may_come_in_another_order(self):
        model = BEMKLRegressor("precomputed").fit(self.stack, X[:, 0])
        turned = dict(reversed(self.forms(self.new)["dict"].items()))
        assert_array_equal(model.predict(turned), model.predict(self.new))

    def test_single_matrix(self):
        model = BEMKLRegressor("precomputed").fit(X @ X.T, X[:, 0])
        assert model.predict(NEW @ X.T).shape == (15,)
        assert model.kernel_names_ == ["kernel 0"]

    def test_float32_kernels_stay_float32_and_are_solved_in_float64(self):
        stack = stack_kernels(np.asarray(self.stack).astype(np.float32))
        assert stack.dtype == np.float32
        assert stack.dense().values.dtype == np.float32
        model = BEMKLRegressor("precomputed").fit(stack, X[:, 0])
        assert model.dual_coef_.dtype == np.float64
        reference = BEMKLRegressor("precomputed").fit(np.asarray(stack, dtype=np.float64), X[:, 0])
        assert_allclose(model.predict(self.new), reference.predict(self.new), rtol=1e-8)

    def test_float32_samples_give_float32_stacks(self):
        for samples in (X.astype(np.float32), pandas.DataFrame(X.astype(np.float32)), {"a": X.astype(np.float32)}):
            specs = [KernelSpec("gaussian", "all", {"width": 1.0})]
            bank = KernelBank(specs, standardise=True, scaling="spherical")
            assert bank.fit_transform(samples).dense().values.dtype == np.float32
            assert bank.transform(samples).dtype == np.float32
        mixed = {"a": X.astype(np.float32), "b": X}
        assert KernelBank([KernelSpec("linear")]).fit_transform(mixed).dtype == np.float64


class TestLandmarks:
    def test_all_rows_as_landmarks_are_the_dense_model(self):
        dense = BEMKLClassifier(BANK).fit(X, BINARY)
        model = BEMKLClassifier(BANK, landmarks=np.arange(60)).fit(X, BINARY)
        assert_allclose(model.predict_proba(NEW), dense.predict_proba(NEW), rtol=1e-9)
        assert_allclose(model.lower_bound_, dense.lower_bound_, rtol=1e-10)

    @pytest.mark.parametrize("landmarks", [20, ("kmeans++", 20), ("pivoted", 20), list(range(20))])
    @pytest.mark.parametrize("scaling", [None, "spherical", "centred", "trace"])
    def test_bank_and_kernels_agree(self, landmarks, scaling):
        bank = KernelBank(BANK.specs, standardise=True, scaling=scaling)
        model = BEMKLClassifier(bank, landmarks=landmarks, random_state=1, tol=1e-4).fit(X, BINARY)
        assert model.landmarks_.shape == (20,)
        assert model.dual_coef_.shape == (20, 1)
        assert model.combined_kernel(NEW).shape == (15, 20)
        fitted = clone(bank)
        train = fitted.fit_transform(X, basis=model.landmarks_)
        rows = BEMKLClassifier("precomputed", landmarks=model.landmarks_, tol=1e-4).fit(train, BINARY)
        assert_allclose(rows.predict_proba(fitted.transform(NEW)), model.predict_proba(NEW), rtol=1e-10)

    def test_square_kernels(self):
        stack = clone(BANK).fit_transform(X)
        new = clone(BANK).fit(X).transform(NEW)
        model = BEMKLClassifier("precomputed", landmarks=("pivoted", 25)).fit(stack, BINARY)
        by_bank = BEMKLClassifier(BANK, landmarks=("pivoted", 25)).fit(X, BINARY)
        assert_array_equal(model.landmarks_, by_bank.landmarks_)
        assert_allclose(model.predict_proba(new), by_bank.predict_proba(NEW), rtol=1e-9)
        assert_array_equal(model.predict_proba(new[:, model.landmarks_]), model.predict_proba(new))

    def test_strategies_stop_by_themselves(self):
        x = np.repeat(5.0 * rng.normal(size=(8, 4)), 6, axis=0)
        for strategy in ("kmeans++", "pivoted"):
            model = BEMKLRegressor(BANK, landmarks=strategy, random_state=0, tol=1e-3).fit(x, x[:, 0])
            assert len(model.landmarks_) == 8
            assert len(np.unique(x[model.landmarks_], axis=0)) == 8
        more = BEMKLRegressor(BANK, landmarks=("pivoted", 12), tol=1e-3).fit(x, x[:, 0])
        assert len(np.unique(more.landmarks_)) == 12

    def test_a_good_choice_beats_a_bad_one(self):
        """Half the landmarks of a spread-out set keep most of the accuracy."""
        data, y = load_wine(return_X_y=True)
        full = BEMKLClassifier(tol=1e-4).fit(data[::2], y[::2]).score(data[1::2], y[1::2])
        few = BEMKLClassifier(landmarks=30, random_state=0, tol=1e-4).fit(data[::2], y[::2]).score(data[1::2], y[1::2])
        assert few > full - 0.05

    def test_the_seed_decides(self):
        first, again, other = (
            BEMKLRegressor(BANK, landmarks=10, random_state=seed, tol=1e-3).fit(X, X[:, 0]).landmarks_
            for seed in (3, 3, 4)
        )
        assert_array_equal(first, again)
        assert not np.array_equal(first, other)


class TestEffort:
    def test_more_starts_never_lower_the_bound(self):
        one = BEMKLClassifier(paper_bank(), kernel_prior="sparse", tol=1e-4).fit(X, BINARY)
        more = clone(one).set_params(n_init=3, random_state=0).fit(X, BINARY)
        assert more.lower_bound_ >= one.lower_bound_

    def test_threads_change_nothing(self):
        for parameters in ({"multiclass": "ovr"}, {"n_init": 3, "random_state": 0}):
            one = BEMKLClassifier(BANK, tol=1e-4, **parameters).fit(X, THREE)
            two = BEMKLClassifier(BANK, tol=1e-4, n_jobs=2, **parameters).fit(X, THREE)
            assert_array_equal(one.predict_proba(NEW), two.predict_proba(NEW))

    def test_warm_start_goes_on(self):
        """What samples had is found again: no step back, and the same end."""
        whole = BEMKLClassifier(BANK, max_iter=200, tol=None).fit(X, BINARY)
        parts = BEMKLClassifier(BANK, max_iter=3, tol=None, warm_start=True).fit(X, BINARY)
        reached = parts.lower_bound_
        parts.set_params(max_iter=200).fit(X, BINARY)
        assert parts.lower_bounds_[0] >= reached
        assert_allclose(parts.lower_bound_, whole.lower_bound_, rtol=1e-8)
        assert_allclose(parts.predict_proba(NEW), whole.predict_proba(NEW), atol=1e-4)

    def test_warm_start_of_another_problem_is_refused(self):
        model = BEMKLClassifier(BANK, tol=1e-3, warm_start=True, multiclass="ovr").fit(X, THREE)
        with pytest.raises(ValueError, match="warm_start: the last fit was of another problem"):
            model.fit(X, BINARY)
        with pytest.raises(ValueError, match="Set warm_start=False, or fit a clone"):
            model.fit(X[:50], THREE[:50])

    def test_one_warning_for_all_runs(self):
        with pytest.warns(ConvergenceWarning, match=r"max_iter=3 was reached .* in 3 of 3 runs") as caught:
            BEMKLClassifier(BANK, max_iter=3, multiclass="ovr").fit(X, THREE)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert str(caught[0].message).endswith("Raise max_iter, or call fit again with warm_start=True to go on.")

    def test_the_same_call_gives_the_same_bits(self):
        first, again = (BEMKLRegressor().fit(X, X[:, 0]).predict(NEW, return_std=True) for _ in range(2))
        assert_array_equal(first, again)


def test_learned_deviation_and_priors():
    model = BEMKLRegressor(
        BANK, intermediate_std="learn", sample_prior=Gamma(2.0, 1.0), bias_prior="dense", tol=1e-4
    ).fit(X, X[:, 0])
    assert isinstance(model.posterior_.blocks[0].intermediate_precision, Gamma)


def test_default_kernels():
    iris = load_iris()
    model = BEMKLClassifier(tol=1e-4).fit(iris.data[::2], iris.target[::2])
    assert len(model.kernel_names_) == 6
    assert model.score(iris.data[1::2], iris.target[1::2]) > 0.9
    diabetes = load_diabetes()
    regressor = BEMKLRegressor(tol=1e-4).fit(diabetes.data[::2], diabetes.target[::2])
    assert regressor.score(diabetes.data[1::2], diabetes.target[1::2]) > 0.4
    lower, upper = regressor.predict_interval(diabetes.data[1::2], coverage=0.9)
    inside = np.mean((diabetes.target[1::2] > lower) & (diabetes.target[1::2] < upper))
    # 221 Bernoulli draws of probability 0.9 have a deviation of 0.02.
    assert 0.8 < inside <= 1.0
    views = {"numbers": X, "text": ["GATTACA" if label else "CATCAT" for label in BINARY]}
    assert BEMKLClassifier(tol=1e-3).fit(views, BINARY).score(views, BINARY) == 1.0


def test_labels_of_any_kind():
    for labels in (["no", "yes"], [-1, 1], [0, 1], [3.0, 7.0], [False, True]):
        y = np.array(labels)[BINARY.astype(int)]
        model = BEMKLClassifier(BANK, tol=1e-4).fit(X, y)
        assert_array_equal(model.classes_, labels)
        assert set(model.predict(NEW)) <= set(labels)
        assert model.predict(NEW).dtype == y.dtype
        assert model.score(X, y) > 0.9
    assert_array_equal(BEMKLClassifier(tol=1e-3).fit(X, pandas.Series(THREE)).classes_, ["high", "low", "mid"])


def test_probabilities_far_from_all_data_are_finite():
    model = BEMKLClassifier(KernelBank([KernelSpec("linear")]), tol=1e-4).fit(X, THREE)
    probability = model.predict_proba(1e6 * NEW)
    assert np.isfinite(probability).all()
    assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)


def test_not_fitted():
    for model in (BEMKLClassifier(), BEMKLRegressor()):
        for call in (model.predict, model.contributions, model.combined_kernel):
            with pytest.raises(NotFittedError):
                call(X)
        with pytest.raises(NotFittedError):
            model.summary()
