"""Kernel functions on sequences of letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from bemkl.arrays import Array, whole_number


def spectrum(X: Sequence[str], Z: Sequence[str], length: int, *, presence: bool = False) -> Array:
    r"""
    Spectrum kernel: scalar product of the counts of all substrings of one length (k-mers), without mismatches.

    .. math:: k(x, z) = \sum_{u \in \mathcal{A}^\ell} \#_u(x)\,\#_u(z)

    Parameters
    ----------
    X : sequence of str
        Sequences of the rows; upper and lower case are different letters.
    Z : sequence of str
        Sequences of the columns.
    length : int
        Length of the substrings.
    presence : bool
        Ask only whether a substring is there, not how often.

    Returns
    -------
    ndarray of shape (n_samples, n_basis)
        The kernel matrix. A sequence shorter than the substrings is similar to nothing.

    Examples
    --------
    >>> spectrum(["GATTACA", "GA"], ["ATTA", "CATT"], length=3)
    array([[2., 1.],
           [0., 0.]])
    """
    length = whole_number("length", length, least=1)
    for name, sequences in (("X", X), ("Z", Z)):
        if isinstance(sequences, str) or not all(isinstance(sequence, str) for sequence in sequences):
            raise ValueError(f"{name}: expected a list of strings, one a sequence, got {sequences!r:.80}.")
    if not any(len(sequence) >= length for sequence in X):
        return np.zeros((len(X), len(Z)))
    counter = _counter(length, presence)
    # Substrings that no row has add nothing to any scalar product.
    rows, columns = counter.fit_transform(X), counter.transform(Z)
    kernel: Array = (rows @ columns.T).toarray().astype(np.float64)
    return kernel


def spectrum_squares(X: Sequence[str], length: int, *, presence: bool = False) -> Array:
    """Values k(x, x) of the spectrum kernel. Shapes: returns (n_samples,)."""
    if not any(len(sequence) >= length for sequence in X):
        return np.zeros(len(X))
    counts = _counter(length, presence).fit_transform(X)
    squares: Array = np.asarray(counts.multiply(counts).sum(axis=1), dtype=np.float64).reshape(-1)
    return squares


def _counter(length: int, presence: bool) -> CountVectorizer:
    """Count substrings; scikit-learn's own analyzers would take runs of spaces for one."""

    def substrings(sequence: str) -> list[str]:
        return [sequence[start : start + length] for start in range(len(sequence) - length + 1)]

    return CountVectorizer(analyzer=substrings, binary=presence)
