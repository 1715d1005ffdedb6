r"""
Kernel weights from what is known of the kernels: where they look, which function they are, and which parameters.

.. math:: w_m \propto \exp\Big(\sum_g u_{g, k_g(m)}\Big), \qquad u_{g,k} \sim \mathcal{N}(0, s_g^2)

Kernels of one view, or of one width, have an effect in common. How much effects of a kind differ, their spread, is
learned; where it is small, the weights are alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array

TASK = "task"
"""The kind of effects that all kernels of a task have in common."""
_MOST_SINGLE = 60
"""Kernels up to which each has an effect of its own beside those that it shares."""


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """Which effects each kernel has."""

    design: Array  # (n_kernels, n_effects): ones where a kernel has an effect
    kind: npt.NDArray[np.intp]  # (n_effects,): which kind each effect is of
    names: tuple[str, ...]  # names of the kinds

    @classmethod
    def of(cls, kinds: Mapping[str, Sequence[Hashable]]) -> Effects:
        """
        Read off what kernels have in common: for each kind, a value a kernel.

        A kind in which all kernels are alike, or that divides them as another one does, says nothing.
        """
        columns: list[Array] = []
        kind: list[int] = []
        names: list[str] = []
        seen: set[tuple[int, ...]] = set()
        n_kernels = len(next(iter(kinds.values())))
        for name, values in kinds.items():
            levels = {value: level for level, value in enumerate(dict.fromkeys(values))}
            codes = tuple(levels[value] for value in values)
            if len(levels) < 2 or codes in seen:
                continue
            seen.add(codes)
            columns.append(np.eye(len(levels))[list(codes)])
            kind += [len(names)] * len(levels)
            names.append(name)
        design = np.hstack(columns) if columns else np.empty((n_kernels, 0))
        return cls(design, np.array(kind, dtype=np.intp), tuple(names))

    def of_kind(self, name: str) -> npt.NDArray[np.bool_]:
        """Tell which effects are of a kind. Shapes: returns (n_effects,)."""
        found: npt.NDArray[np.bool_] = np.array(self.names, dtype=object)[self.kind] == name
        return found


def kinds_of(columns: Sequence[str], functions: Sequence[str], single: Sequence[bool]) -> dict[str, Sequence[Hashable]]:
    """
    Return what kernels may have in common: the scope, the columns, and the function with its parameters.

    The kind "kernel" gives each an effect of its own. Many kernels have it only where the others do not tell them
    apart.
    """
    kinds: dict[str, Sequence[Hashable]] = {"scope": single, "columns": columns, "function": functions}
    told_apart = len({*zip(columns, functions, strict=True)}) == len(columns)
    if len(columns) <= _MOST_SINGLE or not told_apart:
        kinds["kernel"] = range(len(columns))
    return kinds


def across_tasks(
    kinds: Mapping[str, Sequence[Hashable]], n_tasks: int, *, pooled: bool
) -> dict[str, Sequence[Hashable]]:
    """
    Return what kernels of all tasks have in common, task after task, given what those of each task have.

    The kind "task" is how large the predictors of a task are. Pooled tasks have effects of their own besides: on what
    kernels are on or, where that is the same for all, on each kernel. Its spread says how much tasks differ.
    """
    n_kernels = len(next(iter(kinds.values())))
    across: dict[str, Sequence[Hashable]] = {name: [*values] * n_tasks for name, values in kinds.items()}
    across[TASK] = [task for task in range(n_tasks) for _ in range(n_kernels)]
    if pooled:
        name = "columns" if len(set(kinds.get("columns", ()))) > 1 else "kernel"
        values = kinds.get(name, range(n_kernels))
        across[f"{name} by task"] = [(task, value) for task in range(n_tasks) for value in values]
    return across
