"""Kernel functions on histograms and on binary fingerprints."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel

from bemkl.arrays import Array, positive_number
from bemkl.kernels.functions import points


def sums_of_counts(X: npt.ArrayLike) -> Array:
    """
    Return the sums of histograms, which are the diagonals of some kernels.

    Shapes: X (n_samples, n_bins); returns (n_samples,).
    """
    sums: Array = _histograms(X, X)[0].sum(axis=1)
    return sums


def _histograms(X: npt.ArrayLike, Z: npt.ArrayLike) -> tuple[Array, Array]:
    X, Z = points(X, Z)
    for name, counts in (("X", X), ("Z", Z)):
        if counts.size and counts.min() < 0.0:
            row, column = (int(i) for i in np.unravel_index(counts.argmin(), counts.shape))
            raise ValueError(
                f"{name}: expected histograms without negative entries, got {counts.min():g} in row {row}, "
                f"column {column}. Use another kernel, or do not centre the counts."
            )
    return X, Z


def _fingerprints(X: npt.ArrayLike, Z: npt.ArrayLike) -> tuple[Array, Array]:
    X, Z = points(np.asarray(X) * 1.0, np.asarray(Z) * 1.0)
    for name, bits in (("X", X), ("Z", Z)):
        strange = np.setdiff1d(bits, [0.0, 1.0])
        if strange.size:
            raise ValueError(f"{name}: expected fingerprints of 0 and 1, got the values {strange[:5].tolist()}.")
    return X, Z


def chi2(X: npt.ArrayLike, Z: npt.ArrayLike, width: float = 1.0) -> Array:
    r"""
    Exponential χ² kernel of histograms.

    .. math:: k(x, z) = \exp\!\left(-\frac{1}{w} \sum_j \frac{(x_j - z_j)^2}{x_j + z_j}\right)

    Parameters
    ----------
    X : array_like of shape (n_samples, n_bins)
        Histograms of the rows, not negative.
    Z : array_like of shape (n_basis, n_bins)
        Histograms of the columns, not negative.
    width : float
        Width w, a χ² distance.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> chi2([[1.0, 3.0], [2.0, 2.0]], [[2.0, 2.0]]).round(4)
    array([[0.5866],
           [1.    ]])
    """
    kernel: Array = chi2_kernel(*_histograms(X, Z), gamma=1.0 / positive_number("width", width))
    return kernel


def additive_chi2(X: npt.ArrayLike, Z: npt.ArrayLike) -> Array:
    r"""
    Additive χ² kernel of histograms, the positive definite form.

    .. math:: k(x, z) = \sum_j \frac{2 x_j z_j}{x_j + z_j}

    Parameters
    ----------
    X : array_like of shape (n_samples, n_bins)
        Histograms of the rows, not negative.
    Z : array_like of shape (n_basis, n_bins)
        Histograms of the columns, not negative.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix. scikit-learn's function of this name is the negative χ² distance instead, which is only
        conditionally positive definite.

    Examples
    --------
    >>> additive_chi2([[1.0, 3.0], [2.0, 2.0]], [[2.0, 2.0]]).round(4)
    array([[3.7333],
           [4.    ]])
    """
    X, Z = _histograms(X, Z)
    # 2xz/(x + z) = (x + z)/2 - (x - z)²/(2 (x + z)), and the last sum is scikit-learn's.
    kernel: Array = 0.5 * (X.sum(axis=1)[:, None] + Z.sum(axis=1) + additive_chi2_kernel(X, Z))
    return kernel


def intersection(X: npt.ArrayLike, Z: npt.ArrayLike) -> Array:
    r"""
    Histogram intersection kernel.

    .. math:: k(x, z) = \sum_j \min(x_j, z_j)

    Parameters
    ----------
    X : array_like of shape (n_samples, n_bins)
        Histograms of the rows, not negative.
    Z : array_like of shape (n_basis, n_bins)
        Histograms of the columns, not negative.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> intersection([[1.0, 3.0], [2.0, 2.0]], [[2.0, 2.0]])
    array([[3.],
           [4.]])
    """
    X, Z = _histograms(X, Z)
    # min(x, z) = (x + z - |x - z|)/2, and city-block distances need no array of shape (rows, columns, bins).
    kernel: Array = 0.5 * (X.sum(axis=1)[:, None] + Z.sum(axis=1) - cdist(X, Z, "cityblock"))
    return kernel


def tanimoto(X: npt.ArrayLike, Z: npt.ArrayLike) -> Array:
    r"""
    Tanimoto (Jaccard) kernel of binary fingerprints: shared bits over bits set in either.

    .. math:: k(x, z) = \frac{x^\top z}{\lVert x \rVert^2 + \lVert z \rVert^2 - x^\top z}

    Parameters
    ----------
    X : array_like of shape (n_samples, n_bits)
        Fingerprints of the rows, 0 and 1 or truth values.
    Z : array_like of shape (n_basis, n_bits)
        Fingerprints of the columns.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix; 1 for two fingerprints without any bit.

    Examples
    --------
    >>> tanimoto([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]])
    array([[0.5, 0. ],
           [0. , 1. ]])
    """
    X, Z = _fingerprints(X, Z)
    shared = X @ Z.T
    either = X.sum(axis=1)[:, None] + Z.sum(axis=1) - shared
    kernel: Array = np.divide(shared, either, out=np.ones_like(shared), where=either > 0.0)
    return kernel


def hamming(X: npt.ArrayLike, Z: npt.ArrayLike) -> Array:
    """
    Share of the bits in which two fingerprints agree.

    Parameters
    ----------
    X : array_like of shape (n_samples, n_bits)
        Fingerprints of the rows, 0 and 1 or truth values.
    Z : array_like of shape (n_basis, n_bits)
        Fingerprints of the columns.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> hamming([[1, 1, 0, 0]], [[1, 0, 0, 0]])
    array([[0.75]])
    """
    X, Z = _fingerprints(X, Z)
    agree: Array = (X @ Z.T + (1.0 - X) @ (1.0 - Z).T) / X.shape[1]
    return agree
