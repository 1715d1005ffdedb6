"""The parts of a posterior as the engine sees them: only their expectations. Each is a protocol."""

from __future__ import annotations

from typing import Protocol

from bemkl.arrays import Array
from bemkl.inference.graded import PrecisionFactor
from bemkl.inference.moments import WeightMoments
from bemkl.inference.priors import Priors
from bemkl.inference.symmetric import Symmetric


class PairPosterior(Protocol):
    """The joint factor of sample weights a and intermediate outputs G of one block, by its expectations."""

    @property
    def sample_mean(self) -> Array:
        """Mean of a, shape (n_outputs, n_basis)."""

    @property
    def sample_second(self) -> Array:
        """Second moments E[a²], shape (n_outputs, n_basis)."""

    @property
    def intermediate_mean(self) -> Array:
        """Mean of G, shape (n_outputs, n_kernels, n_samples)."""

    @property
    def intermediate_total(self) -> Array:
        """Mean of G, summed over the samples, shape (n_outputs, n_kernels)."""

    @property
    def residual(self) -> Array:
        """Expected squared distance of G from its projections, shape (n_outputs,)."""

    @property
    def entropy(self) -> float:
        """Entropy of the pair in nats."""

    def spread(self, weights: Array) -> Symmetric:
        """Sum the covariances of g over samples, and over outputs with the given (n_outputs,) weights."""

    def second_moment(self, weights: Array) -> Symmetric:
        """Sum E[G Gᵀ] over outputs with the given (n_outputs,) weights, in a new matrix."""

    def quadratic(self, matrix: Symmetric) -> Array:
        """Sum E[gᵀ M g] over samples for a matrix M of size n_kernels, shape (n_outputs,)."""

    def spread_along(self, direction: Array) -> Array:
        """Sum the variances of dᵀg over samples for a (n_kernels,) direction d, shape (n_outputs,)."""

    @property
    def mean_residual(self) -> Array:
        """Squared distance of the mean of G from its projections, shape (n_outputs,)."""

    def quadratic_mean(self, matrix: Symmetric) -> Array:
        """Sum gᵀ M g of the means over samples for a matrix M of size n_kernels, shape (n_outputs,)."""

    def scaled(self, factor: float, *, spread: bool) -> PairPosterior:
        """Multiply the means by a factor, and with the spread also the deviations."""

    def scale_ratio(self, gram: Array) -> float:
        """Ratio, a kernel, of squared kernels to precisions of a, from the gram matrix of the training stack."""

    def sample_precision_factor(self, gram: Array, output: int, root: Array | None = None) -> PrecisionFactor:
        """Factor of the inverse covariance of a for one output, from the gram matrix of the training stack."""


class Output(Protocol):
    """
    The output factor of one block, as the Gaussian pseudo-observations that the core works with.

    All samples of an output have one precision; weights of samples and missing cells do not fit in here.
    """

    @property
    def target(self) -> Array:
        """Expected targets, shape (n_outputs, n_samples)."""

    @property
    def precision(self) -> Array:
        """Expected precisions of the targets, shape (n_outputs,)."""


class WeightPosterior(Protocol):
    """
    The factor of biases, kernel weights and their precisions.

    Weights may differ between blocks but not between the outputs of a block; outputs with weights of their own are
    blocks of their own, which may share one stack.
    """

    def moments(self, block: int) -> WeightMoments:
        """Moments as one block sees them."""

    @property
    def precision_mean(self) -> Array:
        """Expected precisions of the kernel weights, shape (n_kernels,)."""

    @property
    def mean_cost(self) -> float:
        """Squared means of the kernel weights, summed with their expected precisions."""

    def scaled(self, factor: float, *, spread: bool) -> WeightPosterior:
        """Multiply the means of the kernel weights by a factor, and with the spread also deviations and precisions."""

    def bound_terms(self, priors: Priors) -> dict[str, float]:
        """Return this factor's named terms of the lower bound."""
