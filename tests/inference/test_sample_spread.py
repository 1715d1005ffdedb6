"""Shortcuts to what the uncertainty of the sample weights adds to predictions equal the formula as it stands."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bemkl._numerics.linalg import Cholesky, pivoted_factor
from bemkl.inference import Block, Gaussian, Probit, Problem, fitted_block, run
from bemkl.inference.pair import precision_factor
from bemkl.inference.sample_spread import Alike, Directions, Leading, SampleSpread, thin_forms
from bemkl.kernels import DenseStack, gaussian

N, NEW = 320, 40
WIDE, NARROW = (1.0, 2.0, 4.0, 8.0), (0.02, 0.1, 1.0, 4.0)


def kernels_of(rows, X, widths):
    """Return kernels on one column if they are wide, and on both otherwise."""
    columns = slice(1) if widths == WIDE else slice(2)
    return DenseStack(np.stack([gaussian(rows[:, columns], X[:, columns], width) for width in widths]))


def fitted(widths, likelihood="regression"):
    """Return a fitted block and kernels of new samples."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(2, N, 2))
    y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1]]) + 0.3 * rng.normal(size=(N, 2))
    block = Block(kernels_of(X, X, widths), Gaussian(y) if likelihood == "regression" else Probit(np.sign(y)))
    state = run(Problem([block]), max_iter=4, tol=None).state
    return fitted_block(state), kernels_of(new[:NEW], X, widths)


def formula(model, stack):
    """Return tr(E[eeᵀ] K Σ_a Kᵀ) with all matrices, shape (n_outputs, n_new)."""
    sample, second = model.posterior.sample, np.asarray(model.weights.second)
    precisions = [np.diag(d) + s * model.gram for d, s in zip(sample.diagonal, sample.scale, strict=True)]
    spreads = [stack.values @ np.linalg.inv(precision) for precision in precisions]
    return np.array([np.einsum("mn,mid,nid->i", second, spread, stack.values, optimize=True) for spread in spreads])


def floor_of(model, stack):
    """Return the variances before the uncertainty of the sample weights is added, about as they are in predictions."""
    noise = model.posterior.intermediate_precision.inverse_mean * model.weights.second.trace()
    return np.broadcast_to(noise, (model.n_outputs,))[:, None] * np.ones(stack.shape[1])


@pytest.mark.parametrize("likelihood", ["regression", "classes"])
@pytest.mark.parametrize(("widths", "way"), [(WIDE, Alike), (NARROW, Leading)], ids=["thin", "leading"])
def test_shortcuts_equal_the_formula(widths, way, likelihood):
    model, stack = fitted(widths, likelihood)
    spread, floor = model._spread(2**30), floor_of(model, stack)
    assert all(type(spread._way(o)) is way for o in range(2))
    expected = formula(model, stack)
    assert np.all(np.abs(spread.trace(stack, floor) - expected) <= 1e-9 * (floor + expected))
    diagonal = model.predict(stack, intermediate=True).intermediate_variance
    plain = replace(model, root=np.linalg.cholesky(model.gram + 1e-9 * np.eye(N)).T)
    assert_allclose(diagonal, plain.predict(stack, intermediate=True).intermediate_variance, rtol=1e-8)


def test_thin_forms_are_no_smaller_and_hardly_larger():
    model, stack = fitted(WIDE)
    diagonal, scale = model.posterior.sample.diagonal[0], float(model.posterior.sample.scale[0])
    white = precision_factor(model.gram, diagonal, scale).whitener()(stack.values)
    exact, rounding = np.vecdot(white, white), 1e-12 * np.vecdot(stack.values, stack.values / diagonal)
    thin = thin_forms(model.gram, diagonal, scale)(stack.values)
    assert np.all(thin >= exact - rounding)
    assert np.all(thin <= (1.0 + 1e-8) * exact + rounding)
    assert thin_forms(np.eye(N), np.ones(N), 1.0) is None


@pytest.mark.parametrize("wrong", [1.01, np.nan, np.inf])
def test_rows_that_need_more_digits_are_computed_again(wrong):
    model, stack = fitted(NARROW)
    way, floor = model._spread(0)._way(0), floor_of(model, stack)[0]
    bad = replace(way, rough=lambda rows: wrong * way.rough(rows))
    directions = Directions.of(stack.values, model.weights.mean, model.weights.covariance.squares("weights"))
    expected = formula(model, stack)[0]
    assert np.all(np.abs(bad.trace(directions, floor) - expected) <= 1e-9 * (floor + expected))


def test_negligible_directions_are_left_out():
    model, stack = fitted(NARROW)
    seen, way = [], model._spread(0)._way(0)
    counting = replace(way, rough=lambda rows: (seen.append(len(rows)), way.rough(rows))[1])
    directions = Directions.of(stack.values, model.weights.mean, model.weights.covariance.squares("weights"))
    expected, floor = formula(model, stack)[0], floor_of(model, stack)[0]
    floor[::2] = 1e12
    assert np.all(np.abs(counting.trace(directions, floor) - expected) <= 1e-9 * (floor + expected))
    assert 0 < sum(seen) <= len(NARROW) * NEW // 2


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_what_is_kept_is_computed_once(monkeypatch, kept):
    """Outputs whose covariances find no room are computed anew for each block of samples, to the same numbers."""
    model, stack = fitted(NARROW)
    whole, made, way = model.predict(stack).variance, [], SampleSpread._way
    monkeypatch.setattr(SampleSpread, "_way", lambda spread, o: (made.append(o), way(spread, o))[1])
    predict = model.predictor("exact", kept * 12 * N * N)
    parts = [predict(DenseStack(stack.values[:, i : i + 20])).variance for i in (0, 20)]
    assert_allclose(np.concatenate(parts), whole, rtol=1e-9)
    assert len(made) == kept + 2 * (2 - kept)


def test_pivoted_factor():
    thin = np.random.default_rng(0).normal(size=(50, 6))
    factor = pivoted_factor(thin @ thin.T, 1e-10)
    assert factor.shape == (50, 6)
    assert_allclose(factor @ factor.T, thin @ thin.T, atol=1e-12)


def test_whitener_in_single_precision():
    model, stack = fitted(NARROW)
    diagonal, scale = model.posterior.sample.diagonal[0], float(model.posterior.sample.scale[0])
    factor = Cholesky.of(scale * model.gram + np.diag(diagonal), "sample weights")
    single, double = factor.single_whitener(diagonal), factor.whitener()
    assert single(stack.values).dtype == np.float32
    assert_allclose((single(stack.values) ** 2).sum(-1), (double(stack.values) ** 2).sum(-1), rtol=1e-3, atol=1e-12)
    assert not np.isfinite(single(1e60 * stack.values)).all()
