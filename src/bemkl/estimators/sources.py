"""Where kernels come from: a bank on samples, or matrices that the user computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from bemkl.arrays import Array
from bemkl.kernels import KernelBank, KernelStack, choose_landmarks, default_bank, spherical, stack_kernels
from bemkl.kernels.views import count_samples

Rows = npt.NDArray[np.intp]


class Source(Protocol):
    """A fitted link from samples to kernels."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""

    def stack(self, X: Any) -> KernelStack:
        """Return the kernels between samples and basis points."""


@dataclass(frozen=True, slots=True, eq=False)
class BankSource:
    """
    Kernels that a fitted bank computes from samples.

    Parameters
    ----------
    bank : KernelBank
        The fitted bank.
    """

    bank: KernelBank

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return tuple(self.bank.kernel_names_)

    def stack(self, X: Any) -> KernelStack:
        """
        Compute the kernels of samples.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, or dict of these
            The samples.

        Returns
        -------
        KernelStack
            Kernels of shape (n_samples, n_basis, n_kernels).
        """
        return self.bank.transform(X)


@dataclass(frozen=True, slots=True, eq=False)
class PrecomputedSource:
    """
    Kernels that the user computes.

    Parameters
    ----------
    names : tuple of str
        Names of the training kernels.
    n_train : int
        Number of training samples.
    landmarks : ndarray of int or None
        Training samples that are basis points; None for all.
    """

    names: tuple[str, ...]
    n_train: int
    landmarks: Rows | None

    def stack(self, X: Any) -> KernelStack:
        """
        Check kernels of new samples.

        Parameters
        ----------
        X : KernelStack, ndarray, list of matrices, or dict of matrices
            Kernels of shape (n_samples, n_train, n_kernels).

        Returns
        -------
        KernelStack
            Kernels of shape (n_samples, n_basis, n_kernels).
        """
        stack = stack_kernels(X)
        if isinstance(X, KernelStack | Mapping) and sorted(stack.names) == sorted(self.names):
            stack = stack[:, :, list(self.names)]
        elif isinstance(X, Mapping) or stack.shape[2] != len(self.names):
            raise ValueError(
                f"X: expected the {len(self.names)} kernels of training ({_shown(self.names)}), got "
                f"{stack.shape[2]} ({_shown(stack.names)}). Pass the same kernels for new samples."
            )
        if self.landmarks is not None and stack.shape[1] == len(self.landmarks):
            return stack
        if stack.shape[1] != self.n_train:
            raise ValueError(
                f"X: expected kernels between new samples (rows) and the {self.n_train} training samples (columns), "
                f"of shape (n_samples, {self.n_train}, {len(self.names)}), got {stack.shape}."
            )
        return stack if self.landmarks is None else stack[:, self.landmarks]


Fitted = tuple[Source, KernelStack, Rows | None]


def fit_source(kernels: Any, landmarks: Any, X: Any, rng: np.random.Generator) -> Fitted:
    """
    Fit a source of kernels on training samples.

    Parameters
    ----------
    kernels : KernelBank, "precomputed" or None
        Where kernels come from; None for a small bank that suits the samples.
    landmarks : Any
        Which basis points, as in `choose_landmarks`; None for all training samples.
    X : Any
        Training samples, or their kernels.
    rng : numpy.random.Generator
        Draws for the landmarks.

    Returns
    -------
    source : Source
        The fitted source.
    stack : KernelStack
        Training kernels of shape (n_train, n_basis, n_kernels).
    rows : ndarray of int or None
        The landmarks, where there are some.
    """
    if isinstance(kernels, str) and kernels == "precomputed":
        return _fit_precomputed(stack_kernels(X), landmarks, rng)
    if kernels is None:
        kernels = default_bank(X)
    if not isinstance(kernels, KernelBank):
        raise ValueError(
            f'kernels: expected a KernelBank, "precomputed" or None, got {kernels!r}. '
            'For one kernel write KernelBank([KernelSpec("gaussian", "all", {"width": 1.0})]).'
        )
    if isinstance(X, KernelStack):
        raise ValueError('X: got a KernelStack, but kernels is a bank. Pass kernels="precomputed".')
    bank = clone(kernels)
    if landmarks is None:
        return BankSource(bank), bank.fit_transform(X), None
    rows = choose_landmarks(landmarks, count_samples(X), bank.mean_similarity(X), rng)
    stack = bank.fit_transform(X, basis=rows)
    return BankSource(bank), stack, rows


def _fit_precomputed(stack: KernelStack, landmarks: Any, rng: np.random.Generator) -> Fitted:
    n_train, n_columns, _ = stack.shape
    rows = None
    if landmarks is not None:
        rows = choose_landmarks(landmarks, n_train, _mean_similarity(stack), rng)
        if n_columns == len(rows):
            return PrecomputedSource(stack.names, n_train, rows), stack, rows
    if n_columns != n_train:
        raise ValueError(
            f"X: expected square training kernels, of shape (n_train, n_train, n_kernels), got {stack.shape}. "
            "Kernels with fewer columns need landmarks, the rows that the columns stand for."
        )
    return PrecomputedSource(stack.names, n_train, rows), stack if rows is None else stack[:, rows], rows


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


def _shown(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
