"""Thin factors of several kernels in one array, so that a product with all of them is one loop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, refuse_nonfinite
from bemkl.kernels.compiled import compiled_products
from bemkl.kernels.forms import Full, LowRank
from bemkl.kernels.shelf import follows, joined

_VALUES = 2**17
"""Least numbers in a run: enough to make the calls few, and little next to a whole stack."""

_FEW_OUTPUTS = 8
"""Up to here the compiled loop is faster; matrix products of more rows at a time catch up with it."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """
    Thin factors of several kernels, one below the other.

    Parameters
    ----------
    owners : ndarray of int of shape (n_members,)
        Position of each kernel in its stack.
    ends : ndarray of int of shape (n_members,)
        Row after the last one of each kernel.
    left : ndarray of shape (n_rows, n_samples)
        Factors of the samples.
    right : ndarray of shape (n_rows, n_basis)
        Factors of the basis points; the same object where these are the samples.
    """

    owners: npt.NDArray[np.intp]
    ends: npt.NDArray[np.intp]
    left: Array
    right: Array

    @property
    def members(self) -> list[LowRank]:
        """The kernels, each a view."""
        starts = np.concatenate([[0], self.ends[:-1]])
        rows = [slice(start, end) for start, end in zip(starts, self.ends, strict=True)]
        if self.left is self.right:
            return [LowRank(part, part) for part in (self.left[some] for some in rows)]
        return [LowRank(self.left[some], self.right[some]) for some in rows]

    def project(self, coefficients: Array, out: Array) -> None:
        r"""
        Multiply every kernel with coefficients of the basis points, :math:`\mathbf{K}_m \boldsymbol{a}`.

        Parameters
        ----------
        coefficients : ndarray of shape (n_outputs, n_basis)
            One row of coefficients an output.
        out : ndarray of shape (n_outputs, n_kernels, n_samples)
            Where to write; other kernels of the stack are left alone.
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

        Parameters
        ----------
        intermediate : ndarray of shape (n_outputs, n_kernels, n_samples)
            Intermediate outputs of all kernels of the stack.
        out : ndarray of shape (n_outputs, n_basis)
            What to add to.
        """
        products = compiled_products() if len(intermediate) <= _FEW_OUTPUTS else None
        if products is not None:
            products.backproject(self.owners, self.ends, self.left, self.right, np.ascontiguousarray(intermediate), out)
            return
        for owner, kernel in zip(self.owners, self.members, strict=True):
            out += kernel.multiply_transposed(intermediate[:, owner])


def in_runs(kernels: Iterable[LowRank | Full]) -> tuple[list[LowRank | Full], list[Run]]:
    """
    Join thin factors in runs, a few at a time; those that lie side by side are not copied.

    Parameters
    ----------
    kernels : iterable of LowRank or Full
        Kernels of the same samples and basis points.

    Returns
    -------
    kernels : list of LowRank or Full
        The same kernels in the same order; the factors are views of the runs.
    runs : list of Run
        The runs.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones((1, 3))
    >>> kernels, runs = in_runs([LowRank(ones, ones), Full(np.eye(3)), LowRank(ones, ones)])
    >>> [run.owners.tolist() for run in runs], kernels[2].left.base is runs[0].left
    ([[0, 2]], True)
    """
    found: list[LowRank | Full] = []
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
                long = n_values >= _VALUES and not follows(kernel.left, last.left)
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
    # Many small arrays at once cost no more than one of them.
    for part in (left,) if left is right else (left, right):
        refuse_nonfinite("kernels", part)
    ends = np.cumsum([len(kernel.left) for kernel in kernels])
    return Run(np.array(list(members), dtype=np.intp), ends.astype(np.intp), left, right)
