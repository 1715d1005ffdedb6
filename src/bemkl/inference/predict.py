"""Prediction: the distribution of intermediate outputs and scores at new samples under the posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from bemkl.arrays import Array, whole_number
from bemkl.inference.problem import Problem, require_plug_in
from bemkl.inference.protocols import Rule, Stack
from bemkl.inference.state import State, check_state


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    r"""
    Moments at new samples, samples first.

    Parameters
    ----------
    mean : ndarray of shape (n_samples, n_outputs)
        Mean of the score :math:`f_\star` (classification) or response :math:`y_\star` (regression).
    variance : ndarray of shape (n_samples, n_outputs)
        Its variance, noise included.
    probability : ndarray of shape (n_samples, n_outputs) or None
        Probability of the label +1; None for regression.
    intermediate_mean : ndarray of shape (n_samples, n_kernels, n_outputs)
        Mean of the intermediate outputs :math:`\boldsymbol g_\star`.
    intermediate_variance : ndarray of shape (n_samples, n_kernels, n_outputs)
        Their variances, noise included.
    """

    mean: Array
    variance: Array
    probability: Array | None
    intermediate_mean: Array
    intermediate_variance: Array


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
    here, weights = state.blocks[block], state.weights.moments(block)
    pair, gram = here.pair, problem.blocks[block].stack.gram()
    upsilon = here.intermediate_precision
    noise = upsilon.inverse_mean if predictive == "exact" else 1.0 / upsilon.mean
    noise = np.broadcast_to(noise, (here.n_outputs,))

    u = stack.project(pair.sample_mean)
    mean = weights.mean @ u + weights.bias[:, None]
    variance = (
        np.einsum("lmi,lmi->li", weights.covariance @ u, u)
        + 2.0 * np.einsum("ml,lmi->li", weights.cross, u)
        + weights.bias_variance[:, None]
    )
    spread = np.empty_like(u)
    for o in range(here.n_outputs):
        spread[o], trace = stack.quadratic(pair.sample_covariance(gram, o), weights.second)
        if predictive == "exact":
            variance[o] += trace + noise[o] * weights.second.trace()

    output = problem.blocks[block].likelihood.predict(here.output, mean, variance, predictive)
    return Prediction(
        mean=output.mean.T,
        variance=output.variance.T,
        probability=None if output.probability is None else output.probability.T,
        intermediate_mean=u.transpose(2, 1, 0),
        intermediate_variance=(spread + noise[:, None, None]).transpose(2, 1, 0),
    )


def _check(problem: Problem, state: State, stack: Stack, block: int, predictive: str) -> None:
    """Refuse what cannot be predicted."""
    check_state(problem, state)
    require_plug_in("stack", stack)
    if predictive not in get_args(Rule):
        raise ValueError(f'predictive: expected "exact" or "paper", got {predictive!r}.')
    if whole_number("block", block, least=0) >= len(problem.blocks):
        raise ValueError(f"block: expected 0 to {len(problem.blocks) - 1}, got {block!r}.")
    n_kernels, _, n_basis = problem.blocks[block].stack.shape
    if (stack.shape[0], stack.shape[2]) != (n_kernels, n_basis):
        raise ValueError(
            f"stack: expected shape ({n_kernels}, n_new, {n_basis}) for new samples against the basis points, "
            f"got {stack.shape}. New samples are rows, basis points are columns."
        )
