"""Prediction: the distribution of intermediate outputs and scores at new samples under the posterior."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from bemkl._numerics.threads import one_pool
from bemkl.arrays import Array, whole_number
from bemkl.inference.block import BlockPosterior
from bemkl.inference.moments import WeightMoments
from bemkl.inference.pair import NEEDS_ROOT
from bemkl.inference.problem import Problem
from bemkl.inference.protocols import AnyLikelihood, Rule, Stack, require_plug_in
from bemkl.inference.state import State, check_fit

Whitener = Callable[[Array], Array]
"""Multiplies rows with a root of a covariance."""

_BLOCK_BYTES = 64 * 2**20


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
    intermediate_variance : ndarray of shape (n_samples, n_kernels, n_outputs) or None
        Their variances, noise included; None where nobody asked for them.
    """

    mean: Array
    variance: Array
    probability: Array | None
    intermediate_mean: Array
    intermediate_variance: Array | None


@dataclass(frozen=True, slots=True, eq=False)
class FittedBlock:
    """
    All that predictions and summaries need of a fitted block, and no more.

    Parameters
    ----------
    likelihood : Likelihood
        Link between predictor and labels or responses, without samples.
    gram : ndarray of shape (n_basis, n_basis)
        Sum of the squared training kernels.
    posterior : BlockPosterior
        Posterior of the block.
    weights : WeightMoments
        Moments of its biases and kernel weights.
    deviation : ndarray of shape (n_outputs, n_kernels)
        How much the means of the intermediate outputs varied between the training samples.
    root : ndarray of shape (n_rows, n_basis), optional
        Root of the gram matrix, where kernels are so large that covariances need it.
    """

    likelihood: AnyLikelihood
    gram: Array
    posterior: BlockPosterior
    weights: WeightMoments
    deviation: Array
    root: Array | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.weights.bias)

    def project(self, stack: Stack) -> Array:
        r"""
        Means of the intermediate outputs, :math:`\boldsymbol u = \mathbf{K}_\star \tilde{\boldsymbol a}`.

        Parameters
        ----------
        stack : Stack
            Kernels between new samples (rows) and basis points (columns).

        Returns
        -------
        ndarray of shape (n_outputs, n_kernels, n_samples)
            The means.
        """
        return stack.project(self.posterior.sample.mean)

    def score(self, stack: Stack) -> Array:
        """
        Means of the predictor alone, which cost far less than its variances.

        Parameters
        ----------
        stack : Stack
            Kernels between new samples (rows) and basis points (columns).

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            The means.
        """
        score: Array = (self.weights.mean @ self.project(stack) + self.weights.bias[:, None]).T
        return score

    def predict(self, stack: Stack, predictive: Rule = "exact", *, intermediate: bool = False) -> Prediction:
        """
        Moments of the predictor; see the function `predict` for the equations.

        Parameters
        ----------
        stack : Stack
            Kernels between new samples (rows) and basis points (columns).
        predictive : {"exact", "paper"}
            Exact moments under the posterior, or the rule that the paper prints.
        intermediate : bool
            Whether the variances of the intermediate outputs are wanted too, for half as much work again.

        Returns
        -------
        Prediction
            Moments and probabilities.
        """
        # Most of the work is products of triangular matrices, which are SciPy's.
        with one_pool(max(stack.shape[0], stack.shape[2]), mostly_scipy=True):
            return self._predict(stack, predictive, intermediate=intermediate)

    def _predict(self, stack: Stack, predictive: Rule, *, intermediate: bool) -> Prediction:
        here, weights = self.posterior, self.weights
        upsilon = here.intermediate_precision
        noise = upsilon.inverse_mean if predictive == "exact" else 1.0 / upsilon.mean
        noise = np.broadcast_to(noise, (self.n_outputs,))

        u = self.project(stack)
        mean = weights.mean @ u + weights.bias[:, None]
        variance = (
            np.einsum("lmi,lmi->li", weights.covariance @ u, u)
            + 2.0 * np.einsum("ml,lmi->li", weights.cross, u)
            + weights.bias_variance[:, None]
        )
        if predictive == "exact":
            variance += self._trace(stack) + noise[:, None] * weights.second.trace()

        output = self.likelihood.predict(here.noise_precision, mean, variance, predictive)
        return Prediction(
            mean=output.mean.T,
            variance=output.variance.T,
            probability=None if output.probability is None else output.probability.T,
            intermediate_mean=u.transpose(2, 1, 0),
            intermediate_variance=(self._diagonal(stack) + noise[:, None, None]).transpose(2, 1, 0)
            if intermediate
            else None,
        )

    def _trace(self, stack: Stack) -> Array:
        r"""
        Return what the uncertainty of a adds to the variance of the predictor, shape (n_outputs, n_samples).

        With :math:`\Sigma_a = \mathbf{W}\mathbf{W}^\top` and
        :math:`\widetilde{\boldsymbol e\boldsymbol e^\top} = \sum_k s_k \boldsymbol h_k\boldsymbol h_k^\top`

        .. math:: \operatorname{tr}(\widetilde{\boldsymbol e\boldsymbol e^\top}\,\mathbf{K}^i \Sigma_a
                  \mathbf{K}^{i\top}) = \sum_k s_k\,\lVert\boldsymbol h_k^\top\mathbf{K}^i\mathbf{W}\rVert^2
        """
        squares = self.weights.second.squares("kernel weights")
        trace = np.empty((self.n_outputs, stack.shape[1]))
        for rows, block, whiteners in self._passes(stack):
            parts, weights = squares(block.reshape(len(block), -1))
            parts = parts.reshape(-1, *block.shape[1:])
            for o, whiten in whiteners:
                white = whiten(parts)
                trace[o, rows] = weights @ np.einsum("kid,kid->ki", white, white)
        return trace

    def _diagonal(self, stack: Stack) -> Array:
        r"""Diagonals of :math:`\mathbf{K}^i\Sigma_a\mathbf{K}^{i\top}`, shape (n_outputs, n_kernels, n_samples)."""
        diagonal = np.empty((self.n_outputs, *stack.shape[:2]))
        for rows, block, whiteners in self._passes(stack):
            for o, whiten in whiteners:
                white = whiten(block)
                diagonal[o, :, rows] = np.einsum("mid,mid->mi", white, white)
        return diagonal

    def _passes(self, stack: Stack) -> Iterator[tuple[slice, Array, list[tuple[int, Whitener]]]]:
        """Yield rows of the kernels with roots of covariances: one pass a group of outputs, with bounded memory."""
        sample, (n_kernels, n_samples, n_basis) = self.posterior.sample, stack.shape
        for outputs in _runs(self.n_outputs, 8 * n_basis * n_basis):
            numbers = range(outputs.start, outputs.stop)
            whiteners = [(o, sample.precision_factor(self.gram, o, self.root).whitener()) for o in numbers]
            for rows in _runs(n_samples, 8 * n_kernels * n_basis):
                yield rows, stack.rows(rows), whiteners


def _runs(count: int, size: int) -> Iterator[slice]:
    """Cut a range into runs whose items, of some bytes each, together fit into a block of memory."""
    step = max(1, _BLOCK_BYTES // size)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


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


def fitted_block(state: State, block: int = 0) -> FittedBlock:
    """
    Keep of a posterior what the predictions and the summary of one block need.

    Parameters
    ----------
    state : State
        The posterior.
    block : int
        Which block.

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
    return FittedBlock(likelihood, kernels.gram, posterior, moments, here.deviation(), root)


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
