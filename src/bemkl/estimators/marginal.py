"""The marginal posterior for the estimators: sample weights integrated out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from bemkl.estimators.fitting import Effort, fit_in_turn
from bemkl.estimators.posteriors import Learned, Samples, Tasks, joined
from bemkl.marginal.effects import kinds_of
from bemkl.marginal.fit import MarginalFit, Training, fit
from bemkl.registry import FUNCTION_PRIORS, find

_MOST_SAMPLES = 15_000
"""Samples without landmarks: some six square matrices of them are held, 11 GB for these."""
_NEGLIGIBLE = 1e-6
"""Share of the largest entry of a kernel up to which negative eigenvalues are rounding."""


class Marginal:
    """One marginal fit of all outputs; tasks that have nothing in common have one each."""

    def __init__(self, estimator: Any, tasks: Tasks, effort: Effort) -> None:
        by_evidence = FUNCTION_PRIORS | {"evidence": next(iter(FUNCTION_PRIORS.values()))}
        find("function_prior", estimator.function_prior, by_evidence)
        self._priors = tuple(FUNCTION_PRIORS) if estimator.function_prior == "evidence" else (estimator.function_prior,)
        given = estimator.get_params(deep=False)
        _refuse_others(given)
        self._way_out = "Pass landmarks=500, or take" if "landmarks" in given else "Take"
        self._sparse = estimator.kernel_prior == "sparse"
        self._tests = bool(given.get("test_views", False))
        self._observed = [targets.observed() for targets in tasks.targets]
        self._tasks, self._effort = tasks, effort

    def learn(self, samples: Sequence[Samples], rng: np.random.Generator) -> Learned:
        """Fit to training samples under each prior on functions, and keep the one with the highest evidence."""
        trainings = [
            Training(here.stack, here.source.kinds()[0], observed, here.landmarks)
            for here, observed in zip(samples, self._observed, strict=True)
        ]
        groups = [[training] for training in trainings] if self._tasks.sharing == "separate" else [trainings]
        for group in groups:
            self._refuse_many(group)
        for name, here in zip(self._tasks.names, samples, strict=True):
            refuse_indefinite(here, "X" if self._tasks.alone else f"task {name!r}: X")
        kinds = kinds_of(*samples[0].source.kinds())
        jobs = [(g, prior) for g in range(len(groups)) for prior in self._priors]
        found = fit_in_turn(
            [self._run(groups[g], kinds, prior) for g, prior in jobs],
            [prior if len(groups) == 1 else f"{self._tasks.names[g]}, {prior}" for g, prior in jobs],
            [sum(training.stack.shape[1] for training in groups[g]) for g, _ in jobs],
            self._effort,
        )
        n = len(self._priors)
        best = [
            max(found[first : first + n], key=lambda result: result.evidences[-1]) for first in range(0, len(found), n)
        ]
        fitted = tuple(each for result in best for each in result.fitted)
        alike = self._tasks.sharing == "shared"
        return Learned(
            names=self._tasks.names,
            fitted=fitted,
            posterior=fitted[0].posterior if alike or len(fitted) == 1 else tuple(each.posterior for each in fitted),
            lower_bounds=joined([result.lower_bounds for result in best]),
            converged=all(result.converged for result in best),
            alike=alike,
        )

    def _refuse_many(self, group: Sequence[Training]) -> None:
        """Refuse samples whose matrices would not fit into memory."""
        sizes = [training.stack.shape[1] for training in group if training.landmarks is None]
        squares = sum(size**2 for size in sizes)
        if squares > _MOST_SAMPLES**2:
            raise ValueError(
                f"X: the marginal posterior of {sum(sizes)} samples would take {6 * 8 * squares / 2**30:.0f} GB "
                f'without landmarks. {self._way_out} posterior="mean_field".'
            )

    def _run(
        self, group: Sequence[Training], kinds: Mapping[str, Sequence[Hashable]], prior: str
    ) -> Callable[[Any], MarginalFit]:
        def run(watch: Any) -> MarginalFit:
            return fit(
                group,
                kinds,
                find("function_prior", prior, FUNCTION_PRIORS),
                sparse=self._sparse,
                pooled=self._tasks.sharing == "pooled",
                tests=self._tests,
                max_iter=self._effort.max_iter,
                tol=self._effort.tol,
                watch=watch,
            )

        return run


def _refuse_others(given: Mapping[str, Any]) -> None:
    """Refuse parameters that mean something else to this posterior, or nothing."""
    for name, known in (_KNOWN | _UNKNOWN).items():
        value = given.get(name, known[0])
        if any(value is choice or (isinstance(value, str | Real | tuple) and value == choice) for choice in known):
            continue
        if name in _UNKNOWN:
            what, way_out = "has no such parameter", f"Leave it at its default, {known[0]!r}"
        else:
            what, way_out = f"knows {' or '.join(map(repr, known))}", "Choose that"
        raise ValueError(
            f'{name}: the marginal posterior {what}, got {value!r}. {way_out}, or take posterior="mean_field".'
        )


def refuse_indefinite(samples: Samples, where: str) -> None:
    """Refuse kernels that are no covariances, and name the first one and where it was given."""
    for position, _, matrix in samples.stack.each():
        if matrix is None:
            continue  # thin factors have no negative eigenvalues
        square = matrix.astype(np.float64, copy=False) if samples.landmarks is None else matrix[samples.landmarks]
        size = float(np.abs(square).max())
        try:
            np.linalg.cholesky(square + _NEGLIGIBLE * max(size, np.finfo(np.float64).tiny) * np.eye(len(square)))
        except np.linalg.LinAlgError:
            values = np.linalg.eigvalsh(square)
            if values[0] < -_NEGLIGIBLE * max(values[-1], size):
                raise ValueError(
                    f"{where}: the marginal posterior needs kernels without negative eigenvalues, but "
                    f"{samples.source.names[position]!r} has one of {values[0]:.3g}, where the largest is "
                    f'{values[-1]:.3g}. Set negative ones to zero, or take posterior="mean_field".'
                ) from None


_KNOWN: dict[str, tuple[Any, ...]] = {
    "weights": ("free", "nonnegative"),
    "kernel_prior": ("dense", "sparse"),
    "predictive": ("exact",),
    "warm_start": (False,),
    "n_init": (1,),
}
"""What parameters may be that mean something else to this posterior."""
_EQUAL = ((1.0, 1.0), "dense")
_UNKNOWN: dict[str, tuple[Any, ...]] = {
    "sample_prior": _EQUAL,
    "bias_prior": _EQUAL,
    "noise_prior": _EQUAL,
    "pool_prior": _EQUAL,
    "intermediate_std": (1.0,),
    "margin": (1.0,),
    "acceleration": ("newton",),
}
"""Parameters that mean nothing to it, and how they are written where nobody chose them: first the default."""
