"""Intervals of kernel weights: quantiles of each family's posterior, against sampling and SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri
from scipy.stats import truncnorm

from bemkl import BEMKLClassifier, BEMKLMultiTask, KernelBank, KernelSpec
from bemkl._numerics.special import log_ndtr, truncated_quantile
from bemkl.inference.moments import SpikesAndSlabs, TruncatedNormals

rng = np.random.default_rng(3)
X = rng.uniform(-2.0, 2.0, size=(80, 4))
Y = np.sin(2.0 * X[:, 0]) + 0.3 * np.sin(2.0 * X[:, 1]) > 0.0
BANK = KernelBank([KernelSpec("gaussian", "each", {"width": 0.7})])


@pytest.mark.parametrize("depth", [-30.0, -3.0, 0.0, 1.5, 20.0])
def test_truncated_quantiles_against_scipy(depth):
    p = np.array([0.001, 0.025, 0.5, 0.975, 0.999])
    expected = truncnorm.ppf(p, -depth, np.inf, loc=depth)
    assert_allclose(truncated_quantile(np.full(5, depth), p), expected, rtol=1e-7)


def test_truncated_quantiles_where_nearly_all_is_cut_away():
    """The two formulas meet, and deep down the distribution is exponential."""
    p = np.array([1e-9, 0.025, 0.975, 1.0 - 1e-12])
    either_side = [truncated_quantile(np.full(4, -5.0 * factor), p) for factor in (1.0 - 1e-13, 1.0 + 1e-13)]
    assert_allclose(*either_side, rtol=1e-10, atol=1e-14)
    for depth in (-20.0, -1000.0):
        x = truncated_quantile(np.full(4, depth), p)
        assert_allclose(np.exp(log_ndtr(depth - x) - log_ndtr(depth)), 1.0 - p, rtol=1e-8, atol=1e-15)
    p = p[1:3]
    assert_allclose(truncated_quantile(np.full(2, -1e12), p), -np.log1p(-p) / 1e12, rtol=1e-12)


def test_truncated_normals_against_sampling():
    location, deviation = np.array([-1.0, 0.0, 0.4, 3.0]), np.array([0.5, 1.0, 0.2, 2.0])
    normal = location + deviation * rng.normal(size=(400_000, 4))
    p = np.array([0.025, 0.5, 0.975])
    expected = np.stack([np.quantile(values[values >= 0.0], p) for values in normal.T], axis=1)
    found = TruncatedNormals(location, deviation).quantile(p[:, None])
    assert_allclose(found, expected, atol=0.02 * deviation.max(), rtol=0.03)


def test_spikes_and_slabs_against_sampling():
    inclusion = np.array([0.0, 0.01, 0.3, 0.96, 0.99, 1.0])
    mean, deviation = np.array([1.0, 1.0, -0.5, 1.0, 0.1, -2.0]), np.array([0.3, 0.3, 0.4, 0.2, 0.2, 0.5])
    on = rng.random((400_000, 6)) < inclusion
    drawn = np.where(on, mean + deviation * rng.normal(size=on.shape), 0.0)
    p = np.array([0.025, 0.2, 0.5, 0.975])
    found = SpikesAndSlabs(inclusion, mean, deviation).quantile(p[:, None])
    assert_allclose(found, np.quantile(drawn, p, axis=0), atol=0.01)
    assert_array_equal(found[:, :2], 0.0)


def test_with_every_kernel_on_the_quantiles_are_normal():
    p = np.array([[1e-12], [0.3], [1.0 - 1e-12]])
    found = SpikesAndSlabs(np.ones(1), np.ones(1), np.full(1, 2.0)).quantile(p)
    assert_allclose(found, 1.0 + 2.0 * ndtri(p), rtol=1e-12)


@pytest.mark.parametrize("weights", ["free", "factorized"])
def test_normal_families_have_symmetric_intervals(weights):
    model = BEMKLClassifier(BANK, weights=weights).fit(X, Y)
    half = ndtri(0.9) * model.kernel_weights_std_
    expected = model.kernel_weights_ + np.outer([-1.0, 1.0], half)
    assert_allclose(model.weight_intervals(0.8), expected, rtol=1e-12)


@pytest.mark.parametrize("weights", ["nonnegative", "spike_slab"])
def test_all_that_shows_intervals_agrees(weights):
    model = BEMKLClassifier(BANK, weights=weights, kernel_prior="sparse").fit(X, Y)
    low, high = model.weight_intervals()
    uniform, scale = rng.random((200_000, 4)), np.abs(high).max()
    fitted = model.posterior_.weights.moments(0).marginals.quantile(uniform)
    assert_allclose(fitted.mean(axis=0), model.kernel_weights_, atol=0.01 * scale)
    draws = model._fitted[0].integrated.marginals.quantile(uniform)
    assert_allclose(draws.std(axis=0), model.kernel_weights_std_, atol=0.01 * scale)
    assert_allclose(np.quantile(draws, (0.025, 0.975), axis=0), [low, high], atol=0.02 * scale)
    table = model.summary(rounded=False).loc[model.kernel_names_]
    assert_array_equal(table[["low", "high"]].to_numpy().T, [low, high])


def test_no_interval_of_a_nonnegative_weight_holds_zero():
    low, high = BEMKLClassifier(BANK, weights="nonnegative").fit(X, Y).weight_intervals()
    assert (low > 0.0).all()
    assert (low < high).all()


def test_sums_over_groups():
    model = BEMKLClassifier(BANK, weights="nonnegative").fit(X, Y)
    moments = model._fitted[0].integrated
    groups = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]).T
    low, high = moments.sum_interval(groups, 0.95)
    draws = moments.marginals.quantile(rng.random((200_000, 4))) @ groups
    assert_allclose([low, high], np.quantile(draws, (0.025, 0.975), axis=0), rtol=0.05)
    assert_array_equal([low[1], high[1]], model.weight_intervals()[:, 2])


def test_rows_of_classes_and_tasks():
    three = np.digitize(X[:, 0], [-0.7, 0.7])
    assert BEMKLClassifier(BANK, multiclass="ovr").fit(X, three).weight_intervals().shape == (2, 3, 4)
    samples, labels = {"a": X[:40], "b": X[40:]}, {"a": Y[:40], "b": Y[40:]}
    assert BEMKLMultiTask(BANK).fit(samples, labels).weight_intervals().shape == (2, 4)
    pooled = BEMKLMultiTask(BANK, sharing="pooled").fit(samples, labels)
    assert_allclose(pooled.weight_intervals(0.5).mean(axis=0), pooled.kernel_weights_, rtol=1e-12)
    with pytest.raises(ValueError, match=r"coverage: expected a probability below 1, got 1\.5"):
        pooled.weight_intervals(1.5)
