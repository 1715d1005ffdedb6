"""Compiled loops where Numba is installed: pivoted Cholesky of the most frequent kernels, products with factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from math import comb
from typing import Any

import numpy as np

from bemkl.arrays import Array, positive_number
from bemkl.kernels.cholesky import Steps
from bemkl.kernels.functions import polynomial_parameters

_ENDLESS = 2**53
"""A rank that no number of points reaches."""


@cache
def installed() -> bool:
    """Say whether Numba is there."""
    return find_spec("numba") is not None


def has_loop(name: str) -> bool:
    """Say whether a kernel on feature vectors has a compiled loop."""
    return name in _NUMBERS and installed()


def compiled_steps(kernels: Sequence[tuple[str, Mapping[str, Any]]], points: Array) -> Steps:
    """
    Return the steps of pivoted Cholesky for kernels on feature vectors, compiled.

    Shapes: points (n_points, n_features).
    """
    from bemkl.kernels import loops  # compiles, or reads what was compiled, when it is first needed

    numbers = [_NUMBERS[name](**parameters) for name, parameters in kernels]
    kinds, firsts, seconds = zip(*numbers, strict=True)
    features = np.ascontiguousarray(points.T, dtype=np.float64)
    # A polynomial of degree d has as many dimensions as there are monomials; the other kernels have no end.
    own_ranks = [
        float(min(comb(len(features) + second, second), _ENDLESS)) if kind == 2 else np.inf
        for kind, _, second in numbers
    ]
    return partial(loops.steps, features, np.array(kinds), np.array(firsts), np.array(seconds), np.array(own_ranks))


def compiled_products() -> Any:
    """Return the module whose `project` and `backproject` multiply thin factors of many kernels."""
    return _product_loops() if installed() else None


@cache
def _product_loops() -> Any:
    from bemkl.kernels import product_loops  # compiles, or reads what was compiled, when it is first needed

    return product_loops


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
