"""What the uncertainty of the sample weights adds to the variances of new samples (derivation, section 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from bemkl._numerics.linalg import Cholesky, pivoted_factor
from bemkl.arrays import Array
from bemkl.inference.matrices import Squares
from bemkl.inference.moments import WeightMoments
from bemkl.inference.pair import SampleWeights, precision_factor, scale_ratio
from bemkl.inference.protocols import Stack

_BLOCK_BYTES = 16 * 2**20
"""Rows of the kernels that are worked on together: much larger arrays cost more to get than to fill."""

_SHORTCUTS_FROM = 256
"""Basis points from which shortcuts pay."""
_LARGE = 1e6
"""Squared kernels beside the precisions of the sample weights up to which shortcuts keep their digits."""
_BYTES = 12
"""Most memory for each pair of basis points: a factor in double precision, and in single precision."""
_THIN = 8
"""Covariances have a thin form if its columns are at most this part of the basis points."""
_PROBE = 4
"""One of so many basis points shows first whether there may be a thin form."""
_DIGITS = 1e-8
"""Share of a variance that the shortcuts may change."""
_CHECKED = 16
"""Quadratic forms that are computed in both precisions, to see how far they are apart."""

Forms = Callable[[Array], Array]
"""Maps rows, shape (..., n_basis), to their quadratic forms with a covariance of sample weights, shape (...)."""


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Rows of all kernels in directions between the kernels, which all outputs share."""

    mean: Array  # (n_rows, n_basis): the kernels, combined with their expected weights
    rest: Array  # (n_parts, n_rows, n_basis): directions of the covariance of the weights
    shares: Array  # (n_parts,): with these shares, squares along the directions sum to quadratic forms of it

    @classmethod
    def of(cls, block: Array, weights: Array, squares: Squares) -> Directions:
        """Combine the kernels. Shapes: block (n_kernels, n_rows, n_basis), weights (n_kernels,)."""
        rest, shares = squares(block.reshape(len(block), -1))
        return cls(np.tensordot(weights, block, 1), rest.reshape(-1, *block.shape[1:]), shares)


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """All directions between the kernels are computed in the same way."""

    forms: Forms  # quadratic forms

    def trace(self, directions: Directions, floor: Array) -> Array:
        """Sum the quadratic forms of all directions. Shapes: floor, returns (n_rows,)."""
        total: Array = self.forms(directions.mean) + directions.shares @ self.forms(directions.rest)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Leading:
    """The expected weights alone are computed in double precision: what else there is has far less to add."""

    forms: Forms  # quadratic forms
    rough: Forms  # the same in single precision
    most: Array  # (n_basis,): prior variances, from which the forms have an upper bound

    @classmethod
    def of(cls, factor: Cholesky, diagonal: Array) -> Leading:
        """Take the factor of a precision, and its prior part. Shapes: diagonal (n_basis,)."""
        return cls(_forms(factor.whitener()), _forms(factor.single_whitener(diagonal)), 1.0 / diagonal)

    def trace(self, directions: Directions, floor: Array) -> Array:
        r"""
        Sum the quadratic forms of all directions, to 1e-8 of variances that are known to be larger than a floor.

        .. math:: \operatorname{tr}(\widetilde{\boldsymbol e\boldsymbol e^\top}\,\mathbf{K}^i\Sigma_a\mathbf{K}^{i\top})
                  = \tilde{\boldsymbol e}^\top\mathbf{K}^i\Sigma_a\mathbf{K}^{i\top}\tilde{\boldsymbol e}
                  + \sum_k s_k\,\boldsymbol h_k^\top\mathbf{K}^i\Sigma_a\mathbf{K}^{i\top}\boldsymbol h_k

        A direction is left out for those rows whose bound, from the prior covariance of the sample weights, is
        negligible. How far single precision may be relied on is seen on the largest forms; rows that need more digits
        are computed again.

        Shapes: floor, returns (n_rows,).
        """
        parts, shares = directions.rest, directions.shares
        sizes, allowed = np.abs(shares), 0.1 * _DIGITS * floor
        needed = sizes[:, None] * (np.square(parts) @ self.most) > allowed / len(parts)
        values = np.zeros(needed.shape)
        rows = parts[needed]
        if len(rows):
            values[needed] = found = self.rough(rows)
            largest = np.argsort(-found)[:_CHECKED]
            exact = self.forms(rows[largest])
            error = np.max(np.abs(found[largest] - exact) / exact)
            again = ~(error * (sizes @ values) <= allowed)
            if again.any():
                values[:, again] = self.forms(parts[:, again])
        total: Array = self.forms(directions.mean) + shares @ values
        return total


Way = Alike | Leading
"""How the quadratic forms of one output are computed."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleSpread:
    """What new samples need of the covariances of the sample weights, some of it kept from one block to the next."""

    sample: SampleWeights
    gram: Array  # (n_basis, n_basis): sum of the squared kernels
    root: Array | None  # (n_rows, n_basis): root of it, where covariances need it
    weights: WeightMoments
    max_bytes: int  # memory for what is kept
    kept: dict[int, Way] = field(default_factory=dict)  # an output: how its quadratic forms are computed

    def trace(self, stack: Stack, floor: Array) -> Array:
        """
        Return what is added to the variances of the predictor, to digits of the sum of both.

        Shapes: floor, which is what the variances have already, and returns (n_outputs, n_samples).
        """
        squares: Squares | None = None
        trace = np.empty((len(self.sample.mean), stack.shape[1]))
        for rows, block, ways in self._passes(stack):
            squares = squares or self.weights.covariance.squares("kernel weights")
            directions = Directions.of(block, self.weights.mean, squares)
            for o, way in ways:
                trace[o, rows] = way.trace(directions, floor[o, rows])
        return trace

    def diagonal(self, stack: Stack) -> Array:
        r"""Diagonals of :math:`\mathbf{K}^i\Sigma_a\mathbf{K}^{i\top}`, shape (n_outputs, n_kernels, n_samples)."""
        diagonal = np.empty((len(self.sample.mean), *stack.shape[:2]))
        for rows, block, ways in self._passes(stack):
            for o, way in ways:
                diagonal[o, :, rows] = way.forms(block)
        return diagonal

    def _passes(self, stack: Stack) -> Iterator[tuple[slice, Array, list[tuple[int, Way]]]]:
        """Yield rows of the kernels with what computes their forms: one pass a group of outputs, in bounded memory."""
        n_kernels, n_samples, n_basis = stack.shape
        size = _BYTES * n_basis * n_basis
        n_kept = min(self.max_bytes // size, len(self.sample.mean))
        for outputs in _slices(n_kept, len(self.sample.mean), size):
            ways = [(o, self.kept.get(o) or self._way(o)) for o in range(outputs.start, outputs.stop)]
            self.kept.update(ways if outputs.stop <= n_kept else [])
            for rows in _slices(0, n_samples, 8 * n_kernels * n_basis):
                yield rows, stack.rows(rows), ways

    def _way(self, output: int) -> Way:
        """Choose how the quadratic forms of one output are computed: by shortcuts where they keep the digits."""
        diagonal, scale = self.sample.diagonal[output], float(self.sample.scale[output])
        few = len(diagonal) < _SHORTCUTS_FROM
        if self.root is not None or few or scale_ratio(self.gram, diagonal, scale, 1) > _LARGE:
            return Alike(_forms(self.sample.precision_factor(self.gram, output, self.root).whitener()))
        thin = thin_forms(self.gram, diagonal, scale)
        return Leading.of(precision_factor(self.gram, diagonal, scale), diagonal) if thin is None else Alike(thin)


def thin_forms(gram: Array, diagonal: Array, scale: float) -> Forms | None:
    r"""
    Return the quadratic forms of a covariance that is a diagonal plus a thin product, where kernels have so low a rank.

    With :math:`\upsilon\Lambda^{-1/2}\mathbf{C}\Lambda^{-1/2} = FF^\top + R` and
    :math:`GG^\top = F(\mathbf{I} + F^\top F)^{-1}F^\top`

    .. math:: \Sigma_a \approx \Lambda^{-1/2}(\mathbf{I} - GG^\top)\Lambda^{-1/2}

    makes no form smaller than it is, and none larger than :math:`1 + \operatorname{tr} R` times itself.

    Shapes: gram (n_basis, n_basis), diagonal (n_basis,).
    """
    deviation, n_basis = 1.0 / np.sqrt(diagonal), len(gram)
    for step in (_PROBE, 1):
        some = deviation[::step]
        F = pivoted_factor(scale * some[:, None] * gram[::step, ::step] * some, _DIGITS / n_basis)
        if _THIN * F.shape[1] > n_basis:
            return None
    G = Cholesky.of(F.T @ F + np.eye(F.shape[1]), "sample weights", overwrite=True).whitener()(F)

    def forms(rows: Array) -> Array:
        scaled = (rows * deviation).reshape(-1, n_basis)  # one large product, not one a kernel
        seen = scaled @ G
        values: Array = np.vecdot(scaled, scaled) - np.vecdot(seen, seen)
        return values.reshape(rows.shape[:-1])

    return forms


def _forms(whiten: Callable[[Array], Array]) -> Forms:
    """Return the quadratic forms of a covariance, from what multiplies rows with a root of it."""

    def forms(rows: Array) -> Array:
        white = whiten(rows)
        values: Array = np.vecdot(white, white)
        return values

    return forms


def _slices(first: int, count: int, size: int) -> Iterator[slice]:
    """Cut a range into what comes first and slices whose items, of some bytes each, together fit into a block."""
    if first:
        yield slice(0, first)
    step = max(1, _BLOCK_BYTES // size)
    yield from (slice(start, min(start + step, count)) for start in range(first, count, step))
