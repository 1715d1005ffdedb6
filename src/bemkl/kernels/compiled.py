"""Compiled loops where Numba is installed: pivoted Cholesky of the most frequent kernels, products with factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from bemkl.arrays import Array, finite_number, whole_number
from bemkl.kernels.cholesky import Extend


@cache
def installed() -> bool:
    """
    Say whether Numba is there.

    Returns
    -------
    bool
        Whether there are compiled loops.
    """
    return find_spec("numba") is not None


def compiled_steps(name: str, points: Array, parameters: Mapping[str, Any]) -> Extend | None:
    """
    Return the steps of pivoted Cholesky for a kernel on feature vectors, compiled.

    Parameters
    ----------
    name : str
        Name of the kernel.
    points : ndarray of shape (n_points, n_features)
        The points.
    parameters : mapping of str to Any
        Parameters of the kernel.

    Returns
    -------
    callable or None
        The steps; None for kernels without a compiled loop, and without Numba.
    """
    if name not in _NUMBERS or not installed():
        return None
    from bemkl.kernels import loops  # compiles, or reads what was compiled, when it is first needed

    kind, first, second = _NUMBERS[name](**parameters)
    return partial(loops.extend, np.ascontiguousarray(points.T, dtype=np.float64), kind, first, second)


def compiled_products() -> Any:
    """
    Return the module whose `project` and `backproject` multiply thin factors of many kernels.

    Returns
    -------
    module or None
        The module; None without Numba.
    """
    if not installed():
        return None
    from bemkl.kernels import loops  # compiles, or reads what was compiled, when it is first needed

    return loops


def _gaussian(width: float) -> tuple[int, float, int]:
    return 0, -0.5 / finite_number("width", width, least=0.0) ** 2, 0


def _laplacian(width: float) -> tuple[int, float, int]:
    return 1, -1.0 / finite_number("width", width, least=0.0), 0


def _polynomial(degree: int, offset: float = 1.0) -> tuple[int, float, int]:
    return 2, finite_number("offset", offset, least=0.0, allow_least=True), whole_number("degree", degree, least=1)


def _linear() -> tuple[int, float, int]:
    return _polynomial(1, 0.0)


_NUMBERS: dict[str, Callable[..., tuple[int, float, int]]] = {
    "gaussian": _gaussian,
    "laplacian": _laplacian,
    "polynomial": _polynomial,
    "linear": _linear,
}
