"""What a bank is made of: families of kernels, and the groups of columns they become when they meet samples."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from bemkl._numerics.caching import lazy_property
from bemkl.kernels.registry import KernelFunction, Matrix, find_kernel
from bemkl.kernels.views import Groups, Samples

_SHORT = {"width": "w", "degree": "d", "length": "l", "period": "p"}


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
