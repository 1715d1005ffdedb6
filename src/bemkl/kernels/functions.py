"""Kernel functions on feature vectors: from two sets of points to the matrix of their similarities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import cosine_similarity

from bemkl.arrays import LARGEST, Array, finite_array, finite_number, positive_number, whole_number

LARGEST_DEGREE = 1000
"""Highest degree of polynomials."""
_NO_SIZE = -700.0
"""Exponents below this one give numbers that are as good as 0, and take ten times as long."""


def points(X: npt.ArrayLike, Z: npt.ArrayLike) -> tuple[Array, Array]:
    """
    Check two sets of feature vectors.

    Shapes: X (n_samples, n_features), Z (n_basis, n_features); returns rows (n_samples, n_features), columns (n_basis,
    n_features).
    """
    X, Z = finite_array("X", X), finite_array("Z", Z)
    if X.ndim != 2 or Z.ndim != 2 or X.shape[1] != Z.shape[1]:
        raise ValueError(
            f"Z: expected points with the same features as X, got shapes {X.shape} and {Z.shape}. "
            "Points are rows, features are columns."
        )
    return X, Z


def gaussian(X: npt.ArrayLike, Z: npt.ArrayLike, width: float) -> Array:
    r"""
    Gaussian kernel.

    .. math:: k(x, z) = \exp\!\left(-\frac{\lVert x - z \rVert^2}{2 w^2}\right)

    Parameters
    ----------
    X : array_like of shape (n_samples, n_features)
        Feature vectors of the rows.
    Z : array_like of shape (n_basis, n_features)
        Feature vectors of the columns.
    width : float
        Width w, a distance.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> gaussian([[0.0], [2.0]], [[0.0]], width=1.0).round(4)
    array([[1.    ],
           [0.1353]])
    """
    return gaussian_profile(cdist(*points(X, Z), "sqeuclidean"), width)


def rbf(X: npt.ArrayLike, Z: npt.ArrayLike, gamma: float | None = None) -> Array:
    r"""
    Gaussian kernel by scikit-learn's name and parameter.

    .. math:: k(x, z) = \exp(-\gamma \lVert x - z \rVert^2)

    Scikit-learn's own takes distances from inner products, which lose all digits where columns are far from zero.

    Shapes: X (n_samples, n_features), Z (n_basis, n_features); returns (n_samples, n_basis).
    """
    gamma = 1.0 / np.shape(X)[1] if gamma is None else positive_number("gamma", gamma)
    return gaussian(X, Z, (0.5 / gamma) ** 0.5)


def gaussian_profile(squares: Array, width: float, out: Array | None = None) -> Array:
    """Gaussian kernel of squared distances."""
    kernel = np.multiply(squares, -0.5 / positive_number("width", width) ** 2, out=out)
    return _exponentials(kernel)


def laplacian(X: npt.ArrayLike, Z: npt.ArrayLike, width: float) -> Array:
    r"""
    Laplacian kernel, of city-block distances.

    .. math:: k(x, z) = \exp(-\lVert x - z \rVert_1 / w)

    Parameters
    ----------
    X : array_like of shape (n_samples, n_features)
        Feature vectors of the rows.
    Z : array_like of shape (n_basis, n_features)
        Feature vectors of the columns.
    width : float
        Width w, a distance.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> laplacian([[0.0], [2.0]], [[0.0]], width=2.0).round(4)
    array([[1.    ],
           [0.3679]])
    """
    return laplacian_profile(cdist(*points(X, Z), "cityblock"), width)


def laplacian_profile(distances: Array, width: float, out: Array | None = None) -> Array:
    """Laplacian kernel of distances."""
    kernel = np.divide(distances, -positive_number("width", width), out=out)
    return _exponentials(kernel)


def _exponentials(values: Array) -> Array:
    """Take the exponentials of values that are not positive, in place."""
    near = None
    if values.size and values.min() < _NO_SIZE:
        near = values >= _NO_SIZE
        np.maximum(values, _NO_SIZE, out=values)
    np.exp(values, out=values)
    if near is not None:
        values *= near
    return values


def matern(X: npt.ArrayLike, Z: npt.ArrayLike, length: float, smoothness: float = 1.5) -> Array:
    r"""
    Matérn kernel of smoothness 3/2 or 5/2, rougher than a Gaussian one.

    With :math:`r = \sqrt{3}\,d/\ell` and :math:`r = \sqrt{5}\,d/\ell` respectively, d the distance:

    .. math:: k_{3/2} = (1 + r)\,e^{-r}, \qquad k_{5/2} = (1 + r + r^2/3)\,e^{-r}

    Parameters
    ----------
    X : array_like of shape (n_samples, n_features)
        Feature vectors of the rows.
    Z : array_like of shape (n_basis, n_features)
        Feature vectors of the columns.
    length : float
        Length scale, a distance.
    smoothness : {1.5, 2.5}
        Which of the two.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> matern([[0.0], [2.0]], [[0.0]], length=2.0, smoothness=2.5).round(4)
    array([[1.   ],
           [0.524]])
    """
    return matern_profile(cdist(*points(X, Z), "euclidean"), length, smoothness)


def matern_profile(distances: Array, length: float, smoothness: float = 1.5, out: Array | None = None) -> Array:
    """Matérn kernel of distances."""
    if smoothness not in (1.5, 2.5):
        raise ValueError(f"smoothness: expected 1.5 or 2.5, got {smoothness!r}.")
    r = distances * (np.sqrt(2.0 * smoothness) / positive_number("length", length))
    kernel: Array = np.multiply(1.0 + r + (r**2 / 3.0 if smoothness == 2.5 else 0.0), np.exp(-r), out=out)
    return kernel


def periodic(X: npt.ArrayLike, Z: npt.ArrayLike, period: float, length: float = 1.0) -> Array:
    r"""
    Periodic kernel.

    .. math:: k(x, z) = \exp\!\left(-\frac{2}{\ell^2} \sum_j \sin^2\frac{\pi (x_j - z_j)}{p}\right)

    Parameters
    ----------
    X : array_like of shape (n_samples, n_features)
        Feature vectors of the rows.
    Z : array_like of shape (n_basis, n_features)
        Feature vectors of the columns.
    period : float
        Period p of every feature.
    length : float
        Length scale, without a unit.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix; a product over features, so positive definite for any number of them.

    Examples
    --------
    >>> periodic([[0.0], [7.0], [10.5]], [[0.0]], period=7.0).round(4)
    array([[1.    ],
           [1.    ],
           [0.1353]])
    """
    period, length = positive_number("period", period), positive_number("length", length)
    X, Z = points(X, Z)
    angles = [2.0 * np.pi * points_of / period for points_of in (X, Z)]
    # sin²(θ/2) is a quarter of the squared distance between points on the circle.
    circles = [np.hstack([np.cos(angle), np.sin(angle)]) for angle in angles]
    kernel: Array = np.exp(cdist(*circles, "sqeuclidean") * (-0.5 / length**2))
    return kernel


def linear(X: npt.ArrayLike, Z: npt.ArrayLike) -> Array:
    r"""
    Linear kernel, the scalar product.

    .. math:: k(x, z) = x^\top z

    Parameters
    ----------
    X : array_like of shape (n_samples, n_features)
        Feature vectors of the rows.
    Z : array_like of shape (n_basis, n_features)
        Feature vectors of the columns.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> linear([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """
    X, Z = points(X, Z)
    kernel: Array = X @ Z.T
    return kernel


def cosine(X: npt.ArrayLike, Z: npt.ArrayLike) -> Array:
    r"""
    Cosine of the angle between two points; 0 for a point without length.

    .. math:: k(x, z) = \frac{x^\top z}{\lVert x \rVert \lVert z \rVert}

    Parameters
    ----------
    X : array_like of shape (n_samples, n_features)
        Feature vectors of the rows.
    Z : array_like of shape (n_basis, n_features)
        Feature vectors of the columns.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> cosine([[1.0, 1.0], [0.0, 0.0]], [[0.0, 2.0]]).round(4)
    array([[0.7071],
           [0.    ]])
    """
    kernel: Array = cosine_similarity(*points(X, Z))
    return kernel


def polynomial(X: npt.ArrayLike, Z: npt.ArrayLike, degree: int, offset: float = 1.0) -> Array:
    r"""
    Polynomial kernel.

    .. math:: k(x, z) = (x^\top z + c)^d

    Parameters
    ----------
    X : array_like of shape (n_samples, n_features)
        Feature vectors of the rows.
    Z : array_like of shape (n_basis, n_features)
        Feature vectors of the columns.
    degree : int
        Degree d, at least 1 and at most 1000.
    offset : float
        Offset c, at least 0; lower degrees have no part in the kernel where it is 0.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix.

    Examples
    --------
    >>> polynomial([[1.0], [2.0]], [[3.0]], degree=2)
    array([[16.],
           [49.]])
    """
    degree, offset = polynomial_parameters(degree, offset)
    base = linear(X, Z)
    base += offset
    kernel = base.copy()
    # NumPy's power is a hundred times slower from the third one on.
    for _ in range(degree - 1):
        kernel *= base
    return kernel


def polynomial_parameters(degree: int, offset: float) -> tuple[int, float]:
    """Check the parameters of a polynomial kernel."""
    offset = finite_number("offset", offset, least=0.0, allow_least=True, most=LARGEST)
    return whole_number("degree", degree, least=1, most=LARGEST_DEGREE), offset
