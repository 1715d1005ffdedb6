"""The leading parts of many thin factors, for a cheap and rough sum of their kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.kernels.compiled import compiled_products
from bemkl.kernels.runs import Run

_SHARE = 0.95
_FEW = 2
_ROWS = 1024
"""Columns of factors that are multiplied at a time."""


class _Part(NamedTuple):
    """The chosen columns of a run: their places in it, their kernels, and their lengths in both factors."""

    run: Run
    places: npt.NDArray[np.intp]
    owners: npt.NDArray[np.intp]
    left: Array
    right: Array


class Sketch:
    """
    The first columns of each factor that make up 95 % of its trace, in single precision; all of it if that is little.

    Pivoted Cholesky puts the columns in the order of what they explain, so the first ones are the best ones. They are
    read where they are, a few at a time.

    Shapes: sizes (n_kernels,).
    """

    def __init__(self, runs: Sequence[Run], shape: tuple[int, int, int]) -> None:
        n_kernels, self._n_samples, self._n_basis = shape
        few = sum(len(run.left) for run in runs) <= _FEW * self._n_basis
        self._dtype: Any = np.float64 if few else np.float32
        self._shared = self._n_samples == self._n_basis and all(run.left is run.right for run in runs)
        self._parts: list[_Part] = []
        self.sizes = np.zeros(n_kernels)
        for run in runs:
            left, right = run.squares
            self.sizes[run.owners] = np.sqrt(run.traces(left) * run.traces(right))
            # The first columns of each factor that make up most of its trace.
            places = np.arange(len(left)) if few else np.flatnonzero(run.shares_before(right) < _SHARE)
            owners = run.owners[run.row_members[places]]
            self._parts.append(_Part(run, places, owners, np.sqrt(left[places]), np.sqrt(right[places])))

    def combine(self, weights: Array) -> Array:
        """Approximate the weighted sum of the kernels. Shapes: weights (n_kernels,); returns (n_samples, n_basis)."""
        own = [weights[part.owners] * part.left * part.right for part in self._parts]
        largest = max((float(np.abs(sizes).max(initial=0.0)) for sizes in own), default=0.0)
        total = np.zeros((self._n_samples, self._n_basis))
        if largest == 0.0:
            return total
        product = np.empty(total.shape, self._dtype)
        # Single precision has a small range: what is multiplied there is at most 1.
        for left, right, add in self._pieces([sizes / largest for sizes in own]):
            add(total, np.matmul(left.T, right, out=product), out=total)
        total *= largest
        return total

    def _pieces(self, own: list[Array]) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any], np.ufunc]]:
        """Yield scaled columns of both factors, and how their product is added, one piece in the place of another."""
        n_rows = min(_ROWS, sum(len(sizes) for sizes in own))
        left: npt.NDArray[Any] = np.empty((n_rows, self._n_samples), self._dtype)
        right = left if self._shared else np.empty((n_rows, self._n_basis), self._dtype)
        # A symmetric product costs half of a general one, but needs weights of one sign.
        for sign, add in ((1.0, np.add), (-1.0, np.subtract)):
            filled = 0
            for part, sizes in zip(self._parts, own, strict=True):
                chosen = np.flatnonzero(sign * sizes > 0.0)
                while len(chosen):
                    some, chosen = chosen[: n_rows - filled], chosen[n_rows - filled :]
                    rows, places = slice(filled, filled + len(some)), part.places[some]
                    roots = np.sqrt(np.abs(sizes[some]))
                    _write(part.run.left, places, roots / part.left[some], left[rows])
                    if right is not left:
                        _write(part.run.right, places, roots / part.right[some], right[rows])
                    filled += len(some)
                    if filled == n_rows:
                        yield left, right, add
                        filled = 0
            if filled:
                yield left[:filled], left[:filled] if right is left else right[:filled], add


def _write(factor: Array, places: npt.NDArray[np.intp], scales: Array, out: npt.NDArray[Any]) -> None:
    """Write columns of a factor, each times a number."""
    if (loops := compiled_products()) is not None:
        loops.write_scaled(factor, places, scales, out)
        return
    np.multiply(factor[places], scales[:, None], out=out, casting="same_kind")
