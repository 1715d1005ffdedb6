"""Optimal factors q(a) and q(G) of one block for given expectations of their neighbours (paper, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.mean_field import Intermediate, SampleWeights, sample_covariance
from bemkl.inference.moments import PairContext
from bemkl.inference.protocols import Stack
from bemkl.linalg import inverse_and_logdet


def sample_factor(stack: Stack, context: PairContext, mean_of: Callable[[slice, Array], Array]) -> SampleWeights:
    """
    Build q(a) with optimal covariances, Eq. (3), and means that the caller computes while the covariances are there.

    Outputs are treated in groups whose covariances together are no larger than the stack.

    Parameters
    ----------
    stack : Stack
        Training kernels.
    context : PairContext
        Expectations of the neighbours.
    mean_of : callable
        Takes a slice of outputs and their covariances, shape (n_group, n_basis, n_basis); returns their means.

    Returns
    -------
    SampleWeights
        The factor.
    """
    n_kernels, n_samples, n_basis = stack.shape
    gram, group = stack.gram(), max(1, n_kernels * n_samples // n_basis)
    lam, upsilon = context.sample_precision, context.intermediate_precision
    parts = []
    for first in range(0, len(lam), group):
        outputs = slice(first, first + group)
        found = [sample_covariance(gram, *recipe) for recipe in zip(lam[outputs], upsilon[outputs], strict=True)]
        covariances = np.stack([covariance for covariance, _ in found])
        variance = np.diagonal(covariances, axis1=1, axis2=2)
        logdet = np.array([value for _, value in found])
        trace = np.einsum("de,lde->l", gram, covariances)
        parts.append((mean_of(outputs, covariances), variance, logdet, trace))
    mean, variance, logdet, trace = (np.concatenate(part) for part in zip(*parts, strict=True))
    return SampleWeights(mean, variance, logdet, trace, diagonal=lam, scale=upsilon)


def intermediate_covariance(context: PairContext) -> tuple[Array, Array]:
    r"""
    Covariances of the intermediate outputs, after Eq. (3).

    .. math:: \Sigma(\boldsymbol g)
              = (\tilde\upsilon\,\mathbf{I} + \tilde\tau\,\widetilde{\boldsymbol e \boldsymbol e^\top})^{-1}

    Outputs that share both precisions, as in classification, share one matrix.

    Parameters
    ----------
    context : PairContext
        Expectations of the neighbours.

    Returns
    -------
    covariance : ndarray of shape (n_outputs, n_kernels, n_kernels)
        The covariances.
    logdet : ndarray of shape (n_outputs,)
        Their log-determinants.
    """
    second = context.weights.second
    precisions = np.column_stack([context.intermediate_precision, context.output_precision])
    distinct, which = np.unique(precisions, axis=0, return_inverse=True)
    found = [inverse_and_logdet(upsilon * np.eye(len(second)) + tau * second) for upsilon, tau in distinct]
    logdet = np.array([value for _, value in found])[which]
    if len(found) == 1:
        return np.broadcast_to(found[0][0], (len(precisions), *second.shape)), logdet
    return np.stack([matrix for matrix, _ in found])[which], logdet


def intermediate_factor(projection: Array, covariance: Array, logdet: Array, context: PairContext) -> Intermediate:
    r"""
    Optimal factor of the intermediate outputs for given sample weights, after Eq. (3).

    .. math:: \mu(\boldsymbol g_i) = \Sigma(\boldsymbol g) \left(\tilde\upsilon\,\mathbf{K}^i \tilde{\boldsymbol a}
              + \tilde\tau\,(\tilde{\boldsymbol e} \tilde f_i - \widetilde{\boldsymbol e b})\right)

    The paper prints the product of the means of e and b; the optimum has the mean of the product (derivation,
    erratum 1).

    Parameters
    ----------
    projection : ndarray of shape (n_outputs, n_kernels, n_samples)
        Kernels times the mean of the sample weights.
    covariance : ndarray of shape (n_outputs, n_kernels, n_kernels)
        Optimal covariances of G.
    logdet : ndarray of shape (n_outputs,)
        Their log-determinants.
    context : PairContext
        Expectations of the neighbours.

    Returns
    -------
    Intermediate
        The factor.
    """
    upsilon = context.intermediate_precision[:, None, None]
    mean = covariance @ (upsilon * projection) + target_pull(covariance, context)
    return Intermediate(mean, covariance, logdet)


def target_pull(covariance: Array, context: PairContext) -> Array:
    r"""
    Part of the mean of G that comes from the targets.

    .. math:: \tilde\tau\,\Sigma(\boldsymbol g)\,(\tilde{\boldsymbol e} \tilde f_i - \widetilde{\boldsymbol e b})

    Parameters
    ----------
    covariance : ndarray of shape (n_outputs, n_kernels, n_kernels)
        Covariances of the intermediate outputs.
    context : PairContext
        Expectations of the neighbours.

    Returns
    -------
    ndarray of shape (n_outputs, n_kernels, n_samples)
        The pull; of rank two an output, so it costs no product with a full matrix.
    """
    tau = context.output_precision[:, None]
    slope = tau * (covariance @ context.weights.mean)
    offset = tau * np.einsum("lmn,nl->lm", covariance, context.weights.bias_product)
    return slope[:, :, None] * context.target[:, None, :] - offset[:, :, None]


def mean_coupling(covariance: Array, context: PairContext) -> Array:
    r"""
    Matrix that couples the kernels once the means of G are eliminated (derivation, section 5).

    .. math:: \mathbf{M} = \tilde\upsilon (\mathbf{I} - \tilde\upsilon\,\Sigma(\boldsymbol g))
              = \tilde\upsilon\tilde\tau\,\Sigma(\boldsymbol g)\,\widetilde{\boldsymbol e\boldsymbol e^\top}

    Parameters
    ----------
    covariance : ndarray of shape (n_outputs, n_kernels, n_kernels)
        Covariances of the intermediate outputs, possibly one broadcast to all outputs.
    context : PairContext
        Expectations of the neighbours.

    Returns
    -------
    ndarray of shape (n_outputs, n_kernels, n_kernels)
        The matrices, broadcast likewise.
    """
    scale = (context.intermediate_precision * context.output_precision)[:, None, None]
    if covariance.strides[0] == 0:  # shared because all outputs have the same precisions
        return np.broadcast_to(scale[0] * (covariance[0] @ context.weights.second), covariance.shape)
    return scale * (covariance @ context.weights.second)
