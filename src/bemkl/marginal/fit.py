"""From training kernels and what was observed to a fitted process."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bemkl._numerics.threads import one_pool
from bemkl.arrays import Array
from bemkl.marginal.climb import Climb, Watch, climb
from bemkl.marginal.draws import log_weight_draws
from bemkl.marginal.effects import Effects
from bemkl.marginal.fitted import FittedProcess, MarginalPosterior
from bemkl.marginal.functions import (
    FunctionPrior,
    SampleWeights,
    SumByLandmarks,
    SumOfProcesses,
    inverse_root,
)
from bemkl.marginal.kernels import KernelsOneByOne, SumOfKernels
from bemkl.marginal.model import Model, Unit
from bemkl.marginal.observed import Observed
from bemkl.marginal.relevance import relevance

FREE_SPREAD = 2.0
"""Where the spread of weights begins that have nothing in common: kernels that do not help all but vanish."""
COMMON_SPREAD = 0.5
"""Where spreads begin that are learned."""


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Training kernels with what is known of them."""

    stack: KernelsOneByOne  # kernels between samples and basis points
    columns: Sequence[Hashable]  # what each kernel is on
    kinds: Mapping[str, Sequence[Hashable]]  # what kernels may have in common
    landmarks: npt.NDArray[np.intp] | None = None  # samples that are basis points; None for all

    def kernels(self) -> SumOfKernels:
        """Hold the kernels for sums."""
        return SumOfKernels.of(self.stack, self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class MarginalFit:
    """A fitted process, and how it was found."""

    fitted: FittedProcess
    evidences: tuple[float, ...]
    converged: bool
    interrupted: bool

    @property
    def n_iter(self) -> int:
        """Number of steps."""
        return len(self.evidences)

    @property
    def lower_bounds(self) -> Array:
        """Laplace evidence after each step. Shapes: returns (n_iter,)."""
        return np.array(self.evidences)


def fit(
    training: Training,
    observed: Observed,
    make_prior: Callable[[Training, SumOfKernels, Array], FunctionPrior],
    *,
    sparse: bool,
    max_iter: int,
    tol: float | None,
    watch: Watch | None = None,
) -> MarginalFit:
    """Learn kernel weights by their evidence, and keep what predictions need."""
    kernels = training.kernels()
    with one_pool(max(kernels.shape[1:])), np.errstate(all="ignore"):
        sizes = _sizes(training, kernels)
        functions = make_prior(training, kernels, 1.0 / (len(sizes) * sizes))
        kinds = {"kernel": range(len(sizes))} if sparse else training.kinds
        model = Model.of(
            units=[Unit(functions, likelihood, observed.criterion) for likelihood in observed.likelihoods],
            effects=Effects.of(kinds),
            sizes=sizes,
            signal=observed.signal,
            spread=FREE_SPREAD if sparse else COMMON_SPREAD,
        )
        found = climb(model, max_iter=max_iter, tol=tol, watch=watch)
        fitted = _fitted(training, kernels, model, found, observed)
        fitted = replace(fitted, relevance=relevance(model, found.place, training.columns, observed, fitted.output))
    return MarginalFit(fitted, found.evidences, found.converged, found.interrupted)


def sum_of_processes(training: Training, kernels: SumOfKernels, equal: Array) -> FunctionPrior:
    """Return one process a kernel. Shapes: equal (n_kernels,), weights that make kernels compare."""
    if training.landmarks is None:
        return SumOfProcesses(kernels)
    return SumByLandmarks(kernels, kernels.among(training.landmarks), kernels.own_by(training.landmarks))


def mean_kernel(training: Training, kernels: SumOfKernels, equal: Array) -> FunctionPrior:
    """Return functions of the mean kernel. Shapes: equal (n_kernels,)."""
    among = kernels if training.landmarks is None else kernels.among(training.landmarks)
    return SampleWeights.of_mean_kernel(kernels, among, equal)


def independent_samples(training: Training, kernels: SumOfKernels, equal: Array) -> FunctionPrior:
    """Return the paper's prior of sample weights. Shapes: equal (n_kernels,)."""
    return SampleWeights.independent(kernels)


def _sizes(training: Training, kernels: SumOfKernels) -> Array:
    """
    Return the mean prior variance that each kernel gives, which weights are divided by.

    Shapes: returns (n_kernels,).
    """
    among = kernels if training.landmarks is None else kernels.among(training.landmarks)
    sizes = among.diagonals.mean(axis=1)
    return np.where(sizes > 0.0, sizes, 1.0)


def _fitted(training: Training, kernels: SumOfKernels, model: Model, found: Climb, observed: Observed) -> FittedProcess:
    """Put together what predictions and summaries need, with the amplitude in the weights."""
    place, n_common = found.place, model.n_common
    degree = model.units[0].prior.degree
    root = model.amplitude(place.parameters) ** (1.0 / degree)
    weights = root * model.weights(place.parameters)
    bias = model.bias(place.parameters)
    predictors = [
        unit.prior.at(weights, 1.0, bias).predictor(approximation.condition)
        for unit, approximation in zip(model.units, place.look.posteriors, strict=True)
    ]
    posterior = MarginalPosterior(
        weights=weights,
        design=model.effects.design,
        covariance=place.covariance(model)[n_common:, n_common:],
        steps=log_weight_draws(model, place),
        sizes=model.sizes,
        spreads={name: float(spread) for name, spread in zip(model.effects.names, place.spreads, strict=True)},
        bias_variance=bias,
    )
    output = observed.output(found, model.own(place.parameters))
    duals = np.concatenate([predictor.dual.T for predictor in predictors])
    diagonal, varying, own_root = _own_of(training, kernels, weights)
    return FittedProcess(
        posterior=posterior,
        predictors=tuple(predictors),
        output=output,
        signal=output.scale[:, None] * kernels.deviations(weights, duals),
        diagonal=diagonal,
        n_samples=kernels.shape[1],
        own_root=own_root,
        varying=varying,
    )


def _own_of(training: Training, kernels: SumOfKernels, weights: Array) -> tuple[Array, Array | None, Array | None]:
    """
    Return values k(x, x) that are the same for all samples, the weights of the other kernels, and their inverse root.

    Shapes: weights (n_kernels,).
    """
    among = kernels if training.landmarks is None else kernels.among(training.landmarks)
    least, most = among.diagonals.min(axis=1), among.diagonals.max(axis=1)
    same = most - least <= 1e-6 * most
    diagonal = np.where(same, most, 0.0)
    varying = np.where(same, 0.0, weights)
    if not varying.any():
        return diagonal, None, None
    return diagonal, varying, inverse_root(among.combine(varying))
