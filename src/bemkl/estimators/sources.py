"""Where kernels come from: a bank on samples, or matrices that the user computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from bemkl.alignment import order_like, text_of
from bemkl.arrays import Array
from bemkl.estimators.sharing import key_of, room_for, shared
from bemkl.inference.block import ASYMMETRY_TOLERANCE
from bemkl.inference.protocols import Stack
from bemkl.kernels import (
    DenseStack,
    FactoredStack,
    KernelBank,
    KernelStack,
    choose_landmarks,
    default_bank,
    spherical,
    stack_kernels,
)
from bemkl.kernels.views import count_samples

Rows = npt.NDArray[np.intp]

_BLOCK_BYTES = 64 * 2**20


class Source(Protocol):
    """A fitted link from samples to kernels."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""

    def blocks(self, X: Any) -> Iterator[KernelStack]:
        """Return the kernels between samples and basis points, in blocks of samples that bound the memory."""

    def kinds(self) -> tuple[list[str], list[str], list[bool]]:
        """Return for each kernel what it is on, which function it is, and whether it is on one column."""


@dataclass(frozen=True, slots=True, eq=False)
class BankSource:
    """Kernels that a fitted bank computes from samples."""

    bank: KernelBank  # the fitted bank

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return tuple(self.bank.kernel_names_)

    def blocks(self, X: Any) -> Iterator[KernelStack]:
        """Compute the kernels of samples."""

        def compute() -> tuple[KernelBank, list[KernelStack]]:
            # The bank is kept too, so that no other object can get its identity.
            return self.bank, list(self.bank.blocks(X, max_bytes=_BLOCK_BYTES))

        size = 8 * count_samples(X) * len(self.bank.groups_[0].present) * len(self.names)
        key = key_of([id(self.bank), X]) if room_for(size) else None
        if key is None:
            return self.bank.blocks(X, max_bytes=_BLOCK_BYTES)
        _, stacks = shared(key, compute, lambda _: size)
        return iter(stacks)

    def kinds(self) -> tuple[list[str], list[str], list[bool]]:
        """Read them off the groups of the bank."""
        members = [(group, member) for group in self.bank.groups_ for member in group.members]
        single = [len(group.columns) == 1 for group, _ in members]
        return [group.label for group, _ in members], [member.title for _, member in members], single


@dataclass(frozen=True, slots=True, eq=False)
class PrecomputedSource:
    """Kernels that the user computes."""

    names: tuple[str, ...]  # names of the training kernels
    named: bool  # whether somebody gave them these names
    n_train: int  # number of training samples
    landmarks: Rows | None  # training samples that are basis points; None for all
    basis_ids: list[str] | None = None  # ids of the columns of the training kernels as text, where they came with some

    def kinds(self) -> tuple[list[str], list[str], list[bool]]:
        """Take each kernel for one of its own kind."""
        return list(self.names), ["kernel"] * len(self.names), [False] * len(self.names)

    def blocks(self, X: Any) -> Iterator[KernelStack]:
        """Check kernels of new samples."""
        stack = self._checked(X)
        n_samples, n_basis, n_kernels = stack.shape
        if n_samples == 0:
            raise ValueError("X: Found array with 0 sample(s), while a minimum of 1 is required.")
        step = max(1, _BLOCK_BYTES // (8 * n_kernels * n_basis))
        for first in range(0, n_samples, step):
            yield stack[first : first + step]

    def _checked(self, X: Any) -> KernelStack:
        """Bring kernels of new samples into the order of the training kernels and basis points."""
        stack = stack_kernels(X)
        by_name = self.named and stack.named
        if by_name and sorted(stack.names) == sorted(self.names):
            stack = stack[:, :, list(self.names)]
        elif by_name or stack.shape[2] != len(self.names):
            raise ValueError(
                f"X: expected the {len(self.names)} kernels of training ({_shown(self.names)}), got "
                f"{stack.shape[2]} ({_shown(stack.names)}). Pass the same kernels for new samples."
            )
        if self.landmarks is not None and stack.shape[1] == len(self.landmarks) != self.n_train:
            ids = self.basis_ids
            whole = ids is not None and len(ids) == self.n_train
            return self._in_order(stack, [ids[row] for row in self.landmarks] if ids is not None and whole else ids)
        if stack.shape[1] != self.n_train:
            raise ValueError(
                f"X: expected kernels between new samples (rows) and the {self.n_train} training samples (columns), "
                f"of shape (n_samples, {self.n_train}, {len(self.names)}), got {stack.shape}."
            )
        stack = self._in_order(stack, self.basis_ids)
        return stack if self.landmarks is None else stack[:, self.landmarks]

    def _in_order(self, stack: KernelStack, ids: list[str] | None) -> KernelStack:
        """Bring columns into the order of the training samples, where both have ids."""
        found = stack.column_ids
        if ids is None or found is None:
            return stack
        order = order_like("columns of X", list(map(text_of, found)), "the training samples", ids)
        return stack if order is None else stack[:, order]


TrainingStack = DenseStack | FactoredStack
Fitted = tuple[Source, TrainingStack, Rows | None]


def fit_source(kernels: Any, landmarks: Any, X: Any, rng: np.random.Generator, tolerance: float | None) -> Fitted:
    """Fit a source of kernels on training samples."""
    if isinstance(kernels, str) and kernels == "precomputed":
        source, given, rows = _fit_precomputed(stack_kernels(X), landmarks, rng)
        return source, given.dense() if tolerance is None else given.factored(tolerance), rows
    if kernels is None:
        kernels = default_bank(X)
    if isinstance(X, KernelStack):
        raise ValueError('X: got a KernelStack, but kernels is a bank. Pass kernels="precomputed".')

    def fit() -> Fitted:
        bank, rows = clone(kernels), None
        if landmarks is not None:
            rows = choose_landmarks(landmarks, count_samples(X), bank.mean_similarity(X), rng)
        if tolerance is None:
            stack: TrainingStack = bank.fit_transform(X, basis=rows).dense()
        else:
            stack = bank.fit_factored(X, basis=rows, tolerance=tolerance)
        bank.forget_ids()
        return BankSource(bank), stack, rows

    draws = rng.bit_generator.state if _are_drawn(landmarks) else None
    key = key_of([kernels, X, landmarks, draws, tolerance]) if room_for(0) else None
    source, stack, rows = shared(key, fit, lambda found: found[1].n_values * 8)
    return source, stack, None if rows is None else rows.copy()


def _are_drawn(landmarks: Any) -> bool:
    """Say whether landmarks are up to chance, and neither named nor the pivots of the kernels."""
    with_count = isinstance(landmarks, tuple) and len(landmarks) == 2 and isinstance(landmarks[0], str)
    strategy = landmarks[0] if with_count else landmarks
    return isinstance(strategy, int | np.integer | str) and strategy != "pivoted"


def check_kernels(kernels: Any) -> None:
    """Refuse a parameter that names no source of kernels."""
    if not isinstance(kernels, KernelBank | None) and not (isinstance(kernels, str) and kernels == "precomputed"):
        raise ValueError(
            f'kernels: expected a KernelBank, "precomputed" or None, got {kernels!r}. '
            'For one kernel write KernelBank([KernelSpec("gaussian", "all", {"width": 1.0})]).'
        )


def refuse_kernels_first(stack: KernelStack) -> None:
    """Refuse training kernels whose shape looks like (n_kernels, n_train, n_train)."""
    n_train, n_columns, n_kernels = stack.shape
    if n_train != n_columns == n_kernels:
        raise ValueError(
            f"X: expected shape (n_train, n_train, n_kernels), got {stack.shape}, which looks like kernels first. "
            "Samples come first, so that cross-validation can slice them: use np.moveaxis(X, 0, -1), or "
            "stack_kernels(list(X))."
        )


def refuse_asymmetry(names: Sequence[str], stack: Stack) -> None:
    """Refuse square training kernels that are not symmetric, and name the first one."""
    for name, asymmetry in zip(names, stack.asymmetries(), strict=True):
        if asymmetry > ASYMMETRY_TOLERANCE:
            raise ValueError(
                f"X: training kernels have to be symmetric, but entries of {name!r} differ from those across the "
                f"diagonal by up to {asymmetry:.2g} of its largest entry. Put rows and columns in the same order, or "
                "average the kernel with its transpose if that is noise."
            )


def _fit_precomputed(
    stack: KernelStack, landmarks: Any, rng: np.random.Generator
) -> tuple[Source, KernelStack, Rows | None]:
    n_train, n_columns, _ = stack.shape
    rows = None
    if landmarks is not None:
        rows = choose_landmarks(landmarks, n_train, _mean_similarity(stack), rng)
        if n_columns == len(rows) != n_train:
            return PrecomputedSource(stack.names, stack.named, n_train, rows, _as_text(stack.column_ids)), stack, rows
    if n_columns != n_train:
        raise ValueError(
            f"X: expected square training kernels, of shape (n_train, n_train, n_kernels), got {stack.shape}. "
            "Kernels with fewer columns need landmarks, the rows that the columns stand for."
        )
    source = PrecomputedSource(stack.names, stack.named, n_train, rows, _as_text(stack.column_ids))
    return source, stack if rows is None else stack[:, rows], rows


def _mean_similarity(stack: KernelStack) -> Callable[[int], Array]:
    """Return the columns of the mean of square kernels, each and then their mean with unit diagonal."""

    @cache
    def mean() -> Array:
        if stack.shape[0] != stack.shape[1]:
            raise ValueError(
                f"landmarks: a strategy needs square training kernels, got shape {stack.shape}. Name the rows that "
                "the columns stand for."
            )
        total = np.zeros(stack.shape[:2])
        for kernel in stack.dense().values:
            total += spherical(kernel, kernel.diagonal(), kernel.diagonal())
        return spherical(total, total.diagonal(), total.diagonal())

    return lambda row: mean()[:, row].copy()


def _as_text(ids: list[Any] | None) -> list[str] | None:
    """Return ids as a saved model can hold them, whatever they are."""
    return None if ids is None else list(map(text_of, ids))


def _shown(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
