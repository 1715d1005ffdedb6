"""Prediction by a state, and what is kept of it for later ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from bemkl._numerics.linalg import Cholesky
from bemkl._numerics.threads import one_pool
from bemkl.arrays import Array, whole_number
from bemkl.inference.block import BlockState
from bemkl.inference.fitted import FittedBlock, Prediction
from bemkl.inference.matrices import LowRank, Symmetric, total
from bemkl.inference.moments import WeightMoments
from bemkl.inference.pair import NEEDS_ROOT
from bemkl.inference.problem import Problem
from bemkl.inference.protocols import Rule, Stack, WeightPosterior, require_plug_in
from bemkl.inference.rows import inform, weigh
from bemkl.inference.state import State, check_fit


def predict(problem: Problem, state: State, stack: Stack, *, block: int = 0, predictive: Rule = "exact") -> Prediction:
    r"""
    Predict new samples of one block.

    Under q, all intermediate outputs of a sample share one vector a, so with
    :math:`\boldsymbol u = \mathbf{K}_\star \tilde{\boldsymbol a}`

    .. math:: \operatorname{Var} \eta_\star = [1\;\boldsymbol u]\,\Sigma_{be}\,[1\;\boldsymbol u]^\top
              + E[1/\upsilon] \operatorname{tr} \widetilde{\boldsymbol e\boldsymbol e^\top}
              + \operatorname{tr}(\widetilde{\boldsymbol e\boldsymbol e^\top}\,
                \mathbf{K}_\star \Sigma_a \mathbf{K}_\star^\top)

    The rule that the paper prints keeps the first term only (derivation, erratum 3).

    Parameters
    ----------
    problem : Problem
        What was fitted.
    state : State
        Its posterior.
    stack : Stack
        Kernels between the new samples (rows) and the basis points of the block (columns).
    block : int
        Which block the new samples belong to.
    predictive : {"exact", "paper"}
        Exact moments under the posterior, or the rule that the paper prints.

    Returns
    -------
    Prediction
        Moments and probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl.inference import Block, Gaussian, Problem, run
    >>> from bemkl.kernels import DenseStack, gaussian
    >>> def stack_of(x, z):
    ...     return DenseStack(np.stack([gaussian(x, z, width) for width in (0.3, 1.0, 3.0)]))
    >>> x = np.linspace(0.0, 6.0, 30)[:, None]
    >>> problem = Problem([Block(stack_of(x, x), Gaussian(np.sin(x[:, 0])))])
    >>> new = np.array([[0.5], [4.5]])
    >>> predict(problem, run(problem).state, stack_of(new, x)).mean.round(1)
    array([[ 0.5],
           [-0.9]])
    """
    _check(problem, state, stack, block, predictive)
    return fitted_block(state, block).predict(stack, predictive, intermediate=True)


def fitted_blocks(state: State) -> tuple[FittedBlock, ...]:
    """
    Keep of a posterior what predictions and summaries of all blocks need, with intervals of kernel weights.

    Parameters
    ----------
    state : State
        The posterior.

    Returns
    -------
    tuple of FittedBlock
        The blocks without their samples.
    """
    integrated = integrated_weights(state)
    return tuple(fitted_block(state, t, integrated) for t in range(len(state.blocks)))


def integrated_weights(state: State) -> WeightPosterior:
    """
    Return the kernel weights as uncertain as they are where the sample weights may follow them.

    Parameters
    ----------
    state : State
        The posterior, in which kernel weights and sample weights are independent.

    Returns
    -------
    WeightPosterior
        Kernel weights with the same means.
    """
    n_rows = max(size for here in state.blocks for size in here.block.shape)
    with one_pool(n_rows), np.errstate(all="ignore"):
        information = [_information(here, state.weights.moments(t)) for t, here in enumerate(state.blocks)]
        return state.weights.integrated(information)


@dataclass(frozen=True, slots=True, eq=False)
class _Information:
    """What the samples of a block say about biases and kernel weights, with sample weights integrated out."""

    bias_precision: Array  # (n_outputs,)
    bias_kernel_precision: Array  # (n_outputs, n_kernels)
    kernel_precision: Symmetric  # size n_kernels


def _information(here: BlockState, weights: WeightMoments) -> _Information:
    r"""
    Integrate the sample weights of every output out (derivation, section 10).

    With the products :math:`\mathbf J^\top \mathbf W \mathbf J` of the derivatives
    :math:`\mathbf J = [\mathbf 1\; \mathbf H\; \mathbf K_{\tilde e}]` of the predictors by bias, kernel weights and
    sample weights, what is left for the first two is the Schur complement of
    :math:`\tilde\Lambda + \mathbf K_{\tilde e}^\top \mathbf W \mathbf K_{\tilde e}`.
    """
    rows, _ = here.rows.run(weigh, here.tau, here.upsilon, weights.mean, weights.bias)
    borders, kernels = [], []
    for output, precision in enumerate(here.sample_precision.mean):
        sums = rows.run(inform, output)[1]
        own = sums.samples + np.diag(precision)
        taken = Cholesky.of(own, "sample weights", overwrite=True).whitener()(sums.links)
        borders.append(sums.border - taken @ taken[0])
        kernels.append(sums.kernels + LowRank(np.zeros(len(taken) - 1), taken[1:], np.full(taken.shape[1], -1.0)))
    border = np.stack(borders)
    # Where a constant can be had from the kernels, what is left of the bias is rounding, of either sign.
    return _Information(np.maximum(border[:, 0], 0.0), border[:, 1:], total(kernels))


def fitted_block(state: State, block: int = 0, integrated: WeightPosterior | None = None) -> FittedBlock:
    """
    Keep of a posterior what the predictions and the summary of one block need.

    Parameters
    ----------
    state : State
        The posterior.
    block : int
        Which block.
    integrated : WeightPosterior, optional
        What intervals of kernel weights are read from, where they are wanted: see `integrated_weights`.

    Returns
    -------
    FittedBlock
        The block without its samples.
    """
    here = state.blocks[block]
    kernels, likelihood = here.block.kernels, here.block.likelihood.some(slice(0, 0))
    root = kernels.root if here.sample.scale_ratio(kernels.gram, kernels.n_kernels) > NEEDS_ROOT else None
    moments = state.weights.moments(block)
    posterior = replace(here.posterior(), location=None)
    shown = moments if integrated is None else integrated.moments(block)
    return FittedBlock(likelihood, kernels.gram, posterior, moments, shown, here.deviation(), root)


def _check(problem: Problem, state: State, stack: Stack, block: int, predictive: str) -> None:
    """Refuse what cannot be predicted."""
    check_fit(problem, state)
    require_plug_in("stack", stack, Stack, "DenseStack(kernels)")
    if predictive not in get_args(Rule):
        raise ValueError(f'predictive: expected "exact" or "paper", got {predictive!r}.')
    if whole_number("block", block, least=0) >= len(problem.blocks):
        raise ValueError(f"block: expected 0 to {len(problem.blocks) - 1}, got {block!r}.")
    n_kernels, _, n_basis = problem.blocks[block].shape
    if (stack.shape[0], stack.shape[2]) != (n_kernels, n_basis):
        raise ValueError(
            f"stack: expected shape ({n_kernels}, n_new, {n_basis}) for new samples against the basis points, "
            f"got {stack.shape}. New samples are rows, basis points are columns."
        )
