"""Tests of views mean what they say on planted problems."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import gamma

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec
from bemkl.kernels import default_bank
from bemkl.marginal.relevance import _upper_tail

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


def fitted(seed, n_samples, n_views, *, labels=False, correlation=0.0, **options):
    views, y = planted(seed, n_samples, n_views, correlation)
    model = BEMKLClassifier(BANK, **options) if labels else BEMKLRegressor(BANK, **options)
    return model.set_params(posterior="marginal").fit(views, y > 0.0 if labels else y)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_false_positives_and_power(labels, correlation):
    """At a nominal 5 %, within three standard errors of 2 to 8 %; the two that matter are found."""
    found = [fitted(s, 120, 5, labels=labels, correlation=correlation).summary(by="view")["p"] for s in range(20)]
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
    for model in (
        BEMKLRegressor(BANK),
        BEMKLRegressor(BANK, posterior="marginal", function_prior="kernel"),
        BEMKLRegressor(BANK, posterior="marginal", landmarks=20, random_state=0),
    ):
        assert "p" not in model.fit(views, y).summary(by="view")
    alone = BEMKLRegressor(default_bank(views["view 0"]), posterior="marginal").fit(views["view 0"], y)
    assert "p" not in alone.summary(by="view")


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
