"""The exact lower bound on the log marginal likelihood, Eq. (2), as named terms."""

from __future__ import annotations

import numpy as np

from bemkl.inference.problem import Problem
from bemkl.inference.state import BlockState, State

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
    for index, block in enumerate(state.blocks):
        parts.append(_block_terms(problem, block))
        parts.append(problem.blocks[index].likelihood.bound_terms(block.output, state.predictor(index)))
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total


def _block_terms(problem: Problem, block: BlockState) -> dict[str, float]:
    """Evaluate the terms of λ, a, υ and G, with their entropies (derivation, section 4)."""
    lam, upsilon, pair = block.sample_precision, block.intermediate_precision, block.pair
    _, n_kernels, n_samples = pair.intermediate_mean.shape
    log_a = 0.5 * (lam.log_mean - _LOG_2PI - lam.mean * pair.sample_second)
    log_G = 0.5 * (n_kernels * n_samples * (upsilon.log_mean - _LOG_2PI) - upsilon.mean * pair.residual)
    return {
        "sample_precision": -lam.divergence(problem.priors.sample),
        "intermediate_precision": -upsilon.divergence(problem.priors.intermediate),
        "sample_weights": float(log_a.sum()),
        "intermediate": float(log_G.sum()),
        "pair_entropy": pair.entropy,
    }
