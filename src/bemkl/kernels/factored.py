"""Stacks of kernels held as thin factors where that is smaller, and as matrices where it is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from bemkl.arrays import Array, refuse_out_of_range
from bemkl.kernels.forms import Full, Kernel, LowRank
from bemkl.kernels.powers import Power, in_families
from bemkl.kernels.runs import in_runs
from bemkl.kernels.sketch import Sketch
from bemkl.kernels.sparse import Sparse
from bemkl.kernels.stack import LARGE_KERNELS, asymmetry, sum_of_squares

_GRAM_ROWS = 512
_LEAST = 0.02


class FactoredStack:
    """
    Kernels held one by one, as thin factors, as sparse matrices or as full ones; powers of a matrix as that matrix.

    The paper's banks have hundreds of kernels on one feature each, of rank 2 to 100: their factors are many times
    smaller than their matrices, and so are the passes over them.

    Parameters
    ----------
    kernels : iterable of LowRank, Sparse, Full or Power
        The kernels, all of the same samples and basis points. Factors are copied a few at a time, and those that lie
        side by side or are very long not at all: what nobody else holds never takes twice its memory.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones((1, 3))
    >>> stack = FactoredStack([Full(np.eye(3)), LowRank(ones, ones)])
    >>> stack.project(np.array([[1.0, 2.0, 3.0]]))
    array([[[1., 2., 3.],
            [6., 6., 6.]]])
    >>> stack.n_values
    12
    """

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        self._kernels, self._runs = in_runs(_checked(kernels))
        if not self._kernels:
            raise ValueError("kernels: expected at least one kernel, got none.")
        self._matrices = [(m, kernel) for m, kernel in enumerate(self._kernels) if isinstance(kernel, Full | Sparse)]
        self._families = in_families((m, kernel) for m, kernel in enumerate(self._kernels) if isinstance(kernel, Power))
        self._gram: Array | None = None
        self._sketch: Sketch | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""
        return len(self._kernels), *self._kernels[0].shape

    @property
    def n_values(self) -> int:
        """Number of values in memory."""
        own = sum(kernel.n_values for kernel in self._kernels if not isinstance(kernel, Power))
        return own + sum(family.base.size for family in self._families)

    def asymmetries(self) -> Array:
        """
        Largest difference between each kernel and its transpose, relative to that kernel's largest entry.

        Returns
        -------
        ndarray of shape (n_kernels,)
            Zero for symmetric kernels; infinity where they are not square.
        """
        return np.array([_asymmetry(kernel) for kernel in self._kernels])

    def project(self, coefficients: Array) -> Array:
        r"""
        Multiply every kernel with coefficients of the basis points, :math:`\mathbf{K}_m \boldsymbol{a}`.

        Parameters
        ----------
        coefficients : ndarray of shape (n_outputs, n_basis)
            One row of coefficients an output.

        Returns
        -------
        ndarray of shape (n_outputs, n_kernels, n_samples)
            The intermediate outputs that the coefficients give.
        """
        n_kernels, n_samples, _ = self.shape
        result = np.empty((len(coefficients), n_kernels, n_samples))
        for run in self._runs:
            run.project(coefficients, result)
        for family in self._families:
            family.project(coefficients, result)
        for m, kernel in self._matrices:
            result[:, m] = kernel.multiply(coefficients)
        return result

    def backproject(self, intermediate: Array) -> Array:
        r"""
        Sum the kernels against intermediate outputs, :math:`\sum_m \mathbf{K}_m^\top \boldsymbol{g}^m`.

        Parameters
        ----------
        intermediate : ndarray of shape (n_outputs, n_kernels, n_samples)
            Intermediate outputs.

        Returns
        -------
        ndarray of shape (n_outputs, n_basis)
            The adjoint of :meth:`project`.
        """
        result = np.zeros((len(intermediate), self.shape[2]))
        for run in self._runs:
            run.backproject(intermediate, result)
        for family in self._families:
            family.backproject(intermediate, result)
        for m, kernel in self._matrices:
            result += kernel.multiply_transposed(intermediate[:, m])
        return result

    def gram(self) -> Array:
        r"""
        Sum of the squared kernels, :math:`\mathbf{C} = \sum_m \mathbf{K}_m^\top \mathbf{K}_m`, computed once.

        Returns
        -------
        ndarray of shape (n_basis, n_basis)
            The sum.
        """
        if self._gram is None:
            gram = sum_of_squares(self._roots(), self.shape[2])
            for _, kernel in self._matrices:
                if isinstance(kernel, Sparse):
                    kernel.add_square_to(gram)
            self._gram = gram
        return self._gram

    def _roots(self) -> Iterator[Array]:
        """Yield roots of the squared kernels, in pieces long enough for fast products, one in the place of another."""
        lengths = [len(run.left) for run in self._runs]
        buffer, filled = np.empty((max(min(_GRAM_ROWS, sum(lengths)), *lengths, 0), self.shape[2])), 0
        for run, length in zip(self._runs, lengths, strict=True):
            if filled + length > len(buffer):
                yield buffer[:filled]
                filled = 0
            filled += run.write_roots(buffer[filled : filled + length])
        if filled:
            yield buffer[:filled]
        yield from (kernel.values for _, kernel in self._matrices if isinstance(kernel, Full))
        yield from (matrix for family in self._families for _, matrix in family.matrices())

    def combine_roughly(self, weights: Array) -> Array:
        r"""
        Approximate the weighted sum of the kernels, :math:`\sum_m e_m \mathbf{K}_m`.

        Kernels that together make up less than 2 % of the sum are left out, and of many factors only the first columns
        that make up 95 % of the trace are used, in single precision: enough for a preconditioner, at a fraction of the
        cost. Where few kernels are left with weight, that fraction is small.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
            The weights.

        Returns
        -------
        ndarray of shape (n_samples, n_basis)
            The sum.
        """
        sketch = self._sketch
        if sketch is None:
            sketch = Sketch(self._runs, self.shape)
            for m, kernel in self._matrices:
                sketch.sizes[m] = kernel.size
            for family in self._families:
                sketch.sizes[family.owners] = family.sizes
            # Only now, because fits in other threads may be waiting for it.
            self._sketch = sketch
        weights = _without_least(weights, np.abs(weights) * sketch.sizes)
        total = sketch.combine(weights)
        for m, kernel in self._matrices:
            kernel.add_to(total, float(weights[m]))
        for family in self._families:
            family.add_to(total, weights)
        return total

    def rows(self, chosen: slice) -> Array:
        """
        Form some rows of every kernel.

        Parameters
        ----------
        chosen : slice
            Which samples.

        Returns
        -------
        ndarray of shape (n_kernels, n_chosen, n_basis)
            The rows.
        """
        return np.stack([kernel.rows(chosen) for kernel in self._kernels])


def _checked(kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """Pass kernels on, and refuse those that are not of the samples of the first, and matrices that are not finite."""
    first: tuple[int, int] | None = None
    for kernel in kernels:
        first = first or kernel.shape
        if kernel.shape != first:
            raise ValueError(f"kernels: expected kernels of the same samples, got shapes {first} and {kernel.shape}.")
        if isinstance(kernel, Full):
            refuse_out_of_range("kernels", kernel.matrix, LARGE_KERNELS)
        yield kernel


def _without_least(weights: Array, sizes: Array) -> Array:
    """Set the weights of the smallest terms of a sum to zero, as many as make up a small part of it."""
    order = np.argsort(sizes)
    small = np.cumsum(sizes[order]) < _LEAST * sizes.sum()
    result = weights.copy()
    result[order[small]] = 0.0
    return result


def _asymmetry(kernel: Kernel) -> float:
    if isinstance(kernel, Power):
        return 0.0
    known = kernel.left is kernel.right if isinstance(kernel, LowRank) else kernel.symmetric
    return 0.0 if known else asymmetry(kernel.rows(slice(None)))
