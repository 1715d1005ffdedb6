"""Choice by the bound."""

import numpy as np
import pytest
from sklearn.svm import SVC

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, select_by_bound

X = np.random.default_rng(0).normal(size=(60, 3))
BANK = KernelBank([KernelSpec("gaussian", "each", {"width": 1.0})])


def test_every_candidate_is_a_fit():
    y = X[:, 0] > 0.0
    grid = {"kernel_prior": ["dense", "sparse"], "intermediate_std": [0.3, 1.0, "learn"]}
    model = BEMKLClassifier(BANK)
    search = select_by_bound(model, grid, X, y)
    assert len(search.candidates) == len(search.lower_bounds) == 6
    for parameters, bound in zip(search.candidates, search.lower_bounds, strict=True):
        assert BEMKLClassifier(BANK, **parameters).fit(X, y).lower_bound_ == bound
    assert search.best_lower_bound == search.lower_bounds.max() == search.best_estimator.lower_bound_
    assert search.best_estimator.get_params()["intermediate_std"] == search.best_params["intermediate_std"]
    assert not hasattr(model, "posterior_")


def test_it_finds_the_bank_that_the_labels_came_from():
    y = np.sin(2.0 * X[:, 0] * X[:, 1])
    banks = [KernelBank([KernelSpec("gaussian", columns, {"width": 1.0})]) for columns in ([0, 1], [0, 2], [2])]
    search = select_by_bound(BEMKLRegressor(), [{"kernels": banks}], X, y)
    assert search.best_index == 0


def test_units_of_responses_do_not_matter():
    """The bound is of the responses as they came, so that models with and without standardising compare."""
    y = 1e-3 * (np.sin(2.0 * X[:, 0]) + 0.1 * X[:, 1])
    search = select_by_bound(BEMKLRegressor(BANK), {"normalize_y": [False, True]}, X, y)
    assert search.best_params["normalize_y"]
    assert search.best_estimator.score(X, y) > 0.8


@pytest.mark.parametrize(
    ("estimator", "grid", "message"),
    [
        (SVC(), {"C": [1.0]}, "estimator: expected one of this package"),
        (BEMKLClassifier(), [], "grid: expected at least one candidate"),
        (BEMKLClassifier(), {"multiclass": ["shared", "ovr"]}, "grid: multiclass changes what the bound is a bound of"),
        (BEMKLClassifier(), {"C": [1.0]}, "Invalid parameter 'C'"),
    ],
)
def test_bad_input(estimator, grid, message):
    with pytest.raises(ValueError, match=message):
        select_by_bound(estimator, grid, X, X[:, 0] > 0.0)
