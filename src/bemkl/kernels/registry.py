"""Kernels by name: the matrix, the diagonal k(x, x), and for kernels of a distance the two steps apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from bemkl.arrays import Array
from bemkl.kernels import counts, functions, sequences

Matrix = Callable[..., Array]


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """A kernel function with what a bank wants to know of it."""

    name: str  # how it is called in the names of kernels
    matrix: Matrix  # maps points X and Z, and parameters by name, to the kernel matrix
    # maps points X, and parameters by name, to the values k(x, x); without it they are computed one by one
    diagonal: Matrix | None = None
    metric: str | None = None  # for kernels of a distance: the distance, by SciPy's name
    # for kernels of a distance: maps distances, and parameters by name, to the kernel matrix; writes it to `out`
    profile: Matrix | None = None
    # whether it is positive semidefinite, and a column alone costs no more than its share of the matrix: then the
    # kernel can be factored without the matrix
    by_column: bool = False

    def diagonal_of(self, X: Any, **parameters: Any) -> Array:
        """Values k(x, x) of some points. Shapes: returns (n_samples,)."""
        if self.diagonal is not None:
            return self.diagonal(X, **parameters)
        return np.array([float(self.matrix(X[i : i + 1], X[i : i + 1], **parameters)[0, 0]) for i in range(len(X))])


def _ones(X: Any, **parameters: Any) -> Array:
    return np.ones(len(X))


def _nonzero(X: Any) -> Array:
    return np.where(np.asarray(X).any(axis=1), 1.0, 0.0)


def _squares(X: Any, **parameters: Any) -> Array:
    squares: Array = np.square(X).sum(axis=1)
    return squares


def _polynomial(X: Any, degree: int, offset: float = 1.0) -> Array:
    degree, offset = functions.polynomial_parameters(degree, offset)
    diagonal: Array = (_squares(X) + offset) ** degree
    return diagonal


NAMED = {
    kernel.name: kernel
    for kernel in (
        KernelFunction("gaussian", functions.gaussian, _ones, "sqeuclidean", functions.gaussian_profile, True),
        KernelFunction("rbf", functions.rbf, _ones, by_column=True),
        KernelFunction("laplacian", functions.laplacian, _ones, "cityblock", functions.laplacian_profile, True),
        KernelFunction("matern", functions.matern, _ones, "euclidean", functions.matern_profile, True),
        KernelFunction("periodic", functions.periodic, _ones, by_column=True),
        KernelFunction("linear", functions.linear, _squares, by_column=True),
        KernelFunction("cosine", functions.cosine, _nonzero, by_column=True),
        KernelFunction("polynomial", functions.polynomial, _polynomial, by_column=True),
        KernelFunction("chi2", counts.chi2, _ones, by_column=True),
        KernelFunction("additive_chi2", counts.additive_chi2, counts.sums_of_counts, by_column=True),
        KernelFunction("intersection", counts.intersection, counts.sums_of_counts, by_column=True),
        KernelFunction("tanimoto", counts.tanimoto, _ones, by_column=True),
        KernelFunction("hamming", counts.hamming, _ones, by_column=True),
        KernelFunction("spectrum", sequences.spectrum, sequences.spectrum_squares),
    )
}
"""The package's kernels."""
SEQUENCES = {"spectrum"}
"""Those that compare sequences."""
NUMERIC = {*NAMED, *PAIRWISE_KERNEL_FUNCTIONS} - SEQUENCES
"""Kernels with names that compare vectors of numbers."""


def find_kernel(kernel: str | Matrix) -> KernelFunction:
    """Look a kernel up."""
    if isinstance(kernel, type):
        raise ValueError(
            f"kernel: expected an object, got the class {kernel.__name__} itself. Pass {kernel.__name__}()."
        )
    if callable(kernel):
        named = getattr(kernel, "func", kernel)
        return KernelFunction(getattr(named, "__name__", None) or repr(kernel), kernel)
    if not isinstance(kernel, str):
        raise ValueError(f"kernel: expected a name or a function of X and Z, got {kernel!r}.")
    if kernel in NAMED:
        return NAMED[kernel]
    if kernel in PAIRWISE_KERNEL_FUNCTIONS:
        return KernelFunction(kernel, PAIRWISE_KERNEL_FUNCTIONS[kernel])
    known = ", ".join(sorted({*NAMED, *PAIRWISE_KERNEL_FUNCTIONS}))
    raise ValueError(f"kernel: expected a function of X and Z, or one of {known}; got {kernel!r}.")


def kernel_functions() -> set[Matrix]:
    """Return the functions that kernels with names are made of, which saved models may refer to."""
    parts = [(kernel.matrix, kernel.diagonal, kernel.profile) for kernel in NAMED.values()]
    own = {function for functions in parts for function in functions if function is not None}
    return own | set(PAIRWISE_KERNEL_FUNCTIONS.values())
