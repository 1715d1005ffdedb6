"""Optimal factors q(a) and q(G) of one block for given expectations of their neighbours (paper, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.inference.graded import NEEDS_ROOT, GradedFactor, PrecisionFactor, scale_ratio
from bemkl.inference.mean_field import Intermediate, SampleWeights, sample_precision_factor
from bemkl.inference.moments import PairContext
from bemkl.inference.per_output import PerOutput
from bemkl.inference.protocols import Stack
from bemkl.inference.recent import recall_root


def sample_factor(
    stack: Stack,
    context: PairContext,
    mean_of: Callable[[int, PrecisionFactor | None], Array],
    previous: SampleWeights | None = None,
    staying: npt.NDArray[np.bool_] | None = None,
) -> SampleWeights:
    r"""
    Build q(a) with optimal covariances, Eq. (3), unless they stay, and means that the caller computes.

    The trace with the gram matrix follows from the diagonal, because the covariance times its inverse has the trace D:

    .. math:: \tilde\upsilon \operatorname{tr}(\mathbf{C}\,\Sigma(\boldsymbol a))
              = D - \tilde{\boldsymbol\lambda}^\top \operatorname{diag} \Sigma(\boldsymbol a)

    Shapes: staying (n_outputs,).
    """
    gram, lam, upsilon = stack.gram(), context.sample_precision, context.intermediate_precision
    mean, variance, diagonal = np.empty((3, *lam.shape))
    logdet, trace, scale = np.empty((3, len(lam)))
    for o in range(len(lam)):
        factor: PrecisionFactor | None = None
        if previous is not None and staying is not None and staying[o]:
            variance[o], logdet[o], trace[o] = previous.variance[o], previous.logdet[o], previous.trace[o]
            diagonal[o], scale[o] = previous.diagonal[o], previous.scale[o]
        else:
            factor = _precision_factor(stack, lam[o], upsilon[o])
            logdet[o], diagonal[o], scale[o] = factor.inverse_logdet, lam[o], upsilon[o]
        mean[o] = mean_of(o, factor)
        if factor is not None:
            variance[o] = factor.inverse_diagonal(overwrite=True)
            trace[o] = (len(gram) - lam[o] @ variance[o]) / upsilon[o]
    return SampleWeights(mean, variance, logdet, trace, diagonal, scale)


def _precision_factor(stack: Stack, diagonal: Array, scale: float) -> PrecisionFactor:
    """Factor the inverse covariance of the sample weights of one output, by a root where their sum loses digits."""
    gram = stack.gram()
    if scale_ratio(gram, diagonal, float(scale), stack.shape[0]) > NEEDS_ROOT:
        return GradedFactor.of(recall_root(stack), diagonal, float(scale))
    return sample_precision_factor(gram, diagonal, scale)


def loss_of_staying(sample: SampleWeights, lam: Array, upsilon: Array) -> Array:
    r"""
    Bound what the lower bound loses if the covariances of a stay where their optimum has moved on.

    With x the eigenvalues of :math:`\Sigma^{1/2} \Delta\, \Sigma^{1/2}`, where :math:`\Delta` is the change of the
    precision, it loses :math:`\tfrac12 \sum (x - \log(1 + x))`. If no part of the precision shrinks by more than the
    share :math:`\rho`, that is at most (derivation, section 5)

    .. math:: \frac{1}{4 (1 - \rho)} \Big(\sum_d \frac{(\delta\tilde\lambda_d)^2}{\tilde\lambda_d}\,\Sigma_{dd}
              + \frac{(\delta\tilde\upsilon)^2}{\tilde\upsilon} \operatorname{tr}(\mathbf{C}\,\Sigma)\Big)

    Shapes: lam (n_outputs, n_basis), upsilon (n_outputs,); returns (n_outputs,).
    """
    parts, weights = np.column_stack([sample.diagonal, sample.scale]), np.column_stack([sample.variance, sample.trace])
    change = np.column_stack([lam, upsilon]) - parts
    # A part that was not there has no relative change.
    shares = np.divide(change, parts, out=np.full_like(parts, np.inf), where=parts > 0.0)
    squares: Array = np.einsum("ld,ld,ld->l", shares, change, weights)
    shrinks = -shares.min(axis=1)
    loss: Array = np.full(len(squares), np.inf)
    np.divide(0.25 * squares, 1.0 - np.maximum(shrinks, 0.0), out=loss, where=shrinks < 1.0)
    return loss


def intermediate_covariance(context: PairContext) -> tuple[PerOutput, Array]:
    r"""
    Covariances of the intermediate outputs, after Eq. (3).

    .. math:: \Sigma(\boldsymbol g)
              = (\tilde\upsilon\,\mathbf{I} + \tilde\tau\,\widetilde{\boldsymbol e \boldsymbol e^\top})^{-1}

    Outputs that share both precisions, as in classification, share one matrix.

    Shapes: returns logdet (n_outputs,).
    """
    precisions = np.column_stack([context.intermediate_precision, context.output_precision])
    distinct, which = precisions[:1], np.zeros(len(precisions), dtype=np.intp)
    if (precisions != distinct).any():
        distinct, which = np.unique(precisions, axis=0, return_inverse=True)
        which = which.reshape(-1)  # NumPy 2.0 keeps an axis here
    precise = [
        context.weights.second.times(float(tau)).plus_diagonal(upsilon, overwrite=True) for upsilon, tau in distinct
    ]
    found = [precision.inverse_and_logdet("intermediate outputs", overwrite=True) for precision in precise]
    logdet = np.array([logdet for _, logdet in found])
    return PerOutput([covariance for covariance, _ in found], which), logdet[which]


def intermediate_factor(projection: Array, covariance: PerOutput, logdet: Array, context: PairContext) -> Intermediate:
    r"""
    Optimal factor of the intermediate outputs for given sample weights, after Eq. (3).

    .. math:: \mu(\boldsymbol g_i) = \Sigma(\boldsymbol g) \left(\tilde\upsilon\,\mathbf{K}^i \tilde{\boldsymbol a}
              + \tilde\tau\,(\tilde{\boldsymbol e} \tilde f_i - \widetilde{\boldsymbol e b})\right)

    The paper prints the product of the means of e and b; the optimum has the mean of the product (derivation,
    erratum 1).

    Shapes: projection (n_outputs, n_kernels, n_samples), logdet (n_outputs,).
    """
    tau, upsilon = context.output_precision[:, None], context.intermediate_precision[:, None, None]
    slope = tau * (covariance @ context.weights.mean)
    offset = tau * covariance.times_rows(context.weights.bias_product.T)
    pull = slope[:, :, None] * context.target[:, None, :] - offset[:, :, None]
    return Intermediate(covariance @ (upsilon * projection) + pull, covariance, logdet)


def mean_coupling(covariance: PerOutput, upsilon: Array) -> PerOutput:
    r"""
    Matrices that couple the kernels once the means of G are eliminated (derivation, section 5).

    .. math:: \mathbf{M} = \tilde\upsilon (\mathbf{I} - \tilde\upsilon\,\Sigma(\boldsymbol g))

    The subtraction loses no more digits than the plain update of a does, which is pulled by G and held back by its
    projection.

    Shapes: upsilon (n_outputs,).
    """
    matrices = []
    for k, matrix in enumerate(covariance.distinct):
        here = float(upsilon[np.argmax(covariance.which == k)])
        matrices.append(matrix.times(-(here**2)).plus_diagonal(here, overwrite=True))
    return PerOutput(matrices, covariance.which)
