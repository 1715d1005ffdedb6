"""What predictions and summaries ask of a fit, whatever its posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from bemkl.arrays import Array
from bemkl.kernels import DenseStack
from bemkl.marginal.relevance import Relevance

KEPT_BYTES = 2**30
"""Memory of all fits together for what is kept from one block of new samples to the next."""


class Moments(Protocol):
    """Moments at new samples, one column an output."""

    @property
    def mean(self) -> Array:
        """Expected scores or responses, shape (n_samples, n_outputs)."""

    @property
    def variance(self) -> Array:
        """Their variances, noise included, shape (n_samples, n_outputs)."""

    @property
    def probability(self) -> Array | None:
        """Probabilities of +1, or of each class; None for responses."""


class Fitted(Protocol):
    """What predictions and summaries ask of a fit."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""

    @property
    def n_samples(self) -> int:
        """Number of training samples."""

    @property
    def n_basis(self) -> int:
        """Number of basis points."""

    @property
    def kernel_weights(self) -> Array:
        """Kernel weights, shape (n_kernels,)."""

    @property
    def weight_deviations(self) -> Array:
        """Their standard deviations, shape (n_kernels,)."""

    def weight_interval(self, coverage: float) -> tuple[Array, Array]:
        """Return central intervals of the weights, each end of shape (n_kernels,)."""

    def sum_interval(self, groups: Array, coverage: float) -> tuple[Array, Array]:
        """Return intervals of sums of weights, for (n_kernels, n_groups) ones, each end of shape (n_groups,)."""

    @property
    def never_negative(self) -> bool:
        """Whether no weight can be below zero."""

    @property
    def inclusion(self) -> Array | None:
        """Probabilities that kernels are on, shape (n_kernels,), where there are such."""

    @property
    def signal(self) -> Array:
        """How much each kernel's contributions vary between training samples, shape (n_outputs, n_kernels)."""

    @property
    def relevance(self) -> Relevance | None:
        """What was found out by leaving views and kernels out in turn; None for a posterior that cannot."""

    @property
    def dual(self) -> Array:
        """Coefficients of the combined kernel, shape (n_outputs, n_basis)."""

    @property
    def intercept(self) -> Array:
        """What is added to it, shape (n_outputs,)."""

    def combine(self, stack: DenseStack) -> Array:
        """Sum kernels with the weights, shape (n_new, n_basis)."""

    def contributions(self, stack: DenseStack) -> Array:
        """Return what each kernel adds to the scores, shape (n_outputs, n_kernels, n_new)."""

    def score(self, stack: DenseStack) -> Array:
        """Return expected scores, shape (n_new, n_outputs)."""

    def predictor(self, rule: Any, max_bytes: int) -> Callable[[DenseStack], Moments]:
        """Return what finds moments of scores, and probabilities, by a rule; it may keep some memory between blocks."""
