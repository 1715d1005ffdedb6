"""Kernels that are powers of one matrix, entry by entry: Gaussian ones of many widths, polynomials of many degrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import daxpy

from bemkl.arrays import Array, refuse_nonfinite
from bemkl.caching import lazy_property
from bemkl.kernels.compiled import compiled_products

_ROUNDING = 2.0**-52
"""Relative error of a matrix and of taking a root of a power, which the power multiplies by its exponent."""

_WHOLE = 1e-14
"""Relative distance of exponents from whole numbers that is rounding."""

_MOST_EXTRA = 3
"""Products with the matrix itself, beside squares, that still cost less than reading another matrix."""

POWERS_STAY = (None, "spherical")
"""Scalings that make the power of a kernel the same power of the scaled kernel."""

_FEW_OUTPUTS = 8
_SMALL_PART = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Power:
    """A symmetric kernel matrix as a power of another one, :math:`k_{ij} = b_{ij}^p`."""

    base: Array  # (n_samples, n_samples): the matrix B, symmetric; the same object for all its powers
    exponent: int  # the exponent p, at least 1

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and basis points, which are the same."""
        return len(self.base), len(self.base)

    def rows(self, chosen: slice) -> Array:
        """Form some rows of the matrix. Shapes: returns (n_chosen, n_samples)."""
        square, result = self.base[chosen], np.ones(self.base[chosen].shape)
        for bit in reversed(f"{self.exponent:b}"):
            result = result * square if bit == "1" else result
            square = square * square
        return result


@dataclass(frozen=True, eq=False)
class Family:
    """Powers of one matrix, each found from the one before it: what has to be read is one matrix, not one each."""

    owners: npt.NDArray[np.intp]  # (n_members,): position of each kernel in its stack
    exponents: npt.NDArray[np.intp]  # (n_members,): their exponents, in ascending order
    base: Array  # (n_samples, n_samples): the matrix

    @lazy_property
    def steps(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """How often what was there is squared, and then multiplied with the matrix, to get the next power."""
        pairs = pairwise([1, *self.exponents.tolist()])
        squarings, extras = zip(*(_step(before, exponent) for before, exponent in pairs), strict=True)
        return np.array(squarings, dtype=np.intp), np.array(extras, dtype=np.intp)

    @property
    def sizes(self) -> Array:
        """How large each kernel is: no less than its trace; shape (n_members,)."""
        largest = np.float64(max(self.base.max(), -self.base.min()))
        sizes: Array = largest ** self.exponents.astype(np.float64) * len(self.base)
        return sizes

    def matrices(self) -> Iterator[tuple[int, Array]]:
        """Form one kernel after the other. Shapes: returns matrix (n_samples, n_samples)."""
        matrix = self.base.copy()
        for owner, squarings, extra in zip(self.owners, *self.steps, strict=True):
            for factor in (*[matrix] * squarings, *[self.base] * extra):
                np.multiply(matrix, factor, out=matrix)
            yield int(owner), matrix

    def project(self, coefficients: Array, out: Array) -> None:
        r"""
        Multiply every kernel with coefficients of the basis points, :math:`\mathbf{K}_m \boldsymbol{a}`.

        Shapes: coefficients (n_outputs, n_samples), out (n_outputs, n_kernels, n_samples).
        """
        loops = compiled_products() if len(coefficients) <= _FEW_OUTPUTS else None
        if loops is not None:
            loops.project_powers(self.owners, *self.steps, self.base, np.ascontiguousarray(coefficients), out)
            return
        for owner, matrix in self.matrices():
            out[:, owner] = coefficients @ matrix

    def backproject(self, intermediate: Array, out: Array) -> None:
        r"""
        Add the kernels times intermediate outputs, :math:`\sum_m \mathbf{K}_m^\top \boldsymbol{g}^m`.

        Shapes: intermediate (n_outputs, n_kernels, n_samples), out (n_outputs, n_samples).
        """
        loops = compiled_products() if len(intermediate) <= _FEW_OUTPUTS else None
        if loops is not None:
            loops.backproject_powers(self.owners, *self.steps, self.base, np.ascontiguousarray(intermediate), out)
            return
        for owner, matrix in self.matrices():
            out += intermediate[:, owner] @ matrix

    def add_to(self, total: Array, weights: Array) -> None:
        """
        Add the kernels, times their weights, to a sum.

        Shapes: total (n_samples, n_samples), weights (n_kernels,).
        """
        own = weights[self.owners]
        last = int(np.flatnonzero(own).max(initial=-1)) + 1
        if (loops := compiled_products()) is not None:
            loops.add_powers(*(steps[:last] for steps in self.steps), self.base, own[:last], total)
            return
        for (_, matrix), weight in zip(self.matrices(), own[:last], strict=False):
            daxpy(matrix.ravel(), total.ravel(), a=weight)


def in_families(powers: Iterable[tuple[int, Power]]) -> list[Family]:
    """Join powers of the same matrix."""
    found: dict[int, list[tuple[int, int, Array]]] = {}
    for position, power in powers:
        found.setdefault(id(power.base), []).append((power.exponent, position, power.base))
    families = []
    for members in found.values():
        members.sort(key=lambda member: member[:2])
        exponents, owners, bases = zip(*members, strict=True)
        refuse_nonfinite("kernels", bases[0])
        families.append(Family(np.array(owners, dtype=np.intp), np.array(exponents, dtype=np.intp), bases[0]))
    return families


def common_base(
    name: str, kernels: Sequence[Mapping[str, Any]], tolerance: float
) -> tuple[dict[str, Any], list[int | None]]:
    """Find a kernel that others are powers of."""
    if name not in _BASES or not kernels:
        return {}, [None] * len(kernels)
    parameters, exponents = _BASES[name](kernels)
    most, before = _SMALL_PART * tolerance / _ROUNDING, 1
    found: list[int | None] = [None] * len(kernels)
    for place in np.argsort(exponents):
        if not exponents[place] <= most:
            break
        whole = round(exponents[place])
        if abs(exponents[place] - whole) <= _WHOLE * whole and _step(before, whole)[1] <= _MOST_EXTRA:
            found[place] = before = whole
    return parameters, found


def _step(before: int, exponent: int) -> tuple[int, int]:
    """Return how often a power is squared, and then multiplied with the matrix, to get one that is no smaller."""
    squarings = (exponent // before).bit_length() - 1
    return squarings, exponent - before * 2**squarings


def _gaussian(kernels: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[float]]:
    widest = max(kernel["width"] for kernel in kernels)
    return {"width": widest}, [(widest / kernel["width"]) ** 2 for kernel in kernels]


def _laplacian(kernels: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[float]]:
    widest = max(kernel["width"] for kernel in kernels)
    return {"width": widest}, [widest / kernel["width"] for kernel in kernels]


def _polynomial(kernels: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[float]]:
    offsets = [kernel.get("offset", 1.0) for kernel in kernels]
    same = [float(kernel["degree"]) if c == offsets[0] else np.inf for kernel, c in zip(kernels, offsets, strict=True)]
    return {"degree": 1, "offset": offsets[0]}, same


_BASES: dict[str, Callable[[Sequence[Mapping[str, Any]]], tuple[dict[str, Any], list[float]]]] = {
    "gaussian": _gaussian,
    "laplacian": _laplacian,
    "polynomial": _polynomial,
}
