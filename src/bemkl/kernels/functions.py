"""Kernel functions: from two sets of feature vectors to the matrix of their similarities."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from bemkl.arrays import Array, finite_number, whole_number


def gaussian(X: Array, Z: Array, width: float) -> Array:
    r"""
    Gaussian kernel.

    .. math:: k(x, z) = \exp\!\left(-\frac{\lVert x - z \rVert^2}{2 w^2}\right)

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Feature vectors of the rows.
    Z : ndarray of shape (n_basis, n_features)
        Feature vectors of the columns.
    width : float
        Width w, a distance.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> gaussian(np.array([[0.0], [2.0]]), np.array([[0.0]]), width=1.0).round(4)
    array([[1.    ],
           [0.1353]])
    """
    width = finite_number("width", width, least=0.0)
    kernel: Array = np.exp(cdist(X, Z, "sqeuclidean") * (-0.5 / width**2))
    return kernel


def polynomial(X: Array, Z: Array, degree: int) -> Array:
    r"""
    Inhomogeneous polynomial kernel.

    .. math:: k(x, z) = (x^\top z + 1)^d

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Feature vectors of the rows.
    Z : ndarray of shape (n_basis, n_features)
        Feature vectors of the columns.
    degree : int
        Degree d, at least 1.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> polynomial(np.array([[1.0], [2.0]]), np.array([[3.0]]), degree=2)
    array([[16.],
           [49.]])
    """
    kernel: Array = (X @ Z.T + 1.0) ** whole_number("degree", degree, least=1)
    return kernel
