"""Tests of views and kernels mean what they say on planted problems."""

from dataclasses import replace

import numpy as np
import pytest
from marginal_problems import LIKELIHOODS, MATRICES, model_of, somewhere
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import gamma

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, load_model, save_model
from bemkl.kernels import default_bank
from bemkl.marginal import relevance as tested
from bemkl.marginal.climb import placed, quadratic, search
from bemkl.marginal.information import Information
from bemkl.marginal.relevance import _probability, _upper_tail

BANK = KernelBank([KernelSpec("gaussian", "each", {"width": [0.9, 1.7]})], standardise=True, scaling="spherical")


def planted(seed, n_samples, n_views, correlation=0.0):
    """Return views of which the first two matter, and responses."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n_samples, 1))
    views = {
        f"view {v}": np.sqrt(1.0 - correlation) * rng.normal(size=(n_samples, 3)) + np.sqrt(correlation) * common
        for v in range(n_views)
    }
    signal = np.sin(1.5 * views["view 0"][:, 0]) + 0.7 * views["view 1"][:, 0]
    return views, signal / signal.std() + 0.7 * rng.normal(size=n_samples)


TARGETS = {"responses": None, "labels": [0.0], "classes": [-0.5, 0.5]}
"""What is observed of responses: themselves, or between which values they lie."""


def fitted(seed, n_samples, n_views, *, targets="responses", correlation=0.0, **options):
    views, y = planted(seed, n_samples, n_views, correlation)
    model = BEMKLRegressor(BANK, **options) if TARGETS[targets] is None else BEMKLClassifier(BANK, **options)
    seen = y if TARGETS[targets] is None else np.digitize(y, TARGETS[targets])
    return model.set_params(posterior="marginal").fit(views, seen)


@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_false_positives_and_power(targets, correlation):
    """At a nominal 5 %, within three standard errors of 2 to 8 %; the two that matter are found."""
    found = [fitted(s, 120, 5, targets=targets, correlation=correlation).summary(by="view")["p"] for s in range(20)]
    irrelevant = np.array([p[f"view {v}"] for p in found for v in (2, 3, 4)])
    relevant = np.array([p[f"view {v}"] for p in found for v in (0, 1)])
    assert np.mean(irrelevant < 0.05) <= 0.08 + 3.0 * np.sqrt(0.05 * 0.95 / len(irrelevant))
    assert 0.3 < irrelevant.mean() < 0.7
    assert np.mean(relevant < 0.05) > 0.8


def test_what_is_lost_without_a_view_is_that_of_a_fit_without_it():
    model = fitted(0, 150, 3)
    table = model.summary(by="view", rounded=False)
    views, y = planted(0, 150, 3)
    for view in ("view 0", "view 2"):
        others = {name: values for name, values in views.items() if name != view}
        without = BEMKLRegressor(BANK, posterior="marginal").fit(others, y)
        # A refit learns its other parameters anew, and has fewer of them: some nats.
        assert_allclose(model.lower_bound_ - without.lower_bound_, table["evidence"][view], atol=6.0)
    assert table["loss"]["view 0"] > 3.0 * table["loss_std"]["view 0"]
    assert abs(table["loss"]["view 2"]) < 3.0 * table["loss_std"]["view 2"] + 0.01


def test_classes_and_several_outputs_have_tests_too():
    views, y = planted(1, 150, 3)
    for model in (
        BEMKLClassifier(BANK, posterior="marginal").fit(views, np.digitize(y, [-0.6, 0.6])),
        BEMKLRegressor(BANK, posterior="marginal").fit(views, np.column_stack([y, y**2])),
    ):
        p = model.summary(by="view")["p"]
        assert p["view 0"] < 0.01
        assert p["view 2"] > 0.01


def test_where_views_cannot_be_left_out_there_are_no_tests():
    views, y = planted(0, 60, 3)
    for model, reason in (
        (BEMKLRegressor(BANK), "only the marginal posterior"),
        (BEMKLRegressor(BANK, posterior="marginal", function_prior="kernel"), 'function_prior="sum"'),
        (BEMKLRegressor(BANK, posterior="marginal", landmarks=20, random_state=0), "without landmarks"),
    ):
        model.fit(views, y)
        assert "p" not in model.summary(by="view")
        assert "p" not in model.summary()
        with pytest.raises(ValueError, match=reason):
            model.without("view 0")
    alone = BEMKLRegressor(default_bank(views["view 0"]), posterior="marginal").fit(views["view 0"], y)
    assert "p" not in alone.summary(by="view")
    with pytest.raises(ValueError, match="It has one view only"):
        alone.without("all features")


def test_many_views_are_not_left_out(monkeypatch):
    monkeypatch.setattr(tested, "MOST_GROUPS", 3)
    assert "p" in fitted(0, 60, 3).summary(by="view")
    assert "p" not in fitted(0, 60, 3).summary()
    assert "p" not in fitted(0, 60, 4).summary(by="view")


def test_kernels_are_tested_like_views():
    """Those that are alone in their views are these; of several in a view, those without influence are rarely found."""
    lonely = KernelBank([KernelSpec("gaussian", "each", {"width": 1.7})], standardise=True, scaling="spherical")
    views, y = planted(0, 100, 4)
    model = BEMKLRegressor(lonely, posterior="marginal").fit(views, y)
    by_kernel, by_view = model.summary()["p"], model.summary(by="view")["p"]
    assert all(by_kernel[f"gaussian(w=1.7) on {view}"] == p for view, p in by_view.items())
    p = np.concatenate([fitted(seed, 80, 4).summary().filter(regex="view [23]", axis=0)["p"] for seed in range(10)])
    assert p.shape == (40,)
    assert np.mean(p < 0.05) <= 0.08 + 3.0 * np.sqrt(0.05 * 0.95 / len(p))


def test_without_a_view():
    model = fitted(0, 100, 3)
    table, found = model.summary(by="view", rounded=False).loc["view 1"], model.without("view 1")
    assert (found.evidence, found.loss, found.loss_std, found.p) == tuple(table[["evidence", "loss", "loss_std", "p"]])
    assert found.view == "view 1"
    with pytest.raises(ValueError, match="expected one of 'view 0', 'view 1', 'view 2', got 'view 7'"):
        model.without("view 7")


def test_selected_kernels_are_those_of_views_that_are_needed():
    model = fitted(0, 120, 5)
    p, largest = model.summary(by="view")["p"], model.kernel_weights_.max()
    expected = [
        m
        for m, name in enumerate(model.kernel_names_)
        if p[name.split(" on ")[1]] < 0.05 and model.kernel_weights_[m] > 0.01 * largest
    ]
    assert model.selected_kernels_.tolist() == expected
    assert 0 < len(expected) < 10


def test_chance_is_that_of_simulated_slopes():
    """Pseudo-observations are drawn as if nothing were left to find; slopes along a change fall as often above."""
    model = model_of("sum", LIKELIHOODS["Gaussian"])
    look = model.look(somewhere(model), [None])
    posterior, change = look.posteriors[0], np.zeros(model.n_kernels + 2)
    change[[0, 3, -2, -1]] = 1.0, -0.2, -0.1, -0.3
    matrix = np.tensordot(change[:-2], MATRICES, 1) + change[-2] + change[-1] * np.eye(len(MATRICES[0]))
    A = posterior.condition.residual_times(np.eye(len(matrix)))
    drawn = np.linalg.cholesky(A) @ np.random.default_rng(0).normal(size=(len(A), 40_000))
    slopes = 0.5 * (np.vecdot(drawn, matrix @ drawn, axis=0) - np.trace(A @ matrix))
    alpha = posterior.condition.alpha[:, 0]
    expected = np.mean(slopes >= 0.5 * (alpha @ matrix @ alpha - np.trace(A @ matrix)))
    assert_allclose(_probability(look, change), expected, atol=0.02)


def test_with_nothing_left_out_the_answer_is_the_step_of_the_quadratic():
    for likelihoods in (["Gaussian"], ["probit"], ["two outputs", "probit"]):
        model = model_of("sum", *(LIKELIHOODS[name] for name in likelihoods))
        spreads = np.full(len(model.effects.names), 0.5)
        parameters = somewhere(model)
        place = placed(model, parameters, spreads, model.look(parameters, [None] * len(likelihoods)))
        step, curvature = Information.of(model, place).answer(model, place, np.zeros(model.n_kernels, dtype=bool))
        assert_allclose(curvature, model.curvature(parameters, place.look), rtol=1e-8, atol=1e-8)
        assert_allclose(step, quadratic(model, place, spreads)[1], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("likelihood", ["Gaussian", "probit"])
def test_the_answer_to_a_kernel_that_is_left_out_goes_towards_the_best(likelihood):
    """The curvature is an expected one, of which 50 samples may be far: a quarter of the way is asked for."""
    model = model_of("sum", LIKELIHOODS[likelihood])
    spreads = np.full(len(model.effects.names), 0.5)
    place = placed(model, model.start, spreads, model.look(model.start, [None]))
    best, look = search(model, place, spreads, 1e-8)
    place = placed(model, best, spreads, look)
    out = np.arange(model.n_kernels) == 4
    step, curvature = Information.of(model, place).answer(model, place, out)
    others = replace(model, shown=np.where(out, 0.0, 1.0))

    def worth(parameters):
        return others.look(parameters, [None]).value + others.log_prior(parameters, spreads)

    start = replace(place, look=others.look(place.parameters, [None]), curvature=curvature)
    highest = worth(search(others, start, spreads, 1e-8)[0])
    assert highest - worth(place.parameters + step) < 0.75 * (highest - worth(place.parameters))


def test_copies_of_a_view_do_no_harm():
    views, y = planted(0, 100, 2)
    copied = views | {"copy": views["view 0"]}
    p = BEMKLRegressor(BANK, posterior="marginal").fit(copied, y).summary(by="view")["p"]
    assert np.isfinite(p).all()
    assert p["view 1"] < 0.05


@pytest.mark.parametrize("skewness", [0.5, 2.0])
def test_upper_tails_of_a_gamma_distribution(skewness):
    shape = 4.0 / skewness**2
    depths = np.array([-0.5, 0.0, 2.0, 5.0])
    expected = gamma(shape, loc=-np.sqrt(shape), scale=1.0 / np.sqrt(shape)).sf(depths)
    assert_allclose([_upper_tail(depth, skewness) for depth in depths], expected, rtol=1e-10)
    assert_allclose(_upper_tail(2.0, 0.0), _upper_tail(2.0, 2e-3), rtol=1e-2)


def test_what_was_found_out_is_saved(tmp_path):
    model = fitted(0, 60, 3)
    save_model(model, tmp_path / "model.bemkl")
    again = load_model(tmp_path / "model.bemkl")
    assert again.without("view 0") == model.without("view 0")
    assert_array_equal(again.posterior_.shares(), model.posterior_.shares())


def test_shares_are_those_of_the_variance():
    model = fitted(0, 100, 4)
    inside = np.repeat(np.eye(4), 2, axis=1)
    share, low, high = model.posterior_.shares(0.9, inside)
    assert_allclose(share, inside @ model.kernel_weights_ / model.kernel_weights_.sum(), rtol=1e-12)
    assert_allclose(inside @ model.posterior_.shares()[0], share, rtol=1e-12)
    assert np.all((low > 0.0) & (low < high) & (high < 1.0))
    wide = model.posterior_.shares(0.99, inside)
    assert np.all((wide[1] <= low) & (high <= wide[2]))


@pytest.mark.parametrize("labels", [False, True])
def test_intervals_of_shares_cover_planted_ones(labels):
    """Functions are drawn from the model: at a nominal 95 %, within three standard errors of 90 %."""
    covered = []
    for seed in range(12):
        views, _ = planted(seed, 120, 4)
        rng = np.random.default_rng(seed)
        share = rng.dirichlet(np.full(4, 3.0))
        kernels = BANK.fit_transform(views).dense().values
        covariance = np.tensordot(np.repeat(share, 2) / 2.0, kernels, 1) + 1e-8 * np.eye(120)
        y = np.linalg.cholesky(covariance) @ rng.normal(size=120) + 0.5 * rng.normal(size=120)
        model = BEMKLClassifier(BANK) if labels else BEMKLRegressor(BANK)
        model.set_params(posterior="marginal").fit(views, y > 0.0 if labels else y)
        _, low, high = model.posterior_.shares(0.95, np.repeat(np.eye(4), 2, axis=1))
        covered.append((low <= share) & (share <= high))
    assert np.mean(covered) >= 0.9 - 3.0 * np.sqrt(0.1 * 0.9 / np.size(covered))
