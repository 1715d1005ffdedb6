"""From training kernels and what was observed to a fitted process."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bemkl._numerics.threads import one_pool
from bemkl.arrays import Array
from bemkl.marginal.climb import Place, Watch, climb
from bemkl.marginal.draws import log_weight_draws
from bemkl.marginal.effects import TASK, Effects, across_tasks
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
    """Training samples, those of one task: their kernels, and what was observed."""

    stack: KernelsOneByOne  # kernels between samples and basis points
    columns: Sequence[Hashable]  # what each kernel is on
    observed: Observed
    landmarks: npt.NDArray[np.intp] | None = None  # samples that are basis points; None for all

    def kernels(self) -> SumOfKernels:
        """Hold the kernels for sums."""
        return SumOfKernels.of(self.stack, self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class MarginalFit:
    """Fitted processes, and how they were found."""

    fitted: tuple[FittedProcess, ...]  # one a task
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


MakePrior = Callable[[Training, SumOfKernels, Array], FunctionPrior]


def fit(
    tasks: Sequence[Training],
    kinds: Mapping[str, Sequence[Hashable]],
    make_prior: MakePrior,
    *,
    sparse: bool,
    pooled: bool = False,
    max_iter: int,
    tol: float | None,
    watch: Watch | None = None,
) -> MarginalFit:
    """
    Learn kernel weights of one task or several by their evidence, and keep what predictions need.

    Kinds say what kernels may have in common, and are the same for all tasks. Tasks have one set of weights, or each
    its own around common ones where they are pooled.
    """
    kernels = [task.kernels() for task in tasks]
    with one_pool(max(size for held in kernels for size in held.shape[1:])), np.errstate(all="ignore"):
        model = _model(tasks, kernels, kinds, make_prior, sparse=sparse, pooled=pooled)
        found = climb(model, max_iter=max_iter, tol=tol, watch=watch)
        posteriors = _posteriors(model, found.place, _places(kernels))
        fitted = [
            _fitted(task, held, model, found.place, places, posterior)
            for task, held, places, posterior in zip(tasks, kernels, _places(kernels), posteriors, strict=True)
        ]
        if len(tasks) == 1:
            worth = relevance(model, found.place, tasks[0].columns, tasks[0].observed, fitted[0].output)
            fitted = [replace(fitted[0], relevance=worth)]
    return MarginalFit(tuple(fitted), found.evidences, found.converged, found.interrupted)


def _model(
    tasks: Sequence[Training],
    kernels: Sequence[SumOfKernels],
    kinds: Mapping[str, Sequence[Hashable]],
    make_prior: MakePrior,
    *,
    sparse: bool,
    pooled: bool,
) -> Model:
    """Join the units of all tasks; a kernel is divided by the same number in all of them."""
    sizes = np.mean([_sizes(task, held) for task, held in zip(tasks, kernels, strict=True)], axis=0)
    units = []
    for task, held, places in zip(tasks, kernels, _places(kernels), strict=True):
        prior = make_prior(task, held, 1.0 / (len(sizes) * sizes))
        seen = task.observed
        units += [Unit(prior, likelihood, seen.criterion, places, seen.signal) for likelihood in seen.likelihoods]
    kinds = {"kernel": range(len(sizes))} if sparse else kinds
    return Model.of(
        units=units,
        effects=Effects.of(across_tasks(kinds, len(tasks), pooled=pooled)),
        sizes=np.tile(sizes, len(tasks)),
        spread=FREE_SPREAD if sparse else COMMON_SPREAD,
    )


def _places(kernels: Sequence[SumOfKernels]) -> list[slice]:
    """Return where the weights of each task are among all."""
    n_kernels = kernels[0].shape[0]
    return [slice(t * n_kernels, (t + 1) * n_kernels) for t in range(len(kernels))]


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


def _size(model: Model, parameters: Array, places: slice) -> float:
    """Return the logarithm that only the weights of one task have in common: how large its predictors are."""
    of_task = model.effects.of_kind(TASK)
    size: Array = model.effects.design[places][:, of_task] @ model.effects_of(parameters)[of_task]
    return float(size[0])


def _amplitude(model: Model, parameters: Array) -> float:
    """Return the amplitude that all tasks have in common."""
    return float(np.exp(np.log(model.amplitudes(parameters)).mean()))


def _posteriors(model: Model, place: Place, of_tasks: Sequence[slice]) -> list[MarginalPosterior]:
    """Describe the weights of each task, with the common amplitude in them and without the size of its predictors."""
    parameters, effects = place.parameters, model.effects
    covariance = place.covariance(model)[model.n_common :, model.n_common :]
    steps = log_weight_draws(model, place)
    root = _amplitude(model, parameters) ** (1.0 / model.units[0].prior.degree)
    spreads = {name: float(spread) for name, spread in zip(effects.names, place.spreads, strict=True)}
    found = []
    for places in of_tasks:
        design = effects.design[places]
        kept = design.any(axis=0) & ~effects.of_kind(TASK)
        found.append(
            MarginalPosterior(
                weights=root * np.exp(-_size(model, parameters, places)) * model.weights(parameters)[places],
                design=design[:, kept],
                covariance=covariance[np.ix_(kept, kept)],
                steps=steps[:, np.concatenate([[True], kept])],
                sizes=model.sizes[places],
                spreads=spreads,
                bias_variance=model.bias(parameters),
            )
        )
    return found


def _fitted(
    training: Training,
    kernels: SumOfKernels,
    model: Model,
    place: Place,
    places: slice,
    posterior: MarginalPosterior,
) -> FittedProcess:
    """Put together what predictions and summaries of a task need."""
    parameters, weights = place.parameters, posterior.weights
    here = [u for u, unit in enumerate(model.units) if unit.places == places]
    found = [place.look.posteriors[u] for u in here]
    size = np.exp(model.units[0].prior.degree * _size(model, parameters, places)) / _amplitude(model, parameters)
    predictors = [
        model.units[u]
        .prior.at(weights, float(size * model.amplitudes(parameters)[u]), posterior.bias_variance)
        .predictor(approximation.condition)
        for u, approximation in zip(here, found, strict=True)
    ]
    own = model.own(parameters)
    output = training.observed.output(found, [own[u] for u in here])
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
