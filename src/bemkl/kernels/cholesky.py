"""
Pivoted Cholesky: positive semidefinite kernels as products of thin factors, from a few of their columns.

Where Numba is installed, the most frequent kernels have compiled loops, and so have products with factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bemkl.arrays import LARGEST, SMALLEST, Array, positive_number
from bemkl.kernels.functions import polynomial_parameters

_ENDLESS = 2**53
"""A rank that no number of points reaches."""

Column = Callable[[int], Array]
"""Maps the position of a point to its (n_points,) similarities to all points."""

Extend = Callable[[Array, Array, Array, int, int, float], int]
"""
Adds rows to a factor of a kernel, scaled to unit diagonal, unless its largest residual is within a tolerance before.

In: the (most, n_points) factor, the (n_points,) residuals and the (n_points,) inverse lengths of the points, of which
the first two change in place, the rank that the factor has, the one that it should have, and the tolerance. Out: the
rank that it has then.
"""


class Growth(NamedTuple):
    """How the factor of one kernel grows."""

    extend: Extend
    # the rank for any number of points: infinite for most kernels; None where it is not known
    rank: float | None = None


def by_columns(column: Column, rank: float | None = None) -> Growth:
    """Return how the factor of a kernel grows that is known by its columns."""
    return Growth(partial(_extend, column), rank)


def _extend(
    column: Column, factor: Array, residual: Array, inverse: Array, rank: int, stop: int, tolerance: float
) -> int:
    """Add rows to a factor, as `Extend` describes."""
    while rank < stop:
        pivot = int(residual.argmax())
        largest = float(residual[pivot])
        if largest <= tolerance:
            break
        new = factor[rank]
        new[:] = column(pivot) * (inverse * inverse[pivot])
        if rank:
            new -= factor[:rank, pivot] @ factor[:rank]
        new *= largest**-0.5
        residual -= new * new
        residual[pivot] = 0.0
        rank += 1
    return rank


def pivoted_cholesky(
    kernels: Sequence[Growth], diagonals: Array, tolerance: float, factor: Array
) -> Iterator[Array | None]:
    r"""
    Factor positive semidefinite kernel matrices by columns chosen where the remainder is largest.

    .. math:: |k_{ij} - \boldsymbol z_i^\top \boldsymbol z_j| \le \varepsilon \sqrt{k_{ii}\,k_{jj}}

    holds for every entry, because the remainder is positive semidefinite too. The matrices are never formed: beside
    their diagonals, only one column for each row of a factor is asked for. Every factor is written to the first rows of
    the same array; a kernel that needs more has none.

    Shapes: diagonals (n_kernels, n_points), factor (most, n_points); yields (rank, n_points).
    """
    finite = np.logical_and.reduce(np.abs(diagonals) <= LARGEST, axis=1)
    # The reciprocals of two lengths are multiplied.
    lengths = np.sqrt(np.where(finite[:, None] & (diagonals >= SMALLEST**2), diagonals, 0.0))
    inverses = np.divide(1.0, lengths, out=np.zeros(lengths.shape), where=lengths > 0.0)
    residuals = (lengths > 0.0).astype(np.float64)
    units = (lengths == 1.0).all(axis=1)
    for k, kernel in enumerate(kernels):
        rank = _grown(kernel, factor, residuals[k], inverses[k], tolerance) if finite[k] else None
        if rank is not None and not units[k]:
            factor[:rank] *= lengths[k]
        yield None if rank is None else factor[:rank]


def _grown(kernel: Growth, factor: Array, residual: Array, inverse: Array, tolerance: float) -> int | None:
    r"""
    Let a factor grow to its rank; None where that is more than its rows, or will be.

    What is left of the trace after an eighth and a quarter of the rows tells: its :math:`-\log` grows about as a power
    of the number of rows, so that twice as many multiply it by the same number. What is foreseen are not four but six
    times as many, because kernels on few features fall faster at the end.
    """
    rank, most, logs = 0, len(factor), []
    for stop in (most // 8, most // 4) if most >= 8 else ():
        rank = kernel.extend(factor, residual, inverse, rank, stop, tolerance)
        if rank < stop:
            return rank
        logs.append(-np.log(max(residual.sum() / np.count_nonzero(inverse), tolerance)))
    if logs and (kernel.rank is None or kernel.rank > most):
        foreseen = np.inf if kernel.rank is None else logs[1] * (logs[1] / logs[0]) ** 2.5
        if logs[1] < np.log(2.0) or foreseen < -np.log(tolerance):
            return None
    rank = kernel.extend(factor, residual, inverse, rank, most, tolerance)
    return rank if residual.max() <= tolerance else None


def compressed(kernel: npt.NDArray[Any], tolerance: float) -> Array | None:
    """
    Factor a kernel matrix that is there already, if it is symmetric and positive semidefinite.

    Shapes: kernel (n_points, n_points); returns (rank, n_points).
    """
    diagonal = kernel.diagonal().astype(np.float64)
    growth = by_columns(lambda point: kernel[point])
    (factor,) = pivoted_cholesky([growth], diagonal[None], tolerance, np.empty((len(kernel) // 2, len(kernel))))
    if factor is None:
        return None
    length = np.sqrt(np.maximum(diagonal, 0.0))
    # Rounding of entries of size 1 adds to the tolerance; a matrix that is not semidefinite fails by far more.
    error = np.abs(factor.T @ factor - kernel) <= (tolerance + 1e-14) * np.multiply.outer(length, length)
    return factor if error.all() else None


@cache
def installed() -> bool:
    """Say whether Numba is there."""
    return find_spec("numba") is not None


def compiled_loops() -> Any:
    """Return the module of compiled loops, or None without Numba."""
    return _loops() if installed() else None


@cache
def _loops() -> Any:
    from bemkl.kernels import loops  # compiles, or reads what was compiled, when it is first needed

    return loops


def has_loop(name: str) -> bool:
    """Say whether a kernel on feature vectors has a compiled loop."""
    return name in _NUMBERS and installed()


def compiled_growth(name: str, parameters: Mapping[str, Any], features: Array) -> Growth:
    """
    Return how the factor of a kernel on feature vectors grows, compiled.

    Shapes: features (n_features, n_points), in C order.
    """
    kind, first, second = _NUMBERS[name](**parameters)
    # A polynomial of degree d has as many dimensions as there are monomials; the other kernels have no end.
    rank = float(min(comb(len(features) + second, second), _ENDLESS)) if kind == 2 else np.inf
    return Growth(partial(compiled_loops().extend, features, kind, first, second), rank)


def _gaussian(width: float) -> tuple[int, float, int]:
    return 0, -0.5 / positive_number("width", width) ** 2, 0


def _laplacian(width: float) -> tuple[int, float, int]:
    return 1, -1.0 / positive_number("width", width), 0


def _polynomial(degree: int, offset: float = 1.0) -> tuple[int, float, int]:
    degree, offset = polynomial_parameters(degree, offset)
    return 2, offset, degree


def _linear() -> tuple[int, float, int]:
    return _polynomial(1, 0.0)


_NUMBERS: dict[str, Callable[..., tuple[int, float, int]]] = {
    "gaussian": _gaussian,
    "laplacian": _laplacian,
    "polynomial": _polynomial,
    "linear": _linear,
}
