"""Thin factors of several kernels in one array, so that a product with all of them is one loop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, refuse_nonfinite
from bemkl.caching import lazy_property
from bemkl.kernels.compiled import compiled_products
from bemkl.kernels.forms import RIDGE, Kernel, LowRank, refuse_root
from bemkl.kernels.shelf import joined

_VALUES = 2**17
"""Least numbers in a run: enough to make the calls few, and little next to a whole stack."""

_FEW_OUTPUTS = 8
"""Up to here the compiled loop is faster; matrix products of more rows at a time catch up with it."""


_SHORT = 40
"""Rank up to which a compiled root costs less than the calls of its parts."""

_NEGLIGIBLE = 1e-13
"""
Share of a squared trace, the product of those of both factors, that may be left out of a squared kernel: a thousandth
of what factors of the default tolerance leave out themselves.
"""


@dataclass(frozen=True, eq=False)
class Run:
    """Thin factors of several kernels, one below the other."""

    owners: npt.NDArray[np.intp]  # (n_members,): position of each kernel in its stack
    ends: npt.NDArray[np.intp]  # (n_members,): row after the last one of each kernel
    left: Array  # (n_rows, n_samples): factors of the samples
    right: Array  # (n_rows, n_basis): factors of the basis points; the same object where these are the samples

    @property
    def members(self) -> list[LowRank]:
        """The kernels, each a view."""
        starts = np.concatenate([[0], self.ends[:-1]])
        rows = [slice(start, end) for start, end in zip(starts, self.ends, strict=True)]
        if self.left is self.right:
            return [LowRank(part, part) for part in (self.left[some] for some in rows)]
        return [LowRank(self.left[some], self.right[some]) for some in rows]

    @lazy_property
    def squares(self) -> tuple[Array, Array]:
        """Squared lengths of the columns of both factors, each of shape (n_rows,)."""
        with np.errstate(over="ignore"):
            left = np.vecdot(self.left, self.left)
            return left, left if self.left is self.right else np.vecdot(self.right, self.right)

    @lazy_property
    def ranks(self) -> npt.NDArray[np.intp]:
        """Ranks of the kernels, shape (n_members,)."""
        return np.diff(self.ends, prepend=0)

    @lazy_property
    def row_members(self) -> npt.NDArray[np.intp]:
        """Number of the member that each row belongs to, shape (n_rows,)."""
        return np.repeat(np.arange(len(self.ends)), self.ranks)

    def traces(self, squares: Array) -> Array:
        """Sum numbers of the rows over those of each member. Shapes: squares (n_rows,); returns (n_members,)."""
        traces: Array = np.bincount(self.row_members, squares, minlength=len(self.ends)).astype(np.float64)
        return traces

    def shares_before(self, squares: Array) -> Array:
        """
        Return the share of a member's trace that its rows up to one have, without that one.

        Shapes: squares (n_rows,); returns (n_rows,).
        """
        members = self.row_members
        traces = self.traces(squares)[members]
        # Shares, because sums over kernels of different sizes would round the small ones away.
        shares = np.divide(squares, traces, out=np.zeros_like(squares), where=traces > 0.0)
        sums = np.concatenate([[0.0], np.cumsum(shares)])
        before: Array = sums[:-1] - sums[self.ends - self.ranks][members]
        return before

    def write_roots(self, out: Array) -> int:
        r"""
        Write thin matrices W with :math:`\mathbf{W}^\top\mathbf{W} = \mathbf{K}_m^\top\mathbf{K}_m`, one a kernel.

        The last rows of each are as small as the squares of the factors' last ones, and left out where that is little
        next to what the factors leave out: the error is at most the product of what these rows have of both traces.

        Shapes: out (n_rows, n_basis).
        """
        left, right = (1.0 - self.shares_before(squares) for squares in self.squares)
        kept = np.bincount(self.row_members, left * right > _NEGLIGIBLE, minlength=len(self.ends)).astype(np.intp)
        loops = compiled_products()
        compiled = self.ranks <= (_SHORT if loops is not None else -1)
        starts, filled = self.ends - self.ranks, 0
        for some in np.split(np.arange(len(self.ends)), np.flatnonzero(np.diff(compiled)) + 1):
            rows = slice(starts[some[0]], self.ends[some[-1]])
            parts, ends = (self.left[rows], self.right[rows]), self.ends[some] - rows.start
            if compiled[some[0]]:
                if loops.write_roots(*parts, ends, kept[some], RIDGE, out[filled:]) < len(some):
                    refuse_root()
                filled += int(kept[some].sum())
                continue
            for m, start in zip(some, starts[some], strict=True):
                factors = (factor[start : self.ends[m]] for factor in (self.left, self.right))
                LowRank(*factors).write_root(out[filled : filled + self.ends[m] - start])
                filled += int(kept[m])
        return filled

    def project(self, coefficients: Array, out: Array) -> None:
        r"""
        Multiply every kernel with coefficients of the basis points, :math:`\mathbf{K}_m \boldsymbol{a}`.

        Shapes: coefficients (n_outputs, n_basis), out (n_outputs, n_kernels, n_samples).
        """
        products = compiled_products() if len(coefficients) <= _FEW_OUTPUTS else None
        if products is not None:
            products.project(self.owners, self.ends, self.left, self.right, np.ascontiguousarray(coefficients), out)
            return
        for owner, kernel in zip(self.owners, self.members, strict=True):
            out[:, owner] = kernel.multiply(coefficients)

    def backproject(self, intermediate: Array, out: Array) -> None:
        r"""
        Add the kernels times intermediate outputs, :math:`\sum_m \mathbf{K}_m^\top \boldsymbol{g}^m`.

        Shapes: intermediate (n_outputs, n_kernels, n_samples), out (n_outputs, n_basis).
        """
        products = compiled_products() if len(intermediate) <= _FEW_OUTPUTS else None
        if products is not None:
            products.backproject(self.owners, self.ends, self.left, self.right, np.ascontiguousarray(intermediate), out)
            return
        for owner, kernel in zip(self.owners, self.members, strict=True):
            out += kernel.multiply_transposed(intermediate[:, owner])


def in_runs(kernels: Iterable[Kernel]) -> tuple[list[Kernel], list[Run]]:
    """Join thin factors in runs, a few at a time; those that lie side by side are not copied."""
    found: list[Kernel] = []
    runs: list[Run] = []
    waiting: dict[int, LowRank] = {}
    n_values = 0

    def close() -> None:
        nonlocal n_values
        n_values = 0
        runs.append(_run(waiting))
        for owner, member in zip(waiting, runs[-1].members, strict=True):
            found[owner] = member
        waiting.clear()

    for position, kernel in enumerate(kernels):
        found.append(kernel)
        if isinstance(kernel, LowRank):
            if waiting:
                last = next(reversed(waiting.values()))
                # Parts of one array that lie in line are not copied, however long they are.
                apart = kernel.left.base is None or kernel.left.base is not last.left.base
                long = n_values >= _VALUES and apart
                if long or _is_shared(kernel) != _is_shared(last):
                    close()
            waiting[position] = kernel
            n_values += kernel.left.size
    if waiting:
        close()
    return found, runs


def _is_shared(kernel: LowRank) -> bool:
    return kernel.left is kernel.right


def _run(members: dict[int, LowRank]) -> Run:
    """Put factors one below the other, and refuse what is not finite."""
    kernels = list(members.values())
    left = joined([kernel.left for kernel in kernels])
    right = left if _is_shared(kernels[0]) else joined([kernel.right for kernel in kernels])
    ends = np.cumsum([len(kernel.left) for kernel in kernels])
    run = Run(np.array(list(members), dtype=np.intp), ends.astype(np.intp), left, right)
    for part, squares in zip((left, right), run.squares, strict=True):
        # Squared lengths are needed anyway, and finite only where all numbers are.
        if not np.isfinite(squares).all():
            refuse_nonfinite("kernels", part)
    return run
