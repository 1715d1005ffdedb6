"""Symmetric positive definite inverses, with the one jitter policy of the package."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from bemkl.arrays import Array

_JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)


def inverse_and_logdet(matrix: Array) -> tuple[Array, float]:
    """
    Invert a symmetric positive definite matrix through its Cholesky factor.

    A precision matrix can lose definiteness to rounding alone (duplicated kernels, a prior precision far below
    the data's). Then its diagonal is multiplied by 1 + 1e-14, 1e-12, 1e-10 or 1e-8, the first that suffices: relative to
    each entry, so that a matrix whose diagonal spans many orders of magnitude keeps its small entries.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric positive definite; only one triangle is read.

    Returns
    -------
    inverse : ndarray of shape (n, n)
        The symmetric inverse.
    logdet : float
        Log-determinant of the **inverse**, which is what an entropy needs.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not finite, or not positive definite even with the largest jitter.

    Examples
    --------
    >>> import numpy as np
    >>> inverse, logdet = inverse_and_logdet(np.array([[2.0, 0.0], [0.0, 0.5]]))
    >>> inverse, round(logdet, 12)
    (array([[0.5, 0. ],
           [0. , 2. ]]), -0.0)
    """
    for jitter in _JITTERS:
        # Fortran order of a symmetric matrix is the matrix itself, so LAPACK takes the transpose without a copy.
        trial = matrix.T if jitter == 0.0 else matrix.T + np.diag(jitter * matrix.diagonal())
        factor, failed = dpotrf(trial, lower=1, clean=0)
        if not failed and np.isfinite(factor.diagonal()).all():
            break
    else:
        smallest = np.linalg.eigvalsh(matrix)[0] if np.isfinite(matrix).all() else np.nan
        raise np.linalg.LinAlgError(
            f"a {matrix.shape[0]} x {matrix.shape[0]} precision matrix is not positive definite "
            f"(smallest eigenvalue {smallest:.3g}). Check the kernels for extreme scales, or scale them to unit diagonal."
        )
    logdet = -2.0 * float(np.log(factor.diagonal()).sum())
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    lower = np.tril(inverse)
    return lower + np.tril(lower, -1).T, logdet
