"""Kernels of low rank, held as products of factors with few rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf

from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array, refuse_nonfinite
from bemkl.kernels.cholesky import compiled_loops
from bemkl.kernels.forms.protocol import Positions, asymmetry

_FEW_OUTPUTS = 8
"""Up to here the compiled loop is faster; matrix products of more rows at a time catch up with it."""

_RIDGE = 1e-15
"""
Share of a trace that is added to the diagonal before a root is taken, for each row: the last rows of a factor are as
small as its tolerance, and this keeps the rest of them.
"""

_NEGLIGIBLE = 1e-13
"""
Share of a squared trace, the product of those of both factors, that may be left out of a squared kernel: a thousandth
of what factors of the default tolerance leave out themselves.
"""

_FEW_ROWS = 2
"""Rows, over basis points, up to which an approximate sum is exact, and does not depend on the order of samples."""

_LAST_ROWS = 0.05
"""Share of a kernel's trace that its last rows have, which an approximate sum is without."""


@dataclass(frozen=True, eq=False)
class LowRankFactors:
    r"""
    Kernels as products of factors with few rows, :math:`\mathbf{K}_m = \mathbf{L}_m^\top \mathbf{R}_m`.

    The factors of all kernels lie one below the other in two arrays, so that a product with all of them is one loop.
    """

    left: Array  # (n_rows, n_samples): factors of the samples
    right: Array  # (n_rows, n_basis): factors of the basis points; the same object where these are the samples
    ends: Positions  # (n_kernels,): row after the last one of each kernel

    @classmethod
    def single(cls, left: Array, right: Array | None = None) -> Self:
        """
        Hold one kernel; with one factor, basis points are the samples.

        Shapes: left (rank, n_samples), right (rank, n_basis).
        """
        factor = np.ascontiguousarray(left)
        other = factor if right is None or right is left else np.ascontiguousarray(right)
        return cls(factor, other, np.array([len(factor)], dtype=np.intp))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""
        return len(self.ends), self.left.shape[1], self.right.shape[1]

    @property
    def n_values(self) -> int:
        """Number of values in memory."""
        return self.left.size if self.left is self.right else self.left.size + self.right.size

    def refuse_bad(self) -> None:
        """Raise if there are numbers that are not finite."""
        for factor, squares in zip((self.left, self.right), self._squares, strict=True):
            # Squared lengths are needed anyway, and finite only where all numbers are.
            if not np.isfinite(squares).all():
                refuse_nonfinite("kernels", factor)

    def asymmetries(self) -> Array:
        """Largest relative difference between each kernel and its transpose. Shapes: returns (n_kernels,)."""
        if self.left is self.right:
            return np.zeros(len(self.ends))
        return np.array([asymmetry(self.left[rows].T @ self.right[rows]) for rows in self._blocks])

    def project(self, coefficients: Array, positions: Positions, out: Array) -> None:
        r"""
        Write the products with coefficients, :math:`\mathbf{L}_m^\top (\mathbf{R}_m \boldsymbol{a})`.

        Shapes: coefficients (n_outputs, n_basis), positions (n_kernels,), out (n_outputs, n_all_kernels, n_samples).
        """
        loops = compiled_loops() if len(coefficients) <= _FEW_OUTPUTS else None
        if loops is not None:
            loops.project(positions, self.ends, self.left, self.right, np.ascontiguousarray(coefficients), out)
            return
        for position, rows in zip(positions, self._blocks, strict=True):
            out[:, position] = (coefficients @ self.right[rows].T) @ self.left[rows]

    def backproject(self, intermediate: Array, positions: Positions, out: Array) -> None:
        r"""
        Add the products with intermediate outputs, :math:`\sum_m \mathbf{R}_m^\top (\mathbf{L}_m \boldsymbol{g}^m)`.

        Shapes: intermediate (n_outputs, n_all_kernels, n_samples), positions (n_kernels,), out (n_outputs, n_basis).
        """
        loops = compiled_loops() if len(intermediate) <= _FEW_OUTPUTS else None
        if loops is not None:
            loops.backproject(positions, self.ends, self.left, self.right, np.ascontiguousarray(intermediate), out)
            return
        for position, rows in zip(positions, self._blocks, strict=True):
            out += (intermediate[:, position] @ self.left[rows].T) @ self.right[rows]

    def roots(self) -> Iterator[Array]:
        r"""
        Yield :math:`\mathbf{C}_m^\top \mathbf{R}_m` with :math:`\mathbf{C}_m\mathbf{C}_m^\top =
        \mathbf{L}_m\mathbf{L}_m^\top`, those of all kernels one below the other.

        The last rows of each are as small as the squares of the factors' last ones, and left out where that is little.

        Shapes: returns (n_rows, n_basis).
        """
        left, right = (self._tails(squares) for squares in self._squares)
        kept = np.bincount(self._owners, left * right > _NEGLIGIBLE, minlength=len(self.ends)).astype(np.intp)
        roots = np.empty((kept.sum(), self.right.shape[1]))
        for rows, first, n_kept in zip(self._blocks, np.cumsum(kept) - kept, kept, strict=True):
            # The transpose of an array in C order is in LAPACK's order.
            product = dtrmm(1.0, _root(self.left[rows]), self.right[rows].T, side=1, lower=1).T
            roots[first : first + n_kept] = product[:n_kept]
        yield roots

    @property
    def sizes(self) -> Array:
        """Roots of the products of both factors' squared lengths: the trace, where both are the same."""
        left, right = (np.bincount(self._owners, squares, minlength=len(self.ends)) for squares in self._squares)
        sizes: Array = np.sqrt(left) * np.sqrt(right)
        return sizes

    def add_approximately(self, weights: Array, total: Array) -> None:
        """
        Add the kernels, times their weights; of many rows, only the first ones, and in single precision.

        Pivoted Cholesky puts rows in the order of what they explain: the first ones that make up 95 % of a kernel's
        trace are often a third of them.

        Shapes: weights (n_kernels,), total (n_samples, n_basis).
        """
        left_lengths, right_lengths = (np.sqrt(squares) for squares in self._squares)
        sizes = weights[self._owners] * left_lengths * right_lengths
        few = len(sizes) <= _FEW_ROWS * self.right.shape[1]
        if not few:
            sizes[self._tails(self._squares[1]) < _LAST_ROWS] = 0.0
        largest = np.abs(sizes).max(initial=0.0)
        subtotal = np.zeros(total.shape, dtype=np.float64 if few else np.float32)
        # A product of a matrix with itself costs half of a general one, but needs weights of one sign.
        for sign, add in ((1.0, np.add), (-1.0, np.subtract)):
            rows = np.flatnonzero(sign * sizes > 0.0)
            # Single precision has a small range: all numbers are at most 1.
            lengths = np.sqrt(np.abs(sizes[rows]) / (largest or 1.0))[:, None]
            left = (self.left[rows] * (lengths / left_lengths[rows, None])).astype(subtotal.dtype, copy=False)
            right = left
            if self.left is not self.right:
                right = (self.right[rows] * (lengths / right_lengths[rows, None])).astype(subtotal.dtype, copy=False)
            if rows.size:
                add(subtotal, left.T @ right, out=subtotal)
        total += largest * subtotal.astype(np.float64, copy=False)

    def rows(self, chosen: slice) -> Array:
        """Form some rows of every kernel. Shapes: returns (n_kernels, n_chosen, n_basis)."""
        return np.stack([self.left[rows, chosen].T @ self.right[rows] for rows in self._blocks])

    def each(self) -> Iterator[tuple[Array | None, npt.NDArray[Any] | None]]:
        """Yield the factor of each kernel, or its matrix where rows and columns have factors of their own."""
        for rows in self._blocks:
            if self.left is self.right:
                yield self.left[rows], None
            else:
                yield None, self.left[rows].T @ self.right[rows]

    @lazy_property
    def _ranks(self) -> Positions:
        """Ranks of the kernels, shape (n_kernels,)."""
        return np.diff(self.ends, prepend=0)

    @lazy_property
    def _blocks(self) -> list[slice]:
        """Rows of each kernel."""
        return [slice(end - rank, end) for end, rank in zip(self.ends, self._ranks, strict=True)]

    @lazy_property
    def _owners(self) -> Positions:
        """Number of the kernel that each row belongs to, shape (n_rows,)."""
        return np.repeat(np.arange(len(self.ends)), self._ranks)

    @lazy_property
    def _squares(self) -> tuple[Array, Array]:
        """Squared lengths of the rows of both factors, each of shape (n_rows,)."""
        with np.errstate(over="ignore"):
            left = np.vecdot(self.left, self.left)
            return left, left if self.left is self.right else np.vecdot(self.right, self.right)

    def _tails(self, squares: Array) -> Array:
        """
        Return the share of its kernel's trace that each row has, with those below it.

        Shapes: squares (n_rows,); returns (n_rows,).
        """
        owners = self._owners
        traces = np.bincount(owners, squares, minlength=len(self.ends))[owners]
        # Shares, because sums over kernels of different sizes would round the small ones away.
        shares = np.divide(squares, traces, out=np.zeros_like(squares), where=traces > 0.0)
        before = np.cumsum(shares) - shares
        tails: Array = 1.0 - (before - before[(self.ends - self._ranks)[owners]])
        return tails


def _root(factor: Array) -> Array:
    r"""Return a lower triangular :math:`\mathbf{C}` with :math:`\mathbf{C C}^\top = \mathbf{L L}^\top`."""
    inner = factor @ factor.T
    trace = float(inner.trace())
    if trace == 0.0:
        return inner
    inner.flat[:: len(inner) + 1] += _RIDGE * len(inner) * trace
    root, failed = dpotrf(inner.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError(
            "kernels: a factor has numbers too far apart or too small to be squared. Scale the kernel."
        )
    return np.asarray(root, dtype=np.float64)
