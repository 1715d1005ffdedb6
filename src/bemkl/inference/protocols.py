"""What the engine asks of its plug-ins: kernel stack, pair strategy, weight strategy and likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.moments import OutputPrediction, PairContext, Predictor, WeightMoments
from bemkl.inference.priors import Priors

Rule = Literal["exact", "paper"]
"""How variances and probabilities are computed: exactly under q, or as the paper prints them."""


class Stack(Protocol):
    """Kernel matrices behind the operations that the inference needs."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""

    def asymmetry(self) -> float:
        """Largest relative difference between a kernel and its transpose."""

    def project(self, coefficients: Array) -> Array:
        """Map (n_outputs, n_basis) coefficients to (n_outputs, n_kernels, n_samples) intermediate outputs."""

    def backproject(self, intermediate: Array) -> Array:
        """Map (n_outputs, n_kernels, n_samples) intermediate outputs to (n_outputs, n_basis), the adjoint."""

    def gram(self) -> Array:
        """Return the (n_basis, n_basis) sum of squared kernels."""

    def quadratic(self, covariance: Array, weights: Array) -> tuple[Array, Array]:
        """Return the (n_kernels, n_samples) variances and their (n_samples,) weighted sum over pairs of kernels."""


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
    def residual(self) -> Array:
        """Expected squared distance of G from its projections, shape (n_outputs,)."""

    @property
    def entropy(self) -> float:
        """Entropy of the pair in nats."""

    def second_moment(self, weights: Array) -> Array:
        """Sum E[G Gᵀ] over outputs with the given (n_outputs,) weights, shape (n_kernels, n_kernels)."""

    def quadratic(self, matrix: Array) -> Array:
        """Sum E[gᵀ M g] over samples for a (n_kernels, n_kernels) matrix M, shape (n_outputs,)."""

    def spread_along(self, direction: Array) -> Array:
        """Sum the variances of dᵀg over samples for a (n_kernels,) direction d, shape (n_outputs,)."""

    def sample_covariance(self, gram: Array, output: int) -> Array:
        """Covariance of a for one output, shape (n_basis, n_basis)."""


PairT = TypeVar("PairT")
PairStep = Callable[[Stack, PairT, PairContext], PairT]


class PairStrategy(Protocol[PairT]):
    """One way to update the pair (a, G) with everything else fixed."""

    @property
    def steps(self) -> Mapping[str, PairStep[PairT]]:
        """Updates by name, in order."""

    def start(self, stack: Stack, context: PairContext) -> PairT:
        """Return a pair to begin with, from the first expectations of its neighbours."""


class Output(Protocol):
    """The output factor of one block, as the Gaussian pseudo-observations that the core works with."""

    @property
    def target(self) -> Array:
        """Expected targets, shape (n_outputs, n_samples)."""

    @property
    def precision(self) -> Array:
        """Expected precisions of the targets, shape (n_outputs,)."""


OutputT = TypeVar("OutputT")


class Likelihood(Protocol[OutputT]):
    """The link between the predictor and the observed labels or responses of one block."""

    @property
    def n_samples(self) -> int:
        """Number of training samples."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""

    def start(self) -> OutputT:
        """Return the output factor that goes with a predictor of zero."""

    def update_precision(self, output: OutputT, predictor: Predictor) -> OutputT:
        """Update the distribution of the noise precision, if it has one."""

    def update_target(self, output: OutputT, predictor: Predictor) -> OutputT:
        """Update the distribution of the targets, if they are not observed."""

    def bound_terms(self, output: OutputT, predictor: Predictor) -> dict[str, float]:
        """Return this factor's named terms of the lower bound."""

    def predict(self, output: OutputT, mean: Array, variance: Array, rule: Rule) -> OutputPrediction:
        """Turn (n_outputs, n_samples) moments of the predictor at new samples into a prediction."""


class Evidence:
    """
    What one block says about its biases and the kernel weights: sums over its samples, computed when asked for.

    Parameters
    ----------
    pair : PairPosterior
        The block's pair.
    output : Output
        The block's output factor.
    """

    __slots__ = ("_output", "_pair")

    def __init__(self, pair: PairPosterior, output: Output) -> None:
        self._pair = pair
        self._output = output

    @property
    def bias_precision(self) -> Array:
        """Precision that the samples give each bias, shape (n_outputs,)."""
        return self._output.precision * self._output.target.shape[1]

    @property
    def bias_kernel_precision(self) -> Array:
        """Precision that links each bias with the kernel weights, shape (n_outputs, n_kernels)."""
        return self._output.precision[:, None] * self._pair.intermediate_mean.sum(axis=2)

    @property
    def kernel_precision(self) -> Array:
        """Precision that the samples give the kernel weights, shape (n_kernels, n_kernels)."""
        return self._pair.second_moment(self._output.precision)

    @property
    def bias_pull(self) -> Array:
        """Linear term of each bias, shape (n_outputs,)."""
        return self._output.precision * self._output.target.sum(axis=1)

    @property
    def kernel_pull(self) -> Array:
        """Linear term of the kernel weights, shape (n_kernels,)."""
        scaled = self._output.precision[:, None] * self._output.target
        pull: Array = np.einsum("lmi,li->m", self._pair.intermediate_mean, scaled)
        return pull


class WeightPosterior(Protocol):
    """The factor of biases, kernel weights and their precisions."""

    def moments(self, block: int) -> WeightMoments:
        """Moments as one block sees them."""

    def bound_terms(self, priors: Priors) -> dict[str, float]:
        """Return this factor's named terms of the lower bound."""


WeightT = TypeVar("WeightT")
WeightStep = Callable[[WeightT, Sequence[Evidence], Priors], WeightT]


class WeightStrategy(Protocol[WeightT]):
    """One family of posteriors for biases, kernel weights and their precisions."""

    @property
    def steps(self) -> Mapping[str, WeightStep[WeightT]]:
        """Updates by name, in order."""

    def start(
        self, n_kernels: int, n_outputs: Sequence[int], priors: Priors, rng: np.random.Generator | None
    ) -> WeightT:
        """Return weights to begin with: equal ones, or random ones where a generator is given."""


AnyLikelihood = Likelihood[Any]
AnyPairStrategy = PairStrategy[Any]
AnyWeightStrategy = WeightStrategy[Any]
