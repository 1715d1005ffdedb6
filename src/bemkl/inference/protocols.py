"""What the engine asks of its plug-ins: kernel stack, pair strategy, weight strategy and likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.moments import OutputPrediction, PairContext, Profile
from bemkl.inference.priors import Priors
from bemkl.inference.summaries import Evidence, Predictor

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

    def combine_roughly(self, weights: Array) -> Array:
        """Approximate the weighted sum of the kernels, shape (n_samples, n_basis), to a few percent of each."""

    def rows(self, chosen: slice) -> Array:
        """Return some rows of every kernel, shape (n_kernels, n_chosen, n_basis)."""


PairT = TypeVar("PairT")
PairStep = Callable[[Stack, PairT, PairContext], PairT]


class PairStrategy(Protocol[PairT]):
    """One way to update the pair (a, G) with everything else fixed."""

    @property
    def steps(self) -> Mapping[str, PairStep[PairT]]:
        """Updates by name, in order."""

    @property
    def cautious(self) -> PairStrategy[PairT]:
        """The same family with steps that cannot lower the bound; itself where none can."""

    def start(self, stack: Stack, context: PairContext) -> PairT:
        """Return a pair to begin with, from the first expectations of its neighbours."""


OutputT = TypeVar("OutputT")


class Likelihood(Protocol[OutputT]):
    """The link between the predictor and the observed labels or responses of one block."""

    @property
    def n_samples(self) -> int:
        """Number of training samples."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""

    @property
    def rehearsal(self) -> Likelihood[OutputT] | None:
        """An easier likelihood of the same samples, whose posterior is the start; None where there is no need."""

    def start(self) -> OutputT:
        """Return the output factor that goes with a predictor of zero."""

    def update_precision(self, output: OutputT, predictor: Predictor) -> OutputT:
        """Update the distribution of the noise precision, if it has one."""

    def update_target(self, output: OutputT, predictor: Predictor) -> OutputT:
        """Update the distribution of the targets, if they are not observed."""

    def profile(self, output: OutputT, mean: Array) -> Profile:
        """Derivatives of the bound in (n_outputs, n_samples) means of the predictor, with optimal targets."""

    def bound_terms(self, output: OutputT, predictor: Predictor) -> dict[str, float]:
        """Return this factor's named terms of the lower bound."""

    def predict(self, output: OutputT, mean: Array, variance: Array, rule: Rule) -> OutputPrediction:
        """Turn (n_outputs, n_samples) moments of the predictor at new samples into a prediction."""


WeightT = TypeVar("WeightT")
WeightStep = Callable[[WeightT, Sequence[Evidence], Priors], WeightT]


class WeightStrategy(Protocol[WeightT]):
    """One family of posteriors for biases, kernel weights and their precisions."""

    @property
    def steps(self) -> Mapping[str, WeightStep[WeightT]]:
        """Updates by name, in order."""

    @property
    def cautious(self) -> WeightStrategy[WeightT]:
        """The same family with steps that cannot lower the bound; itself where none can."""

    @property
    def balanced(self) -> bool:
        """Whether sweeps end with a search for the best scale of kernel weights against all other factors."""

    def start(
        self, n_kernels: int, n_outputs: Sequence[int], priors: Priors, rng: np.random.Generator | None
    ) -> WeightT:
        """Return weights to begin with: equal ones, or random ones where a generator is given."""


AnyLikelihood = Likelihood[Any]
AnyPairStrategy = PairStrategy[Any]
AnyWeightStrategy = WeightStrategy[Any]
