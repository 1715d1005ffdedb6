"""One symmetric matrix an output; outputs may share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.inference.matrices.low_rank import LowRank, is_dense
from bemkl.inference.matrices.symmetric import Symmetric


@dataclass(frozen=True, slots=True, eq=False)
class PerOutput:
    """Symmetric matrices of the outputs of a block."""

    distinct: Sequence[Symmetric]  # the matrices that differ, at least one
    which: npt.NDArray[np.intp]  # (n_outputs,): which of them each output has

    @classmethod
    def identity(cls, n_outputs: int, size: int) -> PerOutput:
        """Return identities."""
        return cls([LowRank.of_diagonal(np.ones(size))], np.zeros(n_outputs, dtype=np.intp))

    def __getitem__(self, output: int) -> Symmetric:
        """Return the matrix of one output."""
        return self.distinct[int(self.which[output])]

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self.which)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all numbers, shape (n_outputs, size, size)."""
        return np.stack([np.asarray(self[o], dtype=dtype) for o in range(len(self))])

    @property
    def dense(self) -> list[bool]:
        """Whether all numbers are there, an output."""
        return [is_dense(self.distinct[k]) for k in self.which]

    def some(self, outputs: slice) -> PerOutput:
        """Return the matrices of some outputs."""
        return replace(self, which=self.which[outputs])

    def __matmul__(self, right: Array) -> Array:
        """Multiply with one vector for all, shape (size,), or vectors of each output, (n_outputs, size, n_vectors)."""
        if right.ndim == 1:
            return np.stack([matrix @ right for matrix in self.distinct])[self.which]
        if len(self.distinct) == 1:
            return self.distinct[0] @ right
        return np.stack([self[o] @ vectors for o, vectors in enumerate(right)])

    def times_rows(self, rows: Array) -> Array:
        """Multiply with a vector of each output. Shapes: rows (n_outputs, size); returns (n_outputs, size)."""
        return (self @ rows[:, :, None])[:, :, 0]

    def each(self, function: Callable[[Symmetric], float]) -> Array:
        """Compute a number from each matrix. Shapes: returns (n_outputs,)."""
        return np.array([function(matrix) for matrix in self.distinct])[self.which]

    def times(self, factor: float) -> PerOutput:
        """Multiply all matrices by a number."""
        return replace(self, distinct=[matrix.times(factor) for matrix in self.distinct])

    def weighted_sum(self, weights: Array) -> Symmetric:
        """Sum the matrices of all outputs. Shapes: weights (n_outputs,)."""
        shares = np.bincount(self.which, weights, minlength=len(self.distinct))
        total = self.distinct[0].times(float(shares[0]))
        for matrix, share in zip(self.distinct[1:], shares[1:], strict=True):
            total = total + matrix.times(float(share))
        return total
