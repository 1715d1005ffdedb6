"""The paper's posterior for the estimators: one factor each for sample weights, outputs and kernel weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bemkl.estimators.fitting import Effort, fit_problems
from bemkl.estimators.parameters import find_strategies, gamma_prior, read_priors
from bemkl.estimators.posteriors import Learned, Samples, Tasks, joined
from bemkl.inference import Block, Posterior, Problem, fitted_blocks
from bemkl.inference.state import check_fit


class MeanField:
    """Mean-field fits, one a likelihood, or one of all in which weights are shared or pooled."""

    def __init__(self, estimator: Any, tasks: Tasks, effort: Effort) -> None:
        given = estimator.get_params(deep=False)
        if given.get("predictive", "exact") not in ("exact", "paper"):
            raise ValueError(f'predictive: expected "exact" or "paper", got {estimator.predictive!r}.')
        self._fits, self._effort = [targets.fits() for targets in tasks.targets], effort
        # Tasks may have their weights in common, and so may the classes of one set of samples.
        pooled = tasks.sharing == "pooled" or self._fits[0].pooled
        self._together = pooled or tasks.sharing == "shared"
        self._names = self._fits[0].names if len(self._fits) == 1 else list(tasks.names)
        pool_prior = gamma_prior("pool_prior", estimator.pool_prior) if pooled else None
        self._strategies = find_strategies(estimator.weights, estimator.acceleration, pool_prior=pool_prior)
        self._priors = read_priors(estimator)
        self._goes_on = "warm_start" in given
        self._given = getattr(estimator, "posterior_", None) if given.get("warm_start", False) else None

    def learn(self, samples: Sequence[Samples], rng: np.random.Generator) -> Learned:
        """Fit to one set of training samples or several."""
        blocks = [
            Block(here.stack, likelihood, landmarks=True)
            for here, fits in zip(samples, self._fits, strict=True)
            for likelihood in fits.likelihoods
        ]
        groups = [blocks] if self._together else [[block] for block in blocks]
        problems = [Problem(group, self._priors, **self._strategies) for group in groups]
        names = ["fit"] if self._together else self._names
        starts = self._starts(problems)
        results = fit_problems(problems, names, starts, self._effort, rng, goes_on=self._goes_on)
        kept = [(fitted_blocks(result.state), result.state.posterior()) for result in results]
        posteriors = tuple(posterior for _, posterior in kept)
        return Learned(
            names=tuple(self._names),
            fitted=tuple(block for blocks, _ in kept for block in blocks),
            posterior=posteriors[0] if len(posteriors) == 1 else posteriors,
            converged=all(result.converged for result in results),
            lower_bounds=joined([result.lower_bounds for result in results]),
            alike=self._together and self._strategies["weights"].shared,
        )

    def _starts(self, problems: Sequence[Problem]) -> Sequence[Posterior | None]:
        """Take the last posteriors for a warm start."""
        if self._given is None:
            return [None] * len(problems)
        states = self._given if isinstance(self._given, tuple) else (self._given,)
        try:
            for problem, state in zip(problems, states, strict=True):
                check_fit(problem, state)
        except (ValueError, AttributeError):
            raise ValueError(
                "warm_start: the last fit was of another problem (other numbers of samples, kernels, classes or "
                "outputs, or another way to learn), so it cannot go on. Set warm_start=False, or fit a clone."
            ) from None
        return states
