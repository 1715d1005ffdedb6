"""The marginal posterior for the estimators: sample weights integrated out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bemkl.estimators.fitting import Effort, fit_one
from bemkl.estimators.posteriors import Learned, Samples, Targets
from bemkl.marginal.effects import kinds_of
from bemkl.marginal.fit import MarginalFit, Training, fit
from bemkl.registry import FUNCTION_PRIORS, find

_MOST_SAMPLES = 15_000
"""Samples without landmarks: some six square matrices of them are held, 11 GB for these."""
_NEGLIGIBLE = 1e-6
"""Share of the largest entry of a kernel up to which negative eigenvalues are rounding."""


class Marginal:
    """One marginal fit of all outputs."""

    def __init__(self, estimator: Any, targets: Targets, effort: Effort) -> None:
        by_evidence = FUNCTION_PRIORS | {"evidence": next(iter(FUNCTION_PRIORS.values()))}
        find("function_prior", estimator.function_prior, by_evidence)
        self._names = tuple(FUNCTION_PRIORS) if estimator.function_prior == "evidence" else (estimator.function_prior,)
        for name, known in _KNOWN.items():
            value = getattr(estimator, name)
            if not any(value is choice or (isinstance(value, str | int) and value == choice) for choice in known):
                shown = " or ".join(map(repr, known))
                raise ValueError(
                    f"{name}: the marginal posterior knows {shown}, got {value!r}. Choose that, or take "
                    'posterior="mean_field".'
                )
        self._sparse = estimator.kernel_prior == "sparse"
        self._observed, self._effort = targets.observed(), effort
        self._n_samples = targets.n_samples

    def learn(self, samples: Samples, rng: np.random.Generator) -> Learned:
        """Fit to training samples under each prior on functions, and keep the one with the highest evidence."""
        if samples.landmarks is None and self._n_samples > _MOST_SAMPLES:
            size = 6 * 8 * self._n_samples**2 / 2**30
            raise ValueError(
                f"X: the marginal posterior of {self._n_samples} samples would take {size:.0f} GB without landmarks. "
                'Pass landmarks=500, or take posterior="mean_field".'
            )
        refuse_indefinite(samples)
        columns, functions, single = samples.source.kinds()
        training = Training(samples.stack, columns, kinds_of(columns, functions, single), samples.landmarks)
        found = []
        for name in self._names:
            found.append(fit_one(self._fit_under(training, name), name, self._n_samples, self._effort))
        best = max(found, key=lambda result: result.evidences[-1])
        return Learned(("fit",), (best.fitted,), best.fitted.posterior, best.lower_bounds, best.converged)

    def _fit_under(self, training: Training, name: str) -> Callable[[Any], MarginalFit]:
        def run(watch: Any) -> MarginalFit:
            return fit(
                training,
                self._observed,
                find("function_prior", name, FUNCTION_PRIORS),
                sparse=self._sparse,
                max_iter=self._effort.max_iter,
                tol=self._effort.tol,
                watch=watch,
            )

        return run


def refuse_indefinite(samples: Samples) -> None:
    """Refuse kernels that are no covariances, and name the first one."""
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
                    f"X: the marginal posterior needs kernels without negative eigenvalues, but "
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
"""What parameters may be that mean something else, or nothing, to this posterior."""
