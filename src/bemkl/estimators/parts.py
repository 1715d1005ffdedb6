"""What kernels, or views, add to decisions, and how sure that is."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.kernels import DenseStack

Positions = npt.NDArray[np.intp]


def groups_of(names: Iterable[Hashable]) -> list[Positions]:
    """Return the places of the kernels of each group, such as a view, given the name of each kernel's group."""
    members: dict[Hashable, list[int]] = {}
    for place, name in enumerate(names):
        members.setdefault(name, []).append(place)
    return [np.array(places) for places in members.values()]


def sums(parts: Array, groups: Sequence[Positions]) -> Array:
    """Sum over the kernels of each group. Shapes: parts (n_outputs, n_kernels, n); returns (n_outputs, n_groups, n)."""
    firsts = np.cumsum([0] + [len(members) for members in groups[:-1]])
    total: Array = np.add.reduceat(parts[:, np.concatenate(groups)], firsts, axis=1)
    return total


def refuse_indivisible(fits: Sequence[Any]) -> None:
    """Refuse fits in which kernels have no functions of their own: mean-field ones, and of other priors."""
    if not all(getattr(fitted, "additive", False) for fitted in fits):
        raise ValueError(
            "return_std: contributions have standard deviations only where each kernel has a function of its own: fit "
            'with posterior="marginal" and function_prior="sum".'
        )


def deviations(fits: Sequence[Any], stack: DenseStack, groups: Sequence[Positions]) -> Array:
    """Return deviations of what groups add to the outputs of all fits. Shapes: returns (n_outputs, n_groups, n)."""
    found = [fitted.contribution_deviations(stack, groups) for fitted in fits]
    if any(each is None for each in found):
        raise ValueError(
            "return_std: the kernels of X do not say how similar new samples are to themselves, which differs between "
            "samples. Pass them as KernelBank.transform returns them, or scale kernels to a diagonal of ones."
        )
    return np.concatenate(found)
