"""The paper's algorithm as it is printed: a random start, 200 plain iterations, one set of kernel weights."""

from __future__ import annotations

import numpy as np

from bemkl.distributions import PointMass
from bemkl.estimators.parameters import gamma_prior
from bemkl.inference import Block, FittedBlock, Plain, Priors, Probit, Problem, State, ascend, fitted_block
from bemkl.inference.protocols import Stack
from bemkl.inference.state import placed_block
from bemkl.inference.weights.free import independent_weights

SWEEPS = 200
"""Number of iterations in the paper."""


def fit_as_printed(
    stack: Stack,
    likelihood: Probit,
    *,
    kernel_prior: str,
    intermediate_std: float,
    rng: np.random.Generator,
) -> FittedBlock:
    """Fit a classifier from a random start, as the author's program does."""
    priors = Priors(kernel=gamma_prior("kernel_prior", kernel_prior), intermediate=PointMass.from_std(intermediate_std))
    problem = Problem([Block(stack, likelihood)], priors, pair=Plain())
    fitted = ascend(problem, random_start(problem, rng), max_iter=SWEEPS, tol=None)
    return fitted_block(fitted.state)


def random_start(problem: Problem, rng: np.random.Generator) -> State:
    """
    Return a posterior like the one that the author's program starts from.

    Sample weights are standard normal; intermediate outputs lie beyond the margin by a random size, on the side of the
    label; kernel weights are 1; all covariances are identities.
    """
    (block,) = problem.blocks
    assert isinstance(block.likelihood, Probit)
    n_kernels, n_samples, n_basis = block.shape
    n_outputs, sign = block.n_outputs, np.sign(block.likelihood.start().target)
    size = np.abs(rng.normal(size=(n_outputs, n_kernels, n_samples))) + block.likelihood.margin
    mean = np.concatenate([np.zeros(n_outputs), np.ones(n_kernels)])
    weights = independent_weights(mean, np.ones(len(mean)), problem.n_outputs, problem.priors)
    a = rng.normal(size=(n_outputs, n_basis))
    return State((placed_block(problem, weights, 0, a, sign[:, None, :] * size),), weights)
