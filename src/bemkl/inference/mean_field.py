r"""The mean-field factors q(a) q(G) of one block, and their covariances (paper, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.moments import PairContext
from bemkl.linalg import inverse_and_logdet


@dataclass(frozen=True, slots=True, eq=False)
class SampleWeights:
    r"""
    Gaussian factor of the sample weights a, one an output.

    Covariances have the form :math:`(\operatorname{diag}(\boldsymbol r) + s\,\mathbf{C})^{-1}` with C the stack's gram
    matrix. Only r and s are kept, with what the fit needs of the matrix: the dense covariances of many outputs may
    not fit in memory.

    Parameters
    ----------
    mean : ndarray of shape (n_outputs, n_basis)
        Means.
    variance : ndarray of shape (n_outputs, n_basis)
        Diagonals of the covariances.
    logdet : ndarray of shape (n_outputs,)
        Log-determinants of the covariances.
    trace : ndarray of shape (n_outputs,)
        Traces of gram matrix times covariance.
    diagonal : ndarray of shape (n_outputs, n_basis)
        The vectors r.
    scale : ndarray of shape (n_outputs,)
        The factors s.
    """

    mean: Array
    variance: Array
    logdet: Array
    trace: Array
    diagonal: Array
    scale: Array

    @classmethod
    def unit(cls, mean: Array, gram: Array) -> SampleWeights:
        """
        Return a factor with the given means and identity covariances.

        Parameters
        ----------
        mean : ndarray of shape (n_outputs, n_basis)
            Means.
        gram : ndarray of shape (n_basis, n_basis)
            Gram matrix of the stack.

        Returns
        -------
        SampleWeights
            The factor.
        """
        n_outputs = len(mean)
        ones, zeros = np.ones_like(mean), np.zeros(n_outputs)
        return cls(mean, ones, zeros, np.full(n_outputs, gram.trace()), ones, zeros)


@dataclass(frozen=True, slots=True, eq=False)
class Intermediate:
    """
    Gaussian factor of the intermediate outputs G; all samples of an output have one covariance.

    Parameters
    ----------
    mean : ndarray of shape (n_outputs, n_kernels, n_samples)
        Means.
    covariance : ndarray of shape (n_outputs, n_kernels, n_kernels)
        Covariances, possibly one broadcast to all outputs.
    logdet : ndarray of shape (n_outputs,)
        Their log-determinants.
    """

    mean: Array
    covariance: Array
    logdet: Array


@dataclass(frozen=True, slots=True, eq=False)
class MeanFieldPair:
    """
    The pair (a, G) with independent factors.

    Parameters
    ----------
    sample : SampleWeights
        Factor of a.
    intermediate : Intermediate
        Factor of G.
    projection : ndarray of shape (n_outputs, n_kernels, n_samples)
        Kernels times the mean of a.
    """

    sample: SampleWeights
    intermediate: Intermediate
    projection: Array

    @property
    def sample_mean(self) -> Array:
        """Mean of a."""
        return self.sample.mean

    @property
    def sample_second(self) -> Array:
        """Second moments E[a²]."""
        return self.sample.mean**2 + self.sample.variance

    @property
    def intermediate_mean(self) -> Array:
        """Mean of G."""
        return self.intermediate.mean

    @property
    def _n_samples(self) -> int:
        return self.projection.shape[2]

    @property
    def residual(self) -> Array:
        """Expected squared distance of G from its projections, an output."""
        distance = np.square(self.intermediate.mean - self.projection).sum(axis=(1, 2))
        spread = np.trace(self.intermediate.covariance, axis1=1, axis2=2)
        residual: Array = distance + self._n_samples * spread + self.sample.trace
        return residual

    @property
    def entropy(self) -> float:
        """Entropy of both factors."""
        logdet = self.sample.logdet + self._n_samples * self.intermediate.logdet
        size = self.sample.mean.size + self.projection.size
        return float(0.5 * logdet.sum() + 0.5 * size * (1.0 + np.log(2.0 * np.pi)))

    def second_moment(self, weights: Array) -> Array:
        """
        Sum E[G Gᵀ] over the outputs.

        Parameters
        ----------
        weights : ndarray of shape (n_outputs,)
            Weight of each output in the sum.

        Returns
        -------
        ndarray of shape (n_kernels, n_kernels)
            The sum.
        """
        spread = np.tensordot(self._n_samples * weights, self.intermediate.covariance, axes=1)
        for weight, mean in zip(weights, self.intermediate.mean, strict=True):
            spread += weight * (mean @ mean.T)
        return spread

    def quadratic(self, matrix: Array) -> Array:
        """
        Sum the expected quadratic form of the intermediate outputs over the samples.

        Parameters
        ----------
        matrix : ndarray of shape (n_kernels, n_kernels)
            Symmetric matrix of the form.

        Returns
        -------
        ndarray of shape (n_outputs,)
            The sums.
        """
        mean = self.intermediate.mean
        location = np.einsum("lmi,lmi->l", matrix @ mean, mean)
        form: Array = location + self._n_samples * np.einsum("mn,lmn->l", matrix, self.intermediate.covariance)
        return form

    def spread_along(self, direction: Array) -> Array:
        """
        Sum the variance of a linear combination of the intermediate outputs over the samples.

        Parameters
        ----------
        direction : ndarray of shape (n_kernels,)
            Coefficients of the combination.

        Returns
        -------
        ndarray of shape (n_outputs,)
            The sums.
        """
        spread: Array = self._n_samples * (self.intermediate.covariance @ direction) @ direction
        return spread

    def sample_covariance(self, gram: Array, output: int) -> Array:
        """
        Rebuild the covariance of a for one output.

        Parameters
        ----------
        gram : ndarray of shape (n_basis, n_basis)
            Gram matrix of the training stack.
        output : int
            Which output.

        Returns
        -------
        ndarray of shape (n_basis, n_basis)
            The covariance.
        """
        covariance, _ = sample_covariance(gram, self.sample.diagonal[output], self.sample.scale[output])
        return covariance


def sample_covariance(gram: Array, diagonal: Array, scale: float) -> tuple[Array, float]:
    r"""
    Covariance of the sample weights of one output, Eq. (3).

    .. math:: \Sigma(\boldsymbol a)
              = (\operatorname{diag}(\tilde{\boldsymbol\lambda}) + \tilde\upsilon\,\mathbf{C})^{-1}

    Parameters
    ----------
    gram : ndarray of shape (n_basis, n_basis)
        C, the sum of squared kernels.
    diagonal : ndarray of shape (n_basis,)
        Expected precisions of the sample weights.
    scale : float
        Expected precision of the intermediate outputs.

    Returns
    -------
    covariance : ndarray of shape (n_basis, n_basis)
        The covariance.
    logdet : float
        Its log-determinant.
    """
    precision = scale * gram
    precision[np.diag_indices_from(precision)] += diagonal
    return inverse_and_logdet(precision)


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


def intermediate_factor(projection: Array, context: PairContext) -> Intermediate:
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
    context : PairContext
        Expectations of the neighbours.

    Returns
    -------
    Intermediate
        The factor.
    """
    covariance, logdet = intermediate_covariance(context)
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
