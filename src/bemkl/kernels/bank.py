"""The bank of kernels that the paper's first experiment uses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from bemkl.arrays import Array
from bemkl.kernels.functions import points, polynomial
from bemkl.kernels.scaling import spherical

WIDTHS = tuple(2.0**power for power in range(-3, 7))
DEGREES = (1, 2, 3)


def paper_kernels(
    X: npt.ArrayLike, Z: npt.ArrayLike, feature_names: Sequence[str] | None = None
) -> tuple[Array, list[str]]:
    """
    Ten Gaussian and three polynomial kernels on all features and on each feature (paper, section 6.1).

    Kernels are scaled to unit diagonal. Standardise the features before, with the training samples' mean and deviation.

    Parameters
    ----------
    X : array_like of shape (n_samples, n_features)
        Samples of the rows.
    Z : array_like of shape (n_basis, n_features)
        Samples of the columns; the training samples.
    feature_names : sequence of str, optional
        Names of the features.

    Returns
    -------
    kernels : ndarray of shape (13 * (n_features + 1), n_samples, n_basis)
        The kernel matrices.
    names : list of str
        A readable name for each kernel.

    Examples
    --------
    >>> import numpy as np
    >>> kernels, names = paper_kernels(np.zeros((4, 2)), np.zeros((3, 2)), ["height", "weight"])
    >>> kernels.shape, names[0], names[-1]
    ((39, 4, 3), 'gaussian(w=0.125) on all features', 'polynomial(d=3) on weight')
    """
    X, Z = points(X, Z)
    if X.shape[1] == 0:
        raise ValueError(f"X: expected at least one feature, got shape {X.shape}.")
    names = [f"feature {j}" for j in range(X.shape[1])] if feature_names is None else list(feature_names)
    if len(names) != X.shape[1]:
        raise ValueError(f"feature_names: expected {X.shape[1]} names, one a column of X, got {len(names)}.")
    groups = [("all features", slice(None)), *((name, slice(j, j + 1)) for j, name in enumerate(names))]
    kernels = np.empty((len(groups) * (len(WIDTHS) + len(DEGREES)), len(X), len(Z)))
    labels: list[str] = []
    for group, columns in groups:
        A, B = X[:, columns], Z[:, columns]
        squares = cdist(A, B, "sqeuclidean")
        for width in WIDTHS:
            np.exp(squares * (-0.5 / width**2), out=kernels[len(labels)])
            labels.append(f"gaussian(w={width:g}) on {group}")
        for degree in DEGREES:
            norms = [(np.square(points).sum(axis=1) + 1.0) ** degree for points in (A, B)]
            kernels[len(labels)] = spherical(polynomial(A, B, degree), *norms)
            labels.append(f"polynomial(d={degree}) on {group}")
    return kernels, labels
