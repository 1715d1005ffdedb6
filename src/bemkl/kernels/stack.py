"""Stacks of kernel matrices: the only place where the inference touches a kernel value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl._numerics.linalg import sum_of_squares
from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array, real_array, refuse_out_of_range
from bemkl.kernels.cholesky import compressed
from bemkl.kernels.forms import Form, LowRankFactors, hold
from bemkl.kernels.forms.protocol import LARGE_KERNELS, asymmetry

_LEAST = 0.02
"""Share of an approximate sum that the smallest kernels have together, which are left out."""

_FACTOR_NUMBERS = 2**20
"""Numbers in an array of factors: enough for few calls, and for large pages of memory, which cost less."""


class DenseStack:
    """
    Kernel matrices held in memory as one array.

    Parameters
    ----------
    kernels : array_like of shape (n_kernels, n_samples, n_basis)
        Entry (m, i, d) is the similarity of sample i to basis point d under kernel m. The basis points are the training
        samples, in their order, unless landmarks are used. A float32 array is kept as it is; all arithmetic is
        done in float64, a kernel at a time.
    own : ndarray of shape (n_kernels, n_samples), optional
        Similarities of the samples to themselves, where they are known.

    Examples
    --------
    >>> import numpy as np
    >>> stack = DenseStack(np.stack([np.eye(3), np.ones((3, 3))]))
    >>> stack.shape
    (2, 3, 3)
    >>> stack.project(np.array([[1.0, 2.0, 3.0]]))
    array([[[1., 2., 3.],
            [6., 6., 6.]]])
    """

    def __init__(self, kernels: npt.ArrayLike, *, own: Array | None = None) -> None:
        values = real_array("kernels", kernels)
        if values.ndim != 3 or 0 in values.shape:
            raise ValueError(
                "kernels: expected a kernel stack of shape (n_kernels, n_samples, n_basis), "
                f"got an array of shape {values.shape}. Put single matrices together with np.stack."
            )
        if values.dtype != np.float32:
            values = values.astype(np.float64, copy=False)
        refuse_out_of_range("kernels", values, LARGE_KERNELS)
        self._values: npt.NDArray[Any] = np.ascontiguousarray(values)
        self._gram: Array | None = None
        self.own = own

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""
        n_kernels, n_samples, n_basis = self._values.shape
        return n_kernels, n_samples, n_basis

    @property
    def n_values(self) -> int:
        """Number of values in memory."""
        return self._values.size

    @property
    def values(self) -> npt.NDArray[Any]:
        """The kernel matrices, shape (n_kernels, n_samples, n_basis)."""
        return self._values

    def _parts(self) -> Iterator[tuple[slice, Array]]:
        """Yield kernels as float64: all of them at once, or one by one where each needs a conversion."""
        if self._values.dtype == np.float64:
            yield slice(None), self._values
            return
        for m in range(self.shape[0]):
            yield slice(m, m + 1), self._values[m : m + 1].astype(np.float64)

    def asymmetries(self) -> Array:
        """
        Largest difference between each kernel and its transpose, relative to that kernel's largest entry.

        Shapes: returns (n_kernels,).
        """
        return np.array([asymmetry(kernel) for kernel in self._values])

    def project(self, coefficients: Array) -> Array:
        r"""
        Multiply every kernel with coefficients of the basis points, :math:`\mathbf{K}_m \boldsymbol{a}`.

        Shapes: coefficients (n_outputs, n_basis); returns (n_outputs, n_kernels, n_samples).
        """
        n_kernels, n_samples, n_basis = self.shape
        result = np.empty((len(coefficients), n_kernels, n_samples))
        for kernels, part in self._parts():
            flat = part.reshape(-1, n_basis)
            result[:, kernels] = (coefficients @ flat.T).reshape(len(coefficients), -1, n_samples)
        return result

    def backproject(self, intermediate: Array) -> Array:
        r"""
        Sum the kernels against intermediate outputs, :math:`\sum_m \mathbf{K}_m^\top \boldsymbol{g}^m`.

        Shapes: intermediate (n_outputs, n_kernels, n_samples); returns (n_outputs, n_basis).
        """
        n_basis = self.shape[2]
        result = np.zeros((len(intermediate), n_basis))
        for kernels, part in self._parts():
            result += intermediate[:, kernels].reshape(len(intermediate), -1) @ part.reshape(-1, n_basis)
        return result

    def gram(self) -> Array:
        r"""
        Sum of the squared kernels, :math:`\mathbf{C} = \sum_m \mathbf{K}_m^\top \mathbf{K}_m`, computed once.

        Shapes: returns (n_basis, n_basis).
        """
        if self._gram is None:
            n_basis = self.shape[2]
            self._gram = sum_of_squares((part.reshape(-1, n_basis) for _, part in self._parts()), n_basis)
        return self._gram

    def combine(self, weights: Array) -> Array:
        r"""
        Weighted sum of the kernels, :math:`\sum_m e_m \mathbf{K}_m`.

        Parameters
        ----------
        weights : ndarray of shape (n_kernels,)
            The weights.

        Returns
        -------
        ndarray of shape (n_samples, n_basis)
            The sum.
        """
        _, n_samples, n_basis = self.shape
        combined = np.zeros(n_samples * n_basis)
        for kernels, part in self._parts():
            combined += weights[kernels] @ part.reshape(len(part), -1)
        return combined.reshape(n_samples, n_basis)

    def combine_approximately(self, weights: Array) -> Array:
        """
        Approximate the weighted sum of the kernels; of matrices, the sum itself.

        Shapes: weights (n_kernels,); returns (n_samples, n_basis).
        """
        return self.combine(weights)

    def each(self) -> Iterator[tuple[int, Array | None, npt.NDArray[Any] | None]]:
        """
        Show the kernels one by one.

        Yields
        ------
        position : int
            Place of the kernel.
        factor : None
            There is none.
        matrix : ndarray of shape (n_samples, n_basis)
            The kernel.
        """
        for m, kernel in enumerate(self._values):
            yield m, None, kernel

    def rows(self, chosen: slice) -> Array:
        """Return some rows of every kernel. Shapes: returns (n_kernels, n_chosen, n_basis)."""
        return np.ascontiguousarray(self._values[:, chosen], dtype=np.float64)


class FactoredStack:
    """
    Kernels held as thin factors where that is smaller, and as matrices where it is not.

    The paper's banks have hundreds of kernels on one feature each, of rank 2 to 100: their factors are many times
    smaller than their matrices, and so are the passes over them.

    Parameters
    ----------
    forms : sequence of Form
        The kernels, all of the same samples and basis points.
    positions : sequence of array_like of int, optional
        Positions in the stack of the kernels that each form has; one form after the other without it.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl.kernels.forms import Full, LowRankFactors
    >>> stack = FactoredStack([Full(np.eye(3)), LowRankFactors.single(np.ones((1, 3)))])
    >>> stack.project(np.array([[1.0, 2.0, 3.0]]))
    array([[[1., 2., 3.],
            [6., 6., 6.]]])
    >>> stack.n_values
    12
    """

    def __init__(self, forms: Sequence[Form], positions: Sequence[npt.ArrayLike] | None = None) -> None:
        if not forms:
            raise ValueError("kernels: expected at least one kernel, got none.")
        for form in forms:
            if form.shape[1:] != forms[0].shape[1:]:
                raise ValueError(
                    f"kernels: expected kernels of the same samples, got shapes {forms[0].shape[1:]} and "
                    f"{form.shape[1:]}."
                )
            form.refuse_bad()
        ends = np.cumsum([form.shape[0] for form in forms])
        if positions is None:
            positions = np.split(np.arange(ends[-1]), ends[:-1])
        self._forms = [(np.asarray(at, dtype=np.intp), form) for at, form in zip(positions, forms, strict=True)]
        _, n_samples, n_basis = forms[0].shape
        self._shape = int(ends[-1]), n_samples, n_basis
        self._gram: Array | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""
        return self._shape

    @property
    def n_values(self) -> int:
        """Number of values in memory."""
        return sum(form.n_values for _, form in self._forms)

    def asymmetries(self) -> Array:
        """
        Largest difference between each kernel and its transpose, relative to that kernel's largest entry.

        Shapes: returns (n_kernels,).
        """
        result = np.empty(self.shape[0])
        for positions, form in self._forms:
            result[positions] = form.asymmetries()
        return result

    def project(self, coefficients: Array) -> Array:
        r"""
        Multiply every kernel with coefficients of the basis points, :math:`\mathbf{K}_m \boldsymbol{a}`.

        Shapes: coefficients (n_outputs, n_basis); returns (n_outputs, n_kernels, n_samples).
        """
        n_kernels, n_samples, _ = self.shape
        result = np.empty((len(coefficients), n_kernels, n_samples))
        for positions, form in self._forms:
            form.project(coefficients, positions, result)
        return result

    def backproject(self, intermediate: Array) -> Array:
        r"""
        Sum the kernels against intermediate outputs, :math:`\sum_m \mathbf{K}_m^\top \boldsymbol{g}^m`.

        Shapes: intermediate (n_outputs, n_kernels, n_samples); returns (n_outputs, n_basis).
        """
        result = np.zeros((len(intermediate), self.shape[2]))
        for positions, form in self._forms:
            form.backproject(intermediate, positions, result)
        return result

    def gram(self) -> Array:
        r"""
        Sum of the squared kernels, :math:`\mathbf{C} = \sum_m \mathbf{K}_m^\top \mathbf{K}_m`, computed once.

        Shapes: returns (n_basis, n_basis).
        """
        if self._gram is None:
            self._gram = sum_of_squares((root for _, form in self._forms for root in form.roots()), self.shape[2])
        return self._gram

    def combine_approximately(self, weights: Array) -> Array:
        r"""
        Approximate the weighted sum of the kernels, :math:`\sum_m e_m \mathbf{K}_m`.

        Enough for a preconditioner, at a fraction of the cost: without the kernels that together make up less than 2 %
        of the sum, and of many low-rank factors without their last rows and in single precision.

        Shapes: weights (n_kernels,); returns (n_samples, n_basis).
        """
        sizes = np.abs(weights) * self._sizes
        order = np.argsort(sizes)
        least = order[np.cumsum(sizes[order]) < _LEAST * sizes.sum()]
        kept = weights.copy()
        kept[least] = 0.0
        total = np.zeros(self.shape[1:])
        for positions, form in self._forms:
            form.add_approximately(kept[positions], total)
        return total

    @lazy_property
    def _sizes(self) -> Array:
        sizes = np.empty(self.shape[0])
        for positions, form in self._forms:
            sizes[positions] = form.sizes
        return sizes

    def each(self) -> Iterator[tuple[int, Array | None, npt.NDArray[Any] | None]]:
        """
        Show the kernels one by one.

        Yields
        ------
        position : int
            Place of the kernel.
        factor : ndarray of shape (n_rows, n_samples) or None
            Factor Z of ZᵀZ, where the kernel is held so.
        matrix : ndarray of shape (n_samples, n_basis) or None
            The kernel itself, where it is not.
        """
        for positions, form in self._forms:
            for position, (factor, matrix) in zip(positions, form.each(), strict=True):
                yield int(position), factor, matrix

    def rows(self, chosen: slice) -> Array:
        """Form some rows of every kernel. Shapes: returns (n_kernels, n_chosen, n_basis)."""
        n_kernels, n_samples, n_basis = self.shape
        result = np.empty((n_kernels, len(range(n_samples)[chosen]), n_basis))
        for positions, form in self._forms:
            result[positions] = form.rows(chosen)
        return result


class Gathering:
    """Kernels on their way into a stack: thin factors one below the other in large arrays, and matrices."""

    def __init__(self, basis: Any, tolerance: float) -> None:
        self._basis, self._tolerance = basis, tolerance  # which samples are the basis points; a slice if all of them
        self._array = np.empty((0, 0))
        self._ends, self._positions = [0], list[int]()
        self._forms: list[Form] = []
        self._places: list[list[int]] = []

    def add_factor(self, position: int, factor: Array) -> None:
        """Copy the factor of the kernel at a position of the stack. Shapes: factor (rank, n_samples)."""
        rank, n_samples = factor.shape
        if not self._array.size or self._ends[-1] + rank > len(self._array):
            self._close()
            self._array = np.empty((max(rank, _FACTOR_NUMBERS // n_samples), n_samples))
        self._array[self._ends[-1] : self._ends[-1] + rank] = factor
        self._ends.append(self._ends[-1] + rank)
        self._positions.append(position)

    def add_matrix(self, position: int, matrix: npt.NDArray[Any], *, symmetric: bool | None = None) -> None:
        """
        Hold the matrix of the kernel at a position of the stack; without a word on its symmetry, it may be thin.

        Shapes: matrix (n_samples, n_basis).
        """
        if symmetric is None:
            square = matrix.shape[0] == matrix.shape[1]
            factor = compressed(matrix, self._tolerance) if square and isinstance(self._basis, slice) else None
            if factor is not None:
                self.add_factor(position, factor)
                return
            symmetric = asymmetry(matrix) == 0.0
        self._forms.append(hold(matrix, self._tolerance, symmetric=symmetric))
        self._places.append([position])

    def stack(self) -> FactoredStack:
        """Return the stack of all kernels."""
        self._close()
        return FactoredStack(self._forms, self._places)

    def _close(self) -> None:
        """Make a form of the factors in an array; its other rows never cost memory."""
        if self._positions:
            left = self._array[: self._ends[-1]]
            right = left if isinstance(self._basis, slice) else np.ascontiguousarray(left[:, self._basis])
            self._forms.append(LowRankFactors(left, right, np.array(self._ends[1:], dtype=np.intp)))
            self._places.append(self._positions)
        self._array, self._ends, self._positions = np.empty((0, 0)), [0], []
