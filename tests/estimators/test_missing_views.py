"""A view that some samples lack still helps, and a sample without it gets an answer."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec


def punctured(views, name, rows):
    """Take a view from some samples."""
    values = np.array(views[name], dtype=float)
    values[rows] = np.nan
    return {**views, name: values}


def scores(views, y, name, train, test, seed):
    """Score without a view, with 30 % of it missing in training, and with 30 % missing in training and test."""
    rng = np.random.default_rng(seed)
    part = {
        rows: {key: view[index] for key, view in views.items()} for rows, index in (("train", train), ("test", test))
    }
    lost = {"train": rng.random(len(train)) < 0.3, "test": rng.random(len(test)) < 0.3}
    others = {rows: {key: view for key, view in samples.items() if key != name} for rows, samples in part.items()}
    without = BEMKLClassifier(tol=1e-4).fit(others["train"], y[train]).score(others["test"], y[test])
    model = BEMKLClassifier(tol=1e-4).fit(punctured(part["train"], name, lost["train"]), y[train])
    return (
        without,
        model.score(part["test"], y[test]),
        model.score(punctured(part["test"], name, lost["test"]), y[test]),
    )


def planted(seed):
    """Return two views that each know half of the answer."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(300, 2))
    views = {
        "first": np.column_stack([hidden[:, 0], rng.normal(size=(300, 3))]),
        "second": np.column_stack([hidden[:, 1], rng.normal(size=(300, 3))]),
    }
    return views, np.where(hidden.sum(axis=1) > 0, "up", "down")


def test_a_view_with_gaps_beats_no_view_on_planted_data():
    results = []
    for seed in range(5):
        views, y = planted(seed)
        results.append(scores(views, y, "second", np.arange(100), np.arange(100, 300), seed))
    without, gaps_in_training, gaps_everywhere = np.array(results).T
    assert (gaps_in_training > without).all()
    assert np.median(gaps_in_training - without) > 0.05
    assert np.median(gaps_everywhere - without) > 0.02


@pytest.mark.skipif(
    not Path(os.environ.get("BEMKL_DATA", "none"), "mfeat").is_dir(), reason="BEMKL_DATA has no folder with mfeat"
)
def test_a_view_with_gaps_beats_no_view_on_digits():
    data = np.load(Path(os.environ["BEMKL_DATA"], "mfeat", "mfeat.npz"))
    views, y = {name: data[f"X_{name}"].astype(float) for name in ("mor", "zer")}, data["y"]
    results = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(y))
        results.append(scores(views, y, "zer", order[:200], order[200:1000], seed))
    without, gaps_in_training, gaps_everywhere = np.array(results).T
    assert (gaps_in_training > without).all()
    assert (gaps_everywhere > without).all()


def test_a_sample_without_any_view_gets_the_intercept():
    """Nothing is known of it, and no kernel contributes."""
    views, y = planted(0)
    nothing = {name: np.full((1, 4), np.nan) for name in views}
    model = BEMKLClassifier(tol=1e-4).fit(views, y)
    assert_allclose(model.decision_function(nothing), model.intercept_)
    regressor = BEMKLRegressor(tol=1e-4).fit(views, views["first"][:, 0])
    assert_allclose(regressor.predict(nothing), regressor.intercept_)


def test_views_in_the_columns_of_a_table():
    """A group of columns is a view as well."""
    from bemkl import KernelBank, KernelSpec

    views, y = planted(1)
    bank = KernelBank(
        [KernelSpec("gaussian", columns, {"width": [1.0, 4.0]}) for columns in ([0, 1, 2, 3], [4, 5, 6, 7])],
        standardise=True,
    )
    X = np.hstack([views["first"], views["second"]])
    X[:30, 4:] = np.nan
    model = BEMKLClassifier(bank, tol=1e-4).fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) > 0.8
    contributions = model.contributions(X[:30])
    assert_allclose(contributions[:, 2:], 0.0, atol=1e-12)
    X[0, 5] = 1.0
    with pytest.raises(ValueError, match=r"row 0 of x4 … x7 .* is partly NaN or infinite"):
        model.fit(X[:100], y[:100])


def test_new_samples_without_any_sequence():
    """Nothing tells missing sequences from missing numbers: training does."""
    model = BEMKLRegressor().fit({"text": ["GATTACA", "TACAGAT", None]}, [1.0, 2.0, 3.0])
    assert_allclose(model.predict({"text": [None, None]}), model.predict({"text": [None, "GATTACA"]})[[0, 0]])


def test_a_missing_row_is_no_number():
    """Standardised, the zeros in its place would be far out, or negative counts."""
    specs = [KernelSpec("intersection", "each"), KernelSpec("polynomial", "each", {"degree": 1})]
    bank = KernelBank(specs, standardise=True)
    values = np.array([[np.nan], [1e30], [1e30]])
    with np.errstate(all="raise"):
        kernels = bank.fit_transform({"counts": values}).dense().values
        assert_array_equal(bank.transform({"counts": values}).dense().values, kernels)
    assert_array_equal(kernels[:, 0], 0.0)


def test_sequences_that_are_all_missing_leave_the_precision_alone():
    """A sample alone may lack its sequence: its kernels have the precision of the others all the same."""
    single = np.array([[-1.0], [0.0], [2.0]], dtype=np.float32)
    model = BEMKLClassifier().fit({"one": single, "text": [None, "GTCCTG", "GGAGCTGA"]}, [0, 1, 1])
    among = model.decision_function({"one": single, "text": [None, "GTCCTG", "GGAGCTGA"]})
    alone = model.decision_function({"one": single[:1], "text": [None]})
    np.testing.assert_allclose(alone, among[:1], rtol=1e-12)
