"""Scaling of kernel matrices."""

from __future__ import annotations

import numpy as np

from bemkl.arrays import Array


def spherical(kernel: Array, rows: Array, columns: Array) -> Array:
    r"""
    Divide a kernel by the norms of its points in feature space, so that k(x, x) = 1.

    .. math:: \bar k(x, z) = \frac{k(x, z)}{\sqrt{k(x, x)\,k(z, z)}}

    Parameters
    ----------
    kernel : ndarray of shape (n_samples, n_basis)
        Kernel matrix.
    rows : ndarray of shape (n_samples,)
        Values k(x, x) of the rows.
    columns : ndarray of shape (n_basis,)
        Values k(z, z) of the columns.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The scaled matrix. A point without length, k(x, x) = 0, is similar to nothing: its entries are 0.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.array([[4.0, 2.0], [2.0, 9.0]])
    >>> spherical(K, K.diagonal(), K.diagonal()).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """
    norms = np.sqrt(np.outer(rows, columns))
    return np.divide(kernel, norms, out=np.zeros_like(kernel), where=norms > 0.0)
