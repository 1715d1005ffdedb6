"""Choose priors, deviations, margins or banks by the lower bound, without held-out samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from bemkl.arrays import Array
from bemkl.estimators.base import BEMKLEstimator
from bemkl.estimators.sharing import shared_kernels

_OTHER_BOUND = {"multiclass", "posterior", "unlabeled"}


@dataclass(frozen=True, slots=True, eq=False)
class BoundSearch:
    """
    What a search by the bound found.

    Parameters
    ----------
    candidates : list of dict
        Parameters of each candidate.
    lower_bounds : ndarray of shape (n_candidates,)
        Lower bound of each.
    best_index : int
        Which one has the highest.
    best_estimator : BEMKLEstimator
        That one, fitted to all samples.
    """

    candidates: list[dict[str, Any]]
    lower_bounds: Array
    best_index: int
    best_estimator: Any

    @property
    def best_params(self) -> dict[str, Any]:
        """Parameters with the highest bound."""
        return self.candidates[self.best_index]

    @property
    def best_lower_bound(self) -> float:
        """The highest bound."""
        return float(self.lower_bounds[self.best_index])


def select_by_bound(
    estimator: Any, grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]], X: Any, y: Any
) -> BoundSearch:
    """
    Fit every candidate to all samples, and keep the one with the highest lower bound of the evidence.

    One fit a candidate, where cross-validation needs one a fold. The bound compares models of the same labels:
    different priors, deviations, families of weights, or banks of kernels. What it is blind to is in
    docs/selection.md.

    Parameters
    ----------
    estimator : BEMKLClassifier or BEMKLRegressor
        What to fit; not changed.
    grid : dict of str to sequence, or list of such dicts
        Values to try for each parameter, as for `sklearn.model_selection.GridSearchCV`.
    X : array_like, data frame, sparse matrix, dict of these, or kernels
        Samples.
    y : array_like
        Labels or responses.

    Returns
    -------
    BoundSearch
        The candidates, their bounds, and the best one, fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl import BEMKLClassifier, select_by_bound
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> search = select_by_bound(BEMKLClassifier(), {"intermediate_std": [0.1, 1.0]}, X, X[:, 0] > 0.0)
    >>> search.best_params
    {'intermediate_std': 1.0}
    """
    if not isinstance(estimator, BEMKLEstimator):
        raise ValueError(f"estimator: expected one of this package, whose fits have a lower bound, got {estimator!r}.")
    candidates = list(ParameterGrid(grid))
    other = sorted({name for parameters in candidates for name in parameters} & _OTHER_BOUND)
    if other:
        raise ValueError(
            f"grid: {', '.join(other)} changes what the bound is a bound of, so bounds cannot be compared. "
            "Choose it by cross-validation."
        )
    if not candidates:
        raise ValueError(f"grid: expected at least one candidate, got {grid!r}.")
    best, bounds = None, []
    with shared_kernels():
        for parameters in candidates:
            fitted = clone(estimator).set_params(**parameters).fit(X, y)
            bounds.append(fitted.lower_bound_)
            if best is None or fitted.lower_bound_ > best.lower_bound_:
                best = fitted
    return BoundSearch(candidates, np.array(bounds), int(np.argmax(bounds)), best)
