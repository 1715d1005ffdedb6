"""Classifier and regressor with the marginal posterior, as users see them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, cross_val_score

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, KernelStack, select_by_bound
from bemkl.exceptions import ConvergenceWarning

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(120, 4)), RNG.normal(size=(400, 4))
PREDICTOR, NEW_PREDICTOR = (np.sin(2.0 * x[:, 0]) + x[:, 1] for x in (X, NEW))
RESPONSES = PREDICTOR + 0.2 * RNG.normal(size=120)
NEW_RESPONSES = NEW_PREDICTOR + 0.2 * RNG.normal(size=400)
LABELS = np.where(RESPONSES > 0.0, "above", "below")
THREE = np.digitize(RESPONSES, [-0.7, 0.7])
BANK = KernelBank(
    [KernelSpec("gaussian", "each", {"width": [0.5, 1.0, 2.0]}), KernelSpec("linear", "all")],
    standardise=True,
    scaling="spherical",
)
PRIORS = ["sum", "kernel", "samples"]
WAYS = [(prior, landmarks) for prior in PRIORS for landmarks in (None, 60)]


def regressor(prior="sum", landmarks=None, **options):
    options = {"landmarks": landmarks, "random_state": 0} | options
    return BEMKLRegressor(BANK, posterior="marginal", function_prior=prior, **options)


def classifier(prior="sum", landmarks=None, **options):
    options = {"landmarks": landmarks, "random_state": 0} | options
    return BEMKLClassifier(BANK, posterior="marginal", function_prior=prior, **options)


@pytest.mark.parametrize(("prior", "landmarks"), WAYS)
class TestEveryWay:
    def test_responses_are_predicted_with_honest_deviations(self, prior, landmarks):
        model = regressor(prior, landmarks).fit(X, RESPONSES)
        mean, std = model.predict(NEW, return_std=True)
        assert model.score(NEW, NEW_RESPONSES) > 0.75
        covered = np.mean(np.abs(NEW_RESPONSES - mean) < 1.96 * std)
        assert 0.9 < covered < 0.995
        assert np.all(np.diff(model.lower_bounds_) >= 0.0)

    def test_labels_have_probabilities(self, prior, landmarks):
        model = classifier(prior, landmarks).fit(X, LABELS)
        probability = model.predict_proba(NEW)[:, 0]
        loss = -np.mean(np.where(NEW_RESPONSES > 0.0, np.log(probability), np.log(1.0 - probability)))
        assert loss < 0.45
        assert np.array_equal(model.predict(NEW) == "above", probability > 0.5)

    def test_classes_have_probabilities(self, prior, landmarks):
        model = classifier(prior, landmarks).fit(X, THREE)
        probability = model.predict_proba(NEW)
        assert_allclose(probability.sum(axis=1), 1.0)
        assert np.array_equal(model.predict(NEW), probability.argmax(axis=1))
        assert -np.log(probability[np.arange(400), np.digitize(NEW_RESPONSES, [-0.7, 0.7])]).mean() < 0.85

    def test_contributions_sum_to_decisions(self, prior, landmarks):
        for model, y in ((regressor(prior, landmarks), RESPONSES), (classifier(prior, landmarks), THREE)):
            model.fit(X, y)
            decisions = model.predict(NEW) if y is RESPONSES else model.decision_function(NEW)
            assert_allclose(model.contributions(NEW).sum(axis=1) + model.intercept_, decisions, atol=1e-8)
            combined = model.combined_kernel(NEW) @ model.dual_coef_ + model.intercept_
            assert_allclose(combined.reshape(decisions.shape), decisions, atol=1e-8)


def test_several_outputs_and_labels_share_weights():
    table = np.column_stack([RESPONSES, X[:, 2]])
    model = regressor().fit(X, table)
    assert model.predict(NEW).shape == model.predict(NEW, return_std=True)[1].shape == (400, 2)
    assert model.kernel_weights_.shape == (13,)
    several = classifier().fit(X, (table > 0.0).astype(int))
    assert several.predict_proba(NEW).shape == (400, 2)
    assert np.mean((several.predict(NEW)[:, 1] > 0) == (NEW[:, 2] > 0.0)) > 0.9


def test_the_best_evidence_wins():
    models = {prior: regressor(prior).fit(X, RESPONSES) for prior in PRIORS}
    chosen = regressor("evidence").fit(X, RESPONSES)
    assert chosen.lower_bound_ == max(model.lower_bound_ for model in models.values())
    search = select_by_bound(regressor(), {"function_prior": PRIORS}, X, RESPONSES)
    assert search.best_lower_bound == chosen.lower_bound_


def test_kernels_at_hand_give_what_their_bank_gives():
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": 1.0})], standardise=True)
    stack, new = bank.fit_transform(X), bank.transform(NEW)
    ours = BEMKLRegressor(bank, posterior="marginal", factor_tol=None).fit(X, RESPONSES)
    theirs = BEMKLRegressor("precomputed", posterior="marginal", factor_tol=None).fit(stack, RESPONSES)
    assert_allclose(theirs.predict(new, return_std=True), ours.predict(NEW, return_std=True), rtol=1e-6)


def test_linear_kernels_at_hand_need_no_diagonals():
    """What basis points explain of a linear kernel is all there is of it."""
    kernels, new = [X @ X.T], [NEW @ X.T]
    theirs = BEMKLRegressor("precomputed", posterior="marginal").fit(kernels, RESPONSES)
    ours = BEMKLRegressor(KernelBank([KernelSpec("linear")]), posterior="marginal").fit(X, RESPONSES)
    assert_allclose(theirs.predict(new, return_std=True)[1], ours.predict(NEW, return_std=True)[1], rtol=1e-3)


def test_the_size_and_the_order_of_kernels_make_no_difference():
    stack = BANK.fit_transform(X)
    model = BEMKLRegressor("precomputed", posterior="marginal").fit(stack, RESPONSES)
    names = list(reversed(stack.names))
    other = KernelStack([1e3 * np.asarray(stack[:, :, name])[..., 0] for name in names], names)
    again = BEMKLRegressor("precomputed", posterior="marginal").fit(other, RESPONSES)
    assert_allclose(again.lower_bound_, model.lower_bound_, rtol=1e-4)
    assert_allclose(again.predict(other), model.predict(stack), atol=1e-2)


@pytest.mark.parametrize("prior", PRIORS)
class TestTheSameInOtherWords:
    def test_order_of_samples(self, prior):
        order = np.random.default_rng(1).permutation(60)
        mean, std = regressor(prior).fit(X[:60], RESPONSES[:60]).predict(NEW, return_std=True)
        again = regressor(prior).fit(X[order], RESPONSES[order])
        # Sums in another order may end a climb elsewhere within its tolerance.
        assert_allclose(again.predict(NEW), mean, atol=1e-3)
        assert_allclose(again.predict(NEW, return_std=True)[1], std, rtol=1e-3)

    def test_unit_of_responses(self, prior):
        model = regressor(prior).fit(X[:60], RESPONSES[:60])
        again = regressor(prior).fit(X[:60], 50.0 - 7.0 * RESPONSES[:60])
        mean, std = model.predict(NEW, return_std=True)
        assert_allclose(again.predict(NEW, return_std=True), [50.0 - 7.0 * mean, 7.0 * std], rtol=1e-6)
        assert_allclose(again.lower_bound_, model.lower_bound_ - 60.0 * np.log(7.0), rtol=1e-8)

    def test_names_of_labels(self, prior):
        found = classifier(prior).fit(X[:60], LABELS[:60]).predict_proba(NEW)
        swapped = classifier(prior).fit(X[:60], LABELS[:60] == "below").predict_proba(NEW)
        assert_allclose(swapped, found, atol=1e-6)  # below comes second, as True does

    def test_landmarks_at_all_samples(self, prior):
        dense = regressor(prior).fit(X[:60], RESPONSES[:60])
        by_landmarks = regressor(prior, 60).fit(X[:60], RESPONSES[:60])
        # The jitter of 1e-8 is seen through the inverse of the combined kernel.
        assert_allclose(by_landmarks.lower_bound_, dense.lower_bound_, rtol=1e-5)
        assert_allclose(
            by_landmarks.predict(NEW, return_std=True), dense.predict(NEW, return_std=True), rtol=1e-3, atol=1e-3
        )

    def test_copies_of_kernels_change_shares_alone(self, prior):
        stack, new = BANK.fit_transform(X), BANK.transform(NEW)
        model = BEMKLRegressor("precomputed", posterior="marginal", function_prior=prior)
        mean, std = model.fit(stack, RESPONSES).predict(new, return_std=True)
        weights = model.kernel_weights_
        copied_mean, copied_std = model.fit(twice(stack), RESPONSES).predict(twice(new), return_std=True)
        # Two effects a kernel in place of one: their sum has a slightly different prior.
        assert_allclose(copied_mean, mean, atol=0.02 * mean.std())
        assert_allclose(copied_std, std, rtol=0.02)
        copied = model.kernel_weights_.reshape(2, -1).sum(axis=0)
        assert_allclose(copied, weights, atol=0.1 * weights.max())


def twice(stack):
    """Return kernels with a copy of each."""
    names = [*stack.names, *(f"copy of {name}" for name in stack.names)]
    return KernelStack([np.asarray(stack[:, :, name])[..., 0] for name in stack.names] * 2, names)


def test_planted_kernels_have_the_largest_shares():
    table = regressor().fit(X, RESPONSES).summary()
    shares = table["share"].groupby([name.split(" on ")[1] for name in table.index]).sum()
    assert set(shares.nlargest(2).index) <= {"x0", "x1", "all features"}
    assert shares[["x2", "x3"]].sum() < 0.1


@pytest.mark.parametrize("posterior", ["mean_field", "marginal"])
def test_views_sum_their_kernels(posterior):
    model = BEMKLRegressor(BANK, posterior=posterior).fit(X, RESPONSES)
    views, kernels = model.summary(by="view", rounded=False), model.summary(rounded=False)
    assert list(views["kernels"]) == [1 if view == "all features" else 3 for view in views.index]
    of = [name.split(" on ")[1] for name in kernels.index]
    for column in ("weight", "share"):
        assert_allclose(views[column], kernels[column].groupby(of).sum()[views.index], rtol=1e-12)
    assert np.all((views["low"] < views["weight"]) & (views["weight"] < views["high"]))
    assert_allclose(views["share"].sum(), 1.0)
    with pytest.raises(ValueError, match='by: expected "kernel" or "view"'):
        model.summary(by="scope")


def test_intervals_of_weights():
    model = regressor().fit(X, RESPONSES)
    low, high = model.weight_intervals(0.9)
    assert np.all(low > 0.0)
    assert np.all((low < model.kernel_weights_) & (model.kernel_weights_ < high))


def test_searches_and_scores_of_scikit_learn():
    assert cross_val_score(regressor(), X, RESPONSES, cv=3).mean() > 0.7
    search = GridSearchCV(classifier(), {"function_prior": ["sum", "kernel"]}, cv=2).fit(X, LABELS)
    assert search.best_score_ > 0.75


def test_the_same_call_gives_the_same_bits():
    one, other = (classifier().fit(X, LABELS).predict_proba(NEW) for _ in range(2))
    assert np.array_equal(one, other)


def test_too_few_steps_are_a_warning():
    with pytest.warns(ConvergenceWarning, match="max_iter=1 was reached") as caught:
        regressor(max_iter=1).fit(X, RESPONSES)
    assert caught[0].filename == __file__
    assert str(caught[0].message).endswith("Raise max_iter.")  # and no warm start, which it does not know


@pytest.mark.parametrize("prior", PRIORS)
def test_a_label_that_all_samples_have_is_expected_of_new_ones(prior):
    labels = np.column_stack([RESPONSES > 0.0, np.ones(120), np.zeros(120)]).astype(int)[:40]
    probability = classifier(prior).fit(X[:40], labels).predict_proba(NEW)
    assert np.all(probability[:, 1] > 0.95)
    assert np.all(probability[:, 2] < 0.05)
    alone = classifier(prior).fit(X[:40], LABELS[:40]).predict(NEW)
    # The labels share kernel weights, which moves few predictions.
    assert np.mean((probability[:, 0] > 0.5) == (alone == "above")) > 0.95


def test_a_constant_response_is_predicted():
    mean, std = regressor().fit(X[:30], np.full(30, 3.0)).predict(NEW, return_std=True)
    assert_allclose(mean, 3.0, rtol=1e-6)
    assert np.all(std < 1e-3)


def test_one_sample_leaves_nothing_to_leave_out():
    model = regressor().fit(X[:1], RESPONSES[:1])
    assert_allclose(model.predict(X[:1]), RESPONSES[:1])
    assert "p" not in model.summary(by="view").columns
    with pytest.raises(ValueError, match=r"without: this fit left no view out\. It has one sample only"):
        model.without("x0")


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"function_prior": "prod"}, LABELS, "function_prior: expected one of sum, kernel, samples, evidence"),
        ({"weights": "spike_slab"}, LABELS, "weights: the marginal posterior knows 'free' or 'nonnegative'"),
        ({"kernel_prior": (1.0, 1.0)}, LABELS, "kernel_prior: the marginal posterior knows 'dense' or 'sparse'"),
        ({"predictive": "paper"}, LABELS, "predictive: the marginal posterior knows 'exact'"),
        ({"warm_start": True}, LABELS, "warm_start: the marginal posterior knows False"),
        ({"n_init": 2}, LABELS, "n_init: the marginal posterior knows 1"),
        (
            {"sample_prior": (10.0, 0.1)},
            LABELS,
            r"sample_prior: the .* no such parameter, .* default, \(1.0, 1.0\)",
        ),
        ({"bias_prior": "sparse"}, LABELS, "bias_prior: the marginal posterior has no such parameter, got 'sparse'"),
        ({"intermediate_std": 0.1}, LABELS, "intermediate_std: the marginal posterior has no such parameter, got 0.1"),
        ({"margin": 0.0}, LABELS, "margin: the marginal posterior has no such parameter, got 0.0"),
        ({"acceleration": None}, LABELS, "acceleration: the marginal posterior has no such parameter, got None"),
        ({"multiclass": "ovr"}, THREE, 'multiclass: the marginal posterior knows "shared"'),
        ({"unlabeled": 2}, THREE, "unlabeled: the marginal posterior learns from labelled samples"),
        ({"posterior": "map"}, LABELS, "posterior: expected one of mean_field, marginal"),
    ],
)
def test_what_it_does_not_know_is_refused(options, y, message):
    with pytest.raises(ValueError, match=message):
        BEMKLClassifier(BANK, **({"posterior": "marginal"} | options)).fit(X, y)


def test_other_spellings_of_what_nobody_chose_are_taken():
    """The command line writes defaults in its own way."""
    spelt = {"sample_prior": "dense", "bias_prior": "dense", "intermediate_std": 1, "margin": np.float32(1.0)}
    one, other = (classifier(**options).fit(X, LABELS) for options in ({}, spelt))
    assert one.lower_bound_ == other.lower_bound_


def test_indefinite_kernels_are_refused_by_name():
    kernels = {"good": X @ X.T, "bad": X @ np.diag([1.0, 1.0, 1.0, -1.0]) @ X.T}
    with pytest.raises(ValueError, match=r"without negative eigenvalues, but 'bad' has one of -\d"):
        BEMKLRegressor("precomputed", posterior="marginal").fit(kernels, RESPONSES)


def test_too_many_samples_without_landmarks_are_refused():
    many = np.zeros((15_001, 1))
    many[::2] = 1.0
    with pytest.raises(ValueError, match=r"15001 samples would take 10 GB without landmarks. Pass landmarks=500"):
        BEMKLRegressor(KernelBank([KernelSpec("linear")]), posterior="marginal").fit(many, many[:, 0])
