"""Training kernels from files: symmetric and positive semidefinite, or repaired if the user asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bemkl.arrays import Array
from bemkl.files.problems import InputError

_ASYMMETRY = 1e-8
_NEGATIVE = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Repaired:
    """
    A training kernel, and what has to be done to kernels of new samples so that they fit to it.

    Parameters
    ----------
    kernel : ndarray of shape (n_train, n_train)
        The kernel, symmetric and positive semidefinite.
    negative : ndarray of shape (n_train, n_negative) or None
        Eigenvectors that were taken out; None if there was nothing to repair.
    """

    kernel: Array = field(repr=False)
    negative: Array | None = field(default=None, repr=False)


def checked_kernel(name: str, path: Path, kernel: Array, *, repair: bool) -> Repaired:
    """
    Check a training kernel.

    Parameters
    ----------
    name : str
        Its name, for messages.
    path : Path
        Its file, for messages.
    kernel : ndarray of shape (n_train, n_train)
        The matrix.
    repair : bool
        Whether to take the mean with the transpose and to set negative eigenvalues to zero, instead of refusing.

    Returns
    -------
    Repaired
        The kernel.

    Raises
    ------
    InputError
        If it is not symmetric, or has negative eigenvalues; it says how far off it is.
    """
    differences = np.abs(kernel - kernel.T)
    largest = np.abs(kernel).max()
    if differences.max() > _ASYMMETRY * largest and not repair:
        row, column = np.unravel_index(differences.argmax(), kernel.shape)
        raise InputError(
            f"{path}, kernel {name!r}: not symmetric; rows and columns {row + 1} and {column + 1} have "
            f"{kernel[row, column]:.6g} and {kernel[column, row]:.6g}.",
            "Put rows and columns in the same order, or pass --repair to take the mean of both.",
        )
    symmetric: Array = 0.5 * (kernel + kernel.T)
    if _is_definite(symmetric):
        return Repaired(symmetric)
    values, vectors = np.linalg.eigh(symmetric)
    below = values < -_NEGATIVE * values[-1]
    if not below.any():
        return Repaired(symmetric)
    if not repair:
        raise InputError(
            f"{path}, kernel {name!r}: not positive semidefinite; {int(below.sum())} of {len(values)} eigenvalues are "
            f"negative, the smallest is {values[0]:.3g} and the largest {values[-1]:.3g}.",
            "Pass --repair to set the negative ones to zero, or --distances if the file holds distances.",
        )
    if below.all():
        raise InputError(f"{path}, kernel {name!r}: all eigenvalues are negative.", "Check the sign of the matrix.")
    kept, rest = vectors[:, ~below], vectors[:, below]
    repaired: Array = (kept * np.maximum(values[~below], 0.0)) @ kept.T
    return Repaired(0.5 * (repaired + repaired.T), rest)


def project(kernel: Array, negative: Array) -> Array:
    """
    Take out of a kernel of new samples what was taken out of that of the training samples.

    Parameters
    ----------
    kernel : ndarray of shape (n_samples, n_train)
        Kernel between new and training samples.
    negative : ndarray of shape (n_train, n_negative)
        Eigenvectors that were taken out.

    Returns
    -------
    ndarray of shape (n_samples, n_train)
        The kernel that fits to the repaired one: for training samples, it is the repaired one.
    """
    projected: Array = kernel - (kernel @ negative) @ negative.T
    return projected


def _is_definite(kernel: Array) -> bool:
    """Tell by a Cholesky factor, which is much cheaper than eigenvalues, whether a kernel is surely fine."""
    largest = float(kernel.diagonal().max())
    if largest <= 0.0:
        return False
    try:
        np.linalg.cholesky(kernel + 0.1 * _NEGATIVE * largest * np.eye(len(kernel)))
    except np.linalg.LinAlgError:
        return False
    return True
