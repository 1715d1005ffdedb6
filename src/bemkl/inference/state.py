"""The variational posterior: one object a factor, grouped by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bemkl.distributions import Precision
from bemkl.inference.moments import PairContext, Predictor, WeightMoments
from bemkl.inference.problem import Problem
from bemkl.inference.protocols import Evidence, Output, PairPosterior, WeightPosterior


@dataclass(frozen=True, slots=True, eq=False)
class BlockState:
    r"""
    Factors that belong to one block.

    Parameters
    ----------
    sample_precision : Precision
        Factor of :math:`\lambda`, entries of shape (n_outputs, n_basis).
    intermediate_precision : Precision
        Factor of :math:`\upsilon`, entries of shape (n_outputs,), or one known value.
    pair : PairPosterior
        Factor of sample weights a and intermediate outputs G.
    output : Output
        Factor of the likelihood.
    """

    sample_precision: Precision
    intermediate_precision: Precision
    pair: PairPosterior
    output: Output

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.output.target.shape[0]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """
    The whole posterior. Any state can start a run.

    Parameters
    ----------
    blocks : tuple of BlockState
        Factors of each block.
    weights : WeightPosterior
        Factors that the blocks share: biases, kernel weights and their precisions.
    """

    blocks: tuple[BlockState, ...]
    weights: WeightPosterior

    def context(self, block: int) -> PairContext:
        """
        Collect what the pair of one block depends on.

        Parameters
        ----------
        block : int
            Which block.

        Returns
        -------
        PairContext
            The expectations.
        """
        here = self.blocks[block]
        return pair_context(
            here.sample_precision, here.intermediate_precision, here.output, self.weights.moments(block)
        )

    def predictor(self, block: int) -> Predictor:
        r"""
        Moments of :math:`\eta = \boldsymbol e^\top \boldsymbol g + b` at the training samples of one block.

        .. math:: \sum_i \operatorname{Var} \eta_i = \operatorname{tr}(\Sigma_e\,\widetilde{\mathbf{G}\mathbf{G}^\top})
                  + \tilde{\boldsymbol e}^\top \Big(\sum_i \operatorname{Cov} \boldsymbol g_i\Big) \tilde{\boldsymbol e}
                  + 2\,\boldsymbol\Sigma_{eb}^\top \sum_i \tilde{\boldsymbol g}_i + N \Sigma_{bb}

        Parameters
        ----------
        block : int
            Which block.

        Returns
        -------
        Predictor
            Means, and variances summed over samples.
        """
        weights, pair = self.weights.moments(block), self.blocks[block].pair
        G = pair.intermediate_mean
        mean = weights.mean @ G + weights.bias[:, None]
        variance = (
            pair.quadratic(weights.covariance)
            + pair.spread_along(weights.mean)
            + 2.0 * np.einsum("ml,lm->l", weights.cross, G.sum(axis=2))
            + G.shape[2] * weights.bias_variance
        )
        return Predictor(mean, variance)

    def evidence(self) -> tuple[Evidence, ...]:
        """
        Collect what the blocks say about biases and kernel weights.

        Returns
        -------
        tuple of Evidence
            One a block.
        """
        return tuple(Evidence(block.pair, block.output) for block in self.blocks)


def pair_context(
    sample_precision: Precision, intermediate_precision: Precision, output: Output, weights: WeightMoments
) -> PairContext:
    """
    Collect what a pair depends on from the factors around it.

    Parameters
    ----------
    sample_precision : Precision
        Factor of the sample weights' precisions.
    intermediate_precision : Precision
        Factor of the intermediate outputs' precision.
    output : Output
        Factor of the likelihood.
    weights : WeightMoments
        Moments of biases and kernel weights.

    Returns
    -------
    PairContext
        The expectations.
    """
    return PairContext(
        sample_precision=sample_precision.mean,
        intermediate_precision=np.broadcast_to(intermediate_precision.mean, output.precision.shape),
        output_precision=output.precision,
        target=output.target,
        weights=weights,
    )


def check_state(problem: Problem, state: State) -> None:
    """
    Refuse a state that does not belong to a problem.

    Parameters
    ----------
    problem : Problem
        What is to be fitted.
    state : State
        Where to start.

    Raises
    ------
    ValueError
        If the number or the shapes of the blocks differ.
    """
    if not isinstance(state, State):
        raise ValueError(f"state: expected a State, got {state!r}. Pass the state of another fit, or leave it out.")
    expected = [
        (n_outputs, *block.stack.shape) for n_outputs, block in zip(problem.n_outputs, problem.blocks, strict=True)
    ]
    found = [(*block.pair.intermediate_mean.shape, block.pair.sample_mean.shape[1]) for block in state.blocks]
    if expected != found:
        raise ValueError(
            "state: blocks of shape (n_outputs, n_kernels, n_samples, n_basis) "
            f"{found} do not fit a problem with blocks of shape {expected}. Start from a state of the same problem."
        )
