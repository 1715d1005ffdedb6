"""
Scaling of kernel matrices: fitted on the training kernel, applied to it and to the kernels of new samples alike.

Every scaling has a function that takes a `Summary` of the square training kernel and returns the fitted scaling, and
three methods: ``apply(kernel, diagonal)`` takes a kernel between any rows and the training samples, with the values
k(x, x) of those rows; ``apply_to_diagonal(kernel, diagonal)`` does the same to these values, and
``apply_to_factor(factor, diagonal, basis)`` to a factor of such a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array

Present = npt.NDArray[np.bool_]


class Scaling(Protocol):
    """A fitted scaling of one kernel."""

    def apply(self, kernel: Array, diagonal: Array) -> Array:
        """Scale the (n_samples, n_train) kernel of rows whose k(x, x) are in the (n_samples,) diagonal."""

    def apply_to_diagonal(self, kernel: Array, diagonal: Array) -> Array:
        """Scale these (n_samples,) values, given the (n_samples, n_train) kernel as it was before."""

    def apply_to_factor(self, factor: Array, diagonal: Array, basis: Array) -> Array:
        """Scale the (rank, n_samples) factor of such rows; the training samples have the (rank, n_train) basis."""


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What scalings want to know of a training kernel."""

    diagonal: Array  # (n_train,): values k(z, z)
    # computes the means of the columns, shape (n_train,), over the samples that are there
    column_means: Callable[[], Array]
    present: Present  # (n_train,): samples that are there; the others have zero rows

    @classmethod
    def of_matrix(cls, kernel: Array, present: Present) -> Summary:
        """Summarise a kernel matrix. Shapes: kernel (n_train, n_train), present (n_train,)."""
        return cls(kernel.diagonal().copy(), lambda: kernel[present].mean(axis=0), present)

    @classmethod
    def of_factor(cls, basis: Array, diagonal: Array, present: Present) -> Summary:
        """
        Summarise a kernel from its factor.

        Shapes: basis (rank, n_train), diagonal (n_train,), present (n_train,).
        """
        return cls(diagonal, lambda: basis[:, present].mean(axis=1) @ basis, present)


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
    for name, values in (("rows", rows), ("columns", columns)):
        if values.size and values.min() < 0.0:
            raise ValueError(
                f"{name}: expected k(x, x) of at least 0, got {values.min():g}: the function is no kernel, and unit "
                "diagonals do not exist. Take another kernel, or another scaling."
            )
    return kernel * _inverse_lengths(rows)[:, None] * _inverse_lengths(columns)


def _inverse_lengths(squares: Array) -> Array:
    """Return one over the roots of squared lengths, and 0 for 0."""
    return np.divide(1.0, np.sqrt(squares), out=np.zeros(len(squares)), where=squares > 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Spherical:
    """Unit diagonal, as in the paper's experiments (section 6.1)."""

    diagonal: Array  # (n_train,): values k(z, z) of the training samples

    @classmethod
    def fit(cls, summary: Summary) -> Spherical:
        """Keep the diagonal of the training kernel."""
        return cls(summary.diagonal)

    def apply(self, kernel: Array, diagonal: Array) -> Array:
        """
        Divide by the norms of rows and columns.

        Shapes: kernel (n_samples, n_train), diagonal (n_samples,); returns (n_samples, n_train).
        """
        unit = (diagonal == 1.0).all() and (self.diagonal == 1.0).all()
        return kernel if unit else spherical(kernel, diagonal, self.diagonal)

    def apply_to_diagonal(self, kernel: Array, diagonal: Array) -> Array:
        """Return ones; zeros of points without length. Shapes: kernel (n_samples, n_train), diagonal (n_samples,)."""
        return (diagonal > 0.0).astype(np.float64)

    def apply_to_factor(self, factor: Array, diagonal: Array, basis: Array) -> Array:
        """
        Divide by the norms.

        Shapes: factor (rank, n_samples), diagonal (n_samples,), basis (rank, n_train); returns (rank, n_samples).
        """
        return factor if (diagonal == 1.0).all() else factor * _inverse_lengths(diagonal)


@dataclass(frozen=True, slots=True, eq=False)
class Centred:
    r"""
    Training samples with mean zero in feature space.

    .. math:: \bar k(x, z) = k(x, z) - \frac1n \sum_j k(x, z_j) - \frac1n \sum_i k(z_i, z)
              + \frac1{n^2} \sum_{ij} k(z_i, z_j)
    """

    column_means: Array  # (n_train,): means of the training kernel's columns
    present: Present  # (n_train,): training samples that the means are over

    @classmethod
    def fit(cls, summary: Summary) -> Centred:
        """Keep the column means of the training kernel."""
        return cls(summary.column_means(), summary.present)

    def apply(self, kernel: Array, diagonal: Array) -> Array:
        """
        Subtract the means.

        Shapes: kernel (n_samples, n_train), diagonal (n_samples,); returns (n_samples, n_train).
        """
        row_means, mean = kernel[:, self.present].mean(axis=1), self.column_means[self.present].mean()
        centred: Array = kernel - row_means[:, None] - self.column_means + mean
        return centred

    def apply_to_diagonal(self, kernel: Array, diagonal: Array) -> Array:
        """Subtract the means. Shapes: kernel (n_samples, n_train), diagonal (n_samples,); returns (n_samples,)."""
        row_means, mean = kernel[:, self.present].mean(axis=1), self.column_means[self.present].mean()
        centred: Array = diagonal - 2.0 * row_means + mean
        return centred

    def apply_to_factor(self, factor: Array, diagonal: Array, basis: Array) -> Array:
        """
        Subtract the mean of the training samples.

        Shapes: factor (rank, n_samples), diagonal (n_samples,), basis (rank, n_train); returns (rank, n_samples).
        """
        centred: Array = factor - basis[:, self.present].mean(axis=1, keepdims=True)
        return centred


@dataclass(frozen=True, slots=True, eq=False)
class Divided:
    """Division by one number, so that kernels of different units have comparable sizes."""

    size: float  # the number; a kernel of size 0 is left as it is

    @classmethod
    def by_trace(cls, summary: Summary) -> Divided:
        """Take the mean of k(x, x) over the training samples."""
        return cls(float(summary.diagonal[summary.present].mean()))

    @classmethod
    def by_variance(cls, summary: Summary) -> Divided:
        """Take the variance of the training samples in feature space: mean of the diagonal less mean of the matrix."""
        trace, mean = (values[summary.present].mean() for values in (summary.diagonal, summary.column_means()))
        # The variance of equal samples is zero only up to rounding.
        return cls(float(trace - mean) if trace - mean > 1e-12 * abs(trace) else 0.0)

    def apply(self, kernel: Array, diagonal: Array) -> Array:
        """
        Divide by the number.

        Shapes: kernel (n_samples, n_train), diagonal (n_samples,); returns (n_samples, n_train).
        """
        return kernel / self.size if self.size > 0.0 else kernel

    def apply_to_diagonal(self, kernel: Array, diagonal: Array) -> Array:
        """Divide by the number. Shapes: kernel (n_samples, n_train), diagonal (n_samples,); returns (n_samples,)."""
        return diagonal / self.size if self.size > 0.0 else diagonal

    def apply_to_factor(self, factor: Array, diagonal: Array, basis: Array) -> Array:
        """
        Divide by the root of the number.

        Shapes: factor (rank, n_samples), diagonal (n_samples,), basis (rank, n_train); returns (rank, n_samples).
        """
        return factor / np.sqrt(self.size) if self.size > 0.0 else factor


SCALINGS: dict[str, Callable[[Summary], Scaling]] = {
    "spherical": Spherical.fit,
    "centred": Centred.fit,
    "trace": Divided.by_trace,
    "variance": Divided.by_variance,
}
"""Scalings by name; each takes the summary of a training kernel, and returns the fitted scaling."""
