"""What the engine asks of its plug-ins: kernel stack, pair strategy, weight strategy and likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeVar

from bemkl.arrays import Array
from bemkl.distributions import Precision, Priors
from bemkl.inference.matrices import Symmetric
from bemkl.inference.moments import OutputPrediction, Profile, WeightMoments

Rule = Literal["exact", "paper"]
"""How variances and probabilities are computed: exactly under q, or as the paper prints them."""


class Stack(Protocol):
    """Kernel matrices behind the operations that the inference needs."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""

    def asymmetries(self) -> Array:
        """Largest relative difference between each kernel and its transpose, shape (n_kernels,)."""

    def project(self, coefficients: Array) -> Array:
        """Map (n_outputs, n_basis) coefficients to (n_outputs, n_kernels, n_samples) intermediate outputs."""

    def backproject(self, intermediate: Array) -> Array:
        """Map (n_outputs, n_kernels, n_samples) intermediate outputs to (n_outputs, n_basis), the adjoint."""

    def gram(self) -> Array:
        """Return the (n_basis, n_basis) sum of squared kernels."""

    def combine_approximately(self, weights: Array) -> Array:
        """Approximate the weighted sum of the kernels, shape (n_samples, n_basis), to a few percent of each."""

    def rows(self, chosen: slice) -> Array:
        """Return some rows of every kernel, shape (n_kernels, n_chosen, n_basis)."""


class Targets(Protocol):
    """Factor of the targets of some samples: Gaussian pseudo-observations of their predictors."""

    @property
    def target(self) -> Array:
        """Expected targets, shape (n_outputs, n_samples)."""

    @property
    def location(self) -> Array | None:
        """What the factor is made from again, shape (n_outputs, n_samples); None where it follows from the others."""


TargetT = TypeVar("TargetT")
FitT = TypeVar("FitT")


class Likelihood(Protocol[TargetT, FitT]):
    """
    The link between the predictor and the observed labels or responses of some samples.

    Samples may be apart: what is asked of some of them has their rows, and what is asked of all has sums over them.
    """

    @property
    def n_samples(self) -> int:
        """Number of samples."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""

    @property
    def rehearsal(self) -> Likelihood[TargetT, FitT] | None:
        """An easier likelihood of the same samples, whose posterior is the start; None where there is no need."""

    def some(self, samples: slice) -> Likelihood[TargetT, FitT]:
        """Return the same link for some of the samples, or for none, which is all that predictions need."""

    def start(self) -> TargetT:
        """Return the factor of the targets that goes with a predictor of zero."""

    def restored(self, location: Array | None) -> TargetT:
        """Return the factor of the targets with a given location."""

    def update(self, targets: TargetT, mean: Array) -> TargetT:
        """Update the factor for (n_outputs, n_samples) means of the predictor; the same where targets are observed."""

    def profile(self, targets: TargetT, precision: Array, mean: Array) -> Profile:
        """Derivatives of the bound in the means of the predictor, with optimal targets of (n_outputs,) precision."""

    def fit(self, targets: TargetT, mean: Array) -> FitT:
        """Sum what noise and bound depend on, at (n_outputs, n_samples) means: numbers, arrays or tuples of them."""

    def noise(self, fit: FitT, variance: Array) -> Precision:
        """Return the factor of the noise precisions; variances of the predictor are summed, shape (n_outputs,)."""

    def bound_terms(self, noise: Precision, fit: FitT, variance: Array) -> dict[str, float]:
        """Return this factor's named terms of the lower bound, from sums over all samples."""

    def predict(self, noise: Precision, mean: Array, variance: Array, rule: Rule) -> OutputPrediction:
        """Turn (n_outputs, n_samples) moments of the predictor at new samples into a prediction."""


class Information(Protocol):
    """What the samples of a block say about its biases and the kernel weights: a precision."""

    @property
    def bias_precision(self) -> Array:
        """Precision of each bias, shape (n_outputs,)."""

    @property
    def bias_kernel_precision(self) -> Array:
        """Precision that links each bias with the kernel weights, shape (n_outputs, n_kernels)."""

    @property
    def kernel_precision(self) -> Symmetric:
        """Precision of the kernel weights, of size n_kernels, in a new matrix."""


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
        """Expected precisions of the kernel weights, shape (n_kernels,); asked of balanced families."""

    @property
    def mean_cost(self) -> float:
        """Squared means of the kernel weights, summed with their precisions; asked of balanced families."""

    @property
    def inclusion(self) -> Array | None:
        """Probabilities that kernels are on, shape (n_kernels,); None where all are."""

    def scaled(self, factor: float, *, spread: bool) -> WeightPosterior:
        """Multiply means by a factor, with the spread deviations and precisions too; asked of balanced families."""

    def bound_terms(self, priors: Priors) -> dict[str, float]:
        """Return this factor's named terms of the lower bound."""

    def integrated(self, information: Sequence[Information]) -> WeightPosterior:
        """Return the same weights, as uncertain as they are where all sample weights may follow them."""


AnyLikelihood = Likelihood[Any, Any]


def require_plug_in(name: str, plug_in: Any, protocol: Any, example: str) -> None:
    """Refuse an object that lacks what a protocol asks, or a class in the place of an object."""
    if isinstance(plug_in, type):
        raise ValueError(f"{name}: expected an object, got the class {plug_in.__name__} itself. Pass {example}.")
    members = [member for member in vars(protocol) if not member.startswith("_")]
    missing = [member for member in members if not hasattr(plug_in, member)]
    if missing:
        raise ValueError(
            f"{name}: {plug_in!r} cannot be used as a {name}, it lacks {', '.join(missing)}. Pass {example}."
        )
