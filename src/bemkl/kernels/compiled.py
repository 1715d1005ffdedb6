"""Compiled loops where Numba is installed: pivoted Cholesky of the most frequent kernels, products with factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from math import comb
from typing import Any

import numpy as np

from bemkl.arrays import Array, positive_number
from bemkl.kernels.cholesky import Growth
from bemkl.kernels.functions import polynomial_parameters

_ENDLESS = 2**53
"""A rank that no number of points reaches."""


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
