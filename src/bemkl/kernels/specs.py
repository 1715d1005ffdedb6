"""What a bank is made of: kernels by name, families of them, and the groups of columns they become on samples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array
from bemkl.kernels import counts, functions, sequences
from bemkl.kernels.views import Groups, Samples

_SHORT = {"width": "w", "degree": "d", "length": "l", "period": "p"}


Matrix = Callable[..., Array]


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """A kernel function with what a bank wants to know of it."""

    name: str  # how it is called in the names of kernels
    matrix: Matrix  # maps points X and Z, and parameters by name, to the kernel matrix
    # maps points X, and parameters by name, to the values k(x, x); without it they are computed one by one
    diagonal: Matrix | None = None
    metric: str | None = None  # for kernels of a distance: the distance, by SciPy's name
    # for kernels of a distance: maps distances, and parameters by name, to the kernel matrix; writes it to `out`
    profile: Matrix | None = None
    # whether it is positive semidefinite, and a column alone costs no more than its share of the matrix: then the
    # kernel can be factored without the matrix
    by_column: bool = False

    def diagonal_of(self, X: Any, **parameters: Any) -> Array:
        """Values k(x, x) of some points. Shapes: returns (n_samples,)."""
        if self.diagonal is not None:
            return self.diagonal(X, **parameters)
        return np.array([float(self.matrix(X[i : i + 1], X[i : i + 1], **parameters)[0, 0]) for i in range(len(X))])


def _ones(X: Any, **parameters: Any) -> Array:
    return np.ones(len(X))


def _nonzero(X: Any) -> Array:
    return np.where(np.asarray(X).any(axis=1), 1.0, 0.0)


def _squares(X: Any, **parameters: Any) -> Array:
    squares: Array = np.square(X).sum(axis=1)
    return squares


def _polynomial(X: Any, degree: int, offset: float = 1.0) -> Array:
    degree, offset = functions.polynomial_parameters(degree, offset)
    diagonal: Array = (_squares(X) + offset) ** degree
    return diagonal


NAMED = {
    kernel.name: kernel
    for kernel in (
        KernelFunction("gaussian", functions.gaussian, _ones, "sqeuclidean", functions.gaussian_profile, True),
        KernelFunction("rbf", functions.rbf, _ones, by_column=True),
        KernelFunction("laplacian", functions.laplacian, _ones, "cityblock", functions.laplacian_profile, True),
        KernelFunction("matern", functions.matern, _ones, "euclidean", functions.matern_profile, True),
        KernelFunction("periodic", functions.periodic, _ones, by_column=True),
        KernelFunction("linear", functions.linear, _squares, by_column=True),
        KernelFunction("cosine", functions.cosine, _nonzero, by_column=True),
        KernelFunction("polynomial", functions.polynomial, _polynomial, by_column=True),
        KernelFunction("chi2", counts.chi2, _ones, by_column=True),
        KernelFunction("additive_chi2", counts.additive_chi2, counts.sums_of_counts, by_column=True),
        KernelFunction("intersection", counts.intersection, counts.sums_of_counts, by_column=True),
        KernelFunction("tanimoto", counts.tanimoto, _ones, by_column=True),
        KernelFunction("hamming", counts.hamming, _ones, by_column=True),
        KernelFunction("spectrum", sequences.spectrum, sequences.spectrum_squares),
    )
}
"""The package's kernels."""
SEQUENCES = {"spectrum"}
"""Those that compare sequences."""
NUMERIC = {*NAMED, *PAIRWISE_KERNEL_FUNCTIONS} - SEQUENCES
"""Kernels with names that compare vectors of numbers."""


def find_kernel(kernel: str | Matrix) -> KernelFunction:
    """Look a kernel up."""
    if isinstance(kernel, type):
        raise ValueError(
            f"kernel: expected an object, got the class {kernel.__name__} itself. Pass {kernel.__name__}()."
        )
    if callable(kernel):
        named = getattr(kernel, "func", kernel)
        return KernelFunction(getattr(named, "__name__", None) or repr(kernel), kernel)
    if not isinstance(kernel, str):
        raise ValueError(f"kernel: expected a name or a function of X and Z, got {kernel!r}.")
    if kernel in NAMED:
        return NAMED[kernel]
    if kernel in PAIRWISE_KERNEL_FUNCTIONS:
        return KernelFunction(kernel, PAIRWISE_KERNEL_FUNCTIONS[kernel])
    known = ", ".join(sorted({*NAMED, *PAIRWISE_KERNEL_FUNCTIONS}))
    raise ValueError(f"kernel: expected a function of X and Z, or one of {known}; got {kernel!r}.")


def kernel_functions() -> set[Matrix]:
    """Return the functions that kernels with names are made of, which saved models may refer to."""
    parts = [(kernel.matrix, kernel.diagonal, kernel.profile) for kernel in NAMED.values()]
    own = {function for functions in parts for function in functions if function is not None}
    return own | set(PAIRWISE_KERNEL_FUNCTIONS.values())


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """
    A family of kernels: one function, some groups of columns, a grid of parameters.

    Parameters
    ----------
    kernel : str or callable
        Name of a kernel, or a function of X and Z.
    on : str, int, sequence of these, slice, mask, or dict of str to these
        "all" columns together, "each" column alone, the columns of one group by name, position, slice or mask, or a
        dict of such groups by the names that they should have. In a dict of views, a view is a column.
    parameters : mapping of str to value or sequence of values
        Parameters of the kernel; sequences span a grid, with a kernel for each combination.
    """

    kernel: str | Matrix
    on: Groups = "all"
    parameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be a family of kernels."""
        function = find_kernel(self.kernel)
        object.__setattr__(self, "on", _without_arrays(self.on))
        if not isinstance(self.parameters, Mapping | None):
            raise ValueError(f"parameters: expected a dict of values by name, got {self.parameters!r}.")
        for parameters in self.grid()[:1]:
            _refuse_parameters(function, parameters)

    def grid(self) -> list[dict[str, Any]]:
        """
        Return the combinations of parameters.

        Returns
        -------
        list of dict
            Parameters of each kernel.
        """
        names = list(self.parameters or {})
        values = [v if isinstance(v, list | tuple | np.ndarray) else [v] for v in (self.parameters or {}).values()]
        empty = [name for name, options in zip(names, values, strict=True) if not len(options)]
        if empty:
            raise ValueError(f"parameters: expected at least one value for {empty[0]!r}, got none.")
        return [dict(zip(names, combination, strict=True)) for combination in product(*values)]


def _without_arrays(on: Any) -> Any:
    """Return groups of columns as lists where they came as arrays, which compare and save well."""
    if isinstance(on, Mapping):
        return {name: _without_arrays(columns) for name, columns in on.items()}
    return on.tolist() if isinstance(on, np.ndarray) else on


def _refuse_parameters(function: KernelFunction, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that the kernel does not have, or lacks."""
    try:
        signature = inspect.signature(function.matrix)
    except (TypeError, ValueError):
        return  # some callables do not say what they take
    try:
        signature.bind(None, None, **parameters)
    except TypeError as error:
        known = ", ".join(list(signature.parameters)[2:]) or "none"
        raise ValueError(
            f"parameters: {function.name} cannot take {dict(parameters)!r} ({error}). Its parameters are: {known}."
        ) from None


@dataclass(frozen=True)
class Member:
    """One kernel of a group."""

    function: KernelFunction  # the kernel function
    parameters: dict[str, Any]  # its parameters

    @lazy_property
    def title(self) -> str:
        """Function and parameters, readable; the same for all groups."""
        shown = ", ".join(f"{_SHORT.get(key, key)}={_shown(value)}" for key, value in self.parameters.items())
        return f"{self.function.name}({shown})" if shown else self.function.name

    def name_on(self, label: str) -> str:
        """Name this kernel readably."""
        return f"{self.title} on {label}"


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def gather(specs: Sequence[KernelSpec], samples: Samples) -> list[tuple[str, list[int], list[Member]]]:
    """Expand specifications on samples, so that kernels on the same columns are together."""
    groups: dict[tuple[str, tuple[int, ...]], list[Member]] = {}
    if isinstance(specs, KernelSpec) or not isinstance(specs, Sequence):
        raise ValueError(f"specs: expected a list of KernelSpec objects, got {specs!r}. Write [KernelSpec(...)].")
    for spec in specs:
        if not isinstance(spec, KernelSpec):
            raise ValueError(f"specs: expected KernelSpec objects, got {spec!r}.")
        function = find_kernel(spec.kernel)
        members = [Member(function, parameters) for parameters in spec.grid()]
        for label, positions in samples.find(spec.on):
            groups.setdefault((label, tuple(positions)), []).extend(members)
    if not groups:
        raise ValueError("specs: expected at least one KernelSpec, got none.")
    return [(label, list(positions), members) for (label, positions), members in groups.items()]


def distinct(names: Sequence[str]) -> list[str]:
    """Number the later ones of equal names."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} [{seen[name]}]")
    return result
