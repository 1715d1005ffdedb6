"""Kernel matrices, good and bad, and banks of kernel functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from bemkl.kernels.specs import NAMED, find_kernel
from fuzz.draws import Draw
from fuzz.values import Array

OTHERS = ("rbf", "sigmoid", "poly")
"""Some of scikit-learn's kernels."""


def _gaussian(Z: Array, width: float) -> Array:
    kernel: Array = np.exp(-((Z[:, None] - Z) ** 2).sum(axis=2) / (2.0 * width**2))
    return kernel


USUAL: dict[str, Callable[[Draw, Array], Array]] = {
    "gaussian": lambda draw, Z: _gaussian(Z, draw.one_of([0.1, 1.0, 10.0])),
    "linear": lambda draw, Z: Z @ Z.T,
    "identity": lambda draw, Z: np.eye(len(Z)),
    "ones": lambda draw, Z: np.ones((len(Z), len(Z))),
    "blocks": lambda draw, Z: np.equal.outer(np.arange(len(Z)) % 2, np.arange(len(Z)) % 2) * 1.0,
    "indefinite": lambda draw, Z: np.tanh(Z @ Z.T - 1.0),
    "negative": lambda draw, Z: -Z @ Z.T,
    "large": lambda draw, Z: 1e6 * Z @ Z.T,
    "small": lambda draw, Z: 1e-6 * Z @ Z.T,
    "large along one line": lambda draw, Z: 1e4 * np.outer(Z[:, 0], Z[:, 0]) + 1e-8 * np.eye(len(Z)),
    "diagonal of many sizes": lambda draw, Z: np.diag(10.0 ** draw.rng.uniform(-4.0, 4.0, size=len(Z))),
    "nearly symmetric": lambda draw, Z: Z @ Z.T + 1e-12 * draw.rng.normal(size=(len(Z), len(Z))),
    "empty rows": lambda draw, Z: (
        np.where(np.arange(len(Z)) % 2, 1.0, 0.0) * _gaussian(Z, 1.0) * (np.arange(len(Z))[:, None] % 2)
    ),
}
EXTREME: dict[str, Callable[[Draw, Array], Array]] = {
    "zeros": lambda draw, Z: np.zeros((len(Z), len(Z))),
    "huge": lambda draw, Z: Z @ Z.T * draw.one_of([1e30, 1e100, 1e150, 1e200, 1e300]),
    "tiny": lambda draw, Z: Z @ Z.T * draw.one_of([1e-30, 1e-100, 1e-150, 1e-200, 1e-300, 1e-320]),
    "rank one and huge": lambda draw, Z: 1e12 * np.outer(Z[:, 0], Z[:, 0]) + 1e-12 * np.eye(len(Z)),
    "diagonal of all sizes": lambda draw, Z: np.diag(10.0 ** draw.rng.uniform(-200.0, 200.0, size=len(Z))),
}
ODD: dict[str, Callable[[Draw, Array], Array]] = {
    "not symmetric": lambda draw, Z: Z @ Z.T + 0.1 * draw.rng.normal(size=(len(Z), len(Z))),
    "NaN": lambda draw, Z: np.where(np.eye(len(Z)) > 0.0, np.nan, Z @ Z.T),
    "infinite": lambda draw, Z: np.where(np.eye(len(Z)) > 0.0, np.inf, Z @ Z.T),
}


def kernel_matrix(draw: Draw, n_samples: int) -> Array:
    """Draw a kernel matrix between training samples."""
    kind = draw.pick("kernel", ["gaussian", "linear", *USUAL], list(EXTREME), odd=list(ODD))
    points = draw.rng.normal(size=(n_samples, draw.number(1, 3)))
    return (USUAL | EXTREME | ODD)[kind](draw, points)


PARAMETERS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "width": (
        ["0.1", "1.0", "3.0", "100.0", "[0.5, 2.0]"],
        ["1e-8", "1e8", "1e-200", "1e200"],
        ["0.0", "-1.0", "np.nan", "'wide'"],
    ),
    "length": (["1", "2", "3"], ["1e-8", "1e8", "50"], ["0", "None", "np.inf"]),
    "smoothness": (["1.5", "2.5"], [], ["0.5", "'smooth'"]),
    "period": (["0.5", "1.0", "3.0"], ["1e-200", "1e200"], ["0.0", "-1.0"]),
    "degree": (["1", "2", "3"], ["10", "60"], ["0", "1.5", "-1", "None"]),
    "offset": (["0.0", "1.0", "10.0"], ["1e-300", "1e150"], ["-1.0", "np.nan"]),
    "presence": (["True", "False"], [], []),
    "gamma": (["0.1", "1.0"], ["1e-8", "1e8"], []),
    "coef0": (["0.0", "1.0"], [], []),
}
"""Values of each parameter of a kernel function: usual, extreme and odd ones."""


def own_parameters(kernel: str) -> list[str]:
    """Return the names of a kernel's parameters; none of one that does not exist."""
    if kernel not in (*NAMED, *OTHERS):
        return []
    names = list(inspect.signature(find_kernel(kernel).matrix).parameters)
    return [name for name in names[2:] if kernel in NAMED or name in PARAMETERS]


def _parameters(draw: Draw, kernel: str) -> str:
    chosen = []
    for name in own_parameters(kernel):
        default = inspect.signature(find_kernel(kernel).matrix).parameters[name].default
        if default is inspect.Parameter.empty or draw.maybe(0.5):
            chosen.append(f"{name!r}: {draw.pick(f'{kernel} {name}', *PARAMETERS[name])}")
    return "{" + ", ".join(chosen) + "}"


_ON_COUNTS = ("chi2", "additive_chi2", "intersection")
_ON_BITS = ("tanimoto", "hamming")


def suits(kernel: str, shape: str) -> bool:
    """Tell whether a kernel is defined on numbers of a shape."""
    if kernel == "spectrum":
        return False
    return shape == "bits" if kernel in _ON_BITS else kernel not in _ON_COUNTS or shape == "counts"


def spec(draw: Draw, columns: list[str], shape: str) -> str:
    """Draw a family of kernels on some columns or views, as an expression."""
    fitting = [kernel for kernel in (*NAMED, *OTHERS) if suits(kernel, shape)]
    others = [kernel for kernel in NAMED if kernel not in fitting]
    kernel = draw.pick("kernel function", ["gaussian", "linear", "polynomial", *fitting], odd=[*others, "gausian"])
    one, some = draw.one_of(columns), draw.rng.permutation(len(columns))[: draw.number(1, len(columns))].tolist()
    usual = ["'all'", "'all'", "'each'", one, repr(sorted(some)), f"{{'group': {sorted(some)!r}}}"]
    on = draw.pick("on", usual, odd=["'nowhere'", "99", "[]", "None", "[0, 0]", "{'g': 'each'}", "1.5"])
    return f"KernelSpec({kernel!r}, {on}, {_parameters(draw, kernel)})"


def bank(draw: Draw, columns: list[str], shape: str) -> dict[str, object]:
    """Draw a bank: expressions of its families, and its options."""
    scalings = [None, None, "spherical", "centred", "trace", "variance"]
    return {
        "specs": [spec(draw, columns, shape) for _ in range(draw.number(1, 3))],
        "standardise": shape not in ("counts", "bits") and draw.maybe(0.5),
        "scaling": draw.pick("scaling", scalings, odd=["sphere", 1.0]),
    }
