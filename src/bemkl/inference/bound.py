"""The exact lower bound on the log marginal likelihood, Eq. (2), as named terms."""

from __future__ import annotations

import numpy as np

from bemkl.inference.block import BlockState
from bemkl.inference.problem import Problem
from bemkl.inference.state import State

_LOG_2PI = float(np.log(2.0 * np.pi))


def lower_bound_terms(problem: Problem, state: State) -> dict[str, float]:
    """
    Evaluate every term of the lower bound (derivation, section 4).

    Parameters
    ----------
    problem : Problem
        What is fitted.
    state : State
        Any posterior, also one between two updates of a sweep.

    Returns
    -------
    dict of str to float
        Terms in nats, summed over blocks and outputs; their sum is the bound.
    """
    parts = [state.weights.bound_terms(problem.priors)]
    for index, here in enumerate(state.observed().blocks):
        variance = here.predictor_variance(state.weights.moments(index))
        parts.append(_block_terms(problem, here))
        parts.append(here.block.likelihood.bound_terms(here.noise_precision, here.targets.fit, variance))
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total


def _block_terms(problem: Problem, here: BlockState) -> dict[str, float]:
    """Evaluate the terms of λ, a, υ and G, with their entropies (derivation, section 4)."""
    lam, upsilon, (n_kernels, n_samples, _) = here.sample_precision, here.intermediate_precision, here.block.shape
    log_a = 0.5 * (lam.log_mean - _LOG_2PI - lam.mean * here.sample.second)
    log_G = 0.5 * (n_kernels * n_samples * (upsilon.log_mean - _LOG_2PI) - upsilon.mean * here.residual)
    return {
        "sample_precision": -lam.divergence(problem.priors.sample),
        "intermediate_precision": -upsilon.divergence(problem.priors.intermediate),
        "sample_weights": float(log_a.sum()),
        "intermediate": float(log_G.sum()),
        "pair_entropy": here.pair_entropy,
    }
