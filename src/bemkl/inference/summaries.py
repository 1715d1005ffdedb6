"""What the parts of a posterior tell each other, computed when asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.moments import Profile, WeightMoments
from bemkl.inference.posteriors import Output, PairPosterior
from bemkl.inference.symmetric import Symmetric
from bemkl.inference.thin import gram


class Predictor:
    r"""
    Moments of the predictor :math:`\eta = \boldsymbol{e}^\top \boldsymbol{g} + b` at the training samples of a block.

    Parameters
    ----------
    pair : PairPosterior
        The block's pair.
    weights : WeightMoments
        Moments of biases and kernel weights.
    """

    __slots__ = ("_pair", "_weights")

    def __init__(self, pair: PairPosterior, weights: WeightMoments) -> None:
        self._pair = pair
        self._weights = weights

    @property
    def mean(self) -> Array:
        """Means, shape (n_outputs, n_samples)."""
        mean: Array = self._weights.mean @ self._pair.intermediate_mean + self._weights.bias[:, None]
        return mean

    @property
    def variance(self) -> Array:
        r"""
        Variances, **summed over the samples**, shape (n_outputs,): no likelihood needs them one by one.

        .. math:: \sum_i \operatorname{Var} \eta_i = \operatorname{tr}(\Sigma_e\,\widetilde{\mathbf{G}\mathbf{G}^\top})
                  + \tilde{\boldsymbol e}^\top \Big(\sum_i \operatorname{Cov} \boldsymbol g_i\Big) \tilde{\boldsymbol e}
                  + 2\,\boldsymbol\Sigma_{eb}^\top \sum_i \tilde{\boldsymbol g}_i + N \Sigma_{bb}
        """
        pair, weights = self._pair, self._weights
        variance: Array = (
            pair.quadratic(weights.covariance)
            + pair.spread_along(weights.mean)
            + 2.0 * np.einsum("ml,lm->l", weights.cross, pair.intermediate_total)
            + pair.intermediate_mean.shape[2] * weights.bias_variance
        )
        return variance


class Evidence:
    """
    What a block says about its biases and the kernel weights: sums over its samples.

    Parameters
    ----------
    pair : PairPosterior
        The block's pair.
    output : Output
        The block's output factor.
    profile : callable
        Maps (n_outputs, n_samples) means of the predictor to the `Profile` of the likelihood there.
    """

    __slots__ = ("_output", "_pair", "profile")

    def __init__(self, pair: PairPosterior, output: Output, profile: Callable[[Array], Profile]) -> None:
        self._pair = pair
        self._output = output
        self.profile = profile

    @property
    def intermediate_mean(self) -> Array:
        """Mean of G, shape (n_outputs, n_kernels, n_samples)."""
        return self._pair.intermediate_mean

    @property
    def output_precision(self) -> Array:
        """Expected precisions of the targets, shape (n_outputs,)."""
        return self._output.precision

    @property
    def bias_precision(self) -> Array:
        """Precision that the samples give each bias, shape (n_outputs,)."""
        precision: Array = self._output.precision * self._output.target.shape[1]
        return precision

    @property
    def bias_kernel_precision(self) -> Array:
        """Precision that links each bias with the kernel weights, shape (n_outputs, n_kernels)."""
        precision: Array = self._output.precision[:, None] * self._pair.intermediate_total
        return precision

    @property
    def kernel_precision(self) -> Symmetric:
        """Precision that the samples give the kernel weights, of size n_kernels."""
        return self._pair.second_moment(self._output.precision)

    def kernel_curvature(self, curvature: Array) -> Symmetric:
        """
        Return the same where the means of the predictor have curvatures of their own.

        Parameters
        ----------
        curvature : ndarray of shape (n_outputs, n_samples)
            Curvature of each mean.

        Returns
        -------
        Symmetric
            A matrix of size n_kernels.
        """
        roots = list(self._pair.intermediate_mean * np.sqrt(curvature)[:, None, :])
        spread = self._pair.spread(self._output.precision)
        return gram(roots, spread) + spread

    @property
    def bias_pull(self) -> Array:
        """Linear term of each bias, shape (n_outputs,)."""
        pull: Array = self._output.precision * self._output.target.sum(axis=1)
        return pull

    @property
    def kernel_pull(self) -> Array:
        """Linear term of the kernel weights, shape (n_kernels,)."""
        return sum_over_samples(self._pair.intermediate_mean, self._output.precision[:, None] * self._output.target)


def sum_over_samples(intermediate: Array, factors: Array) -> Array:
    """
    Sum intermediate outputs, each times a factor, over outputs and samples.

    Shapes: intermediate (n_outputs, n_kernels, n_samples), factors (n_outputs, n_samples); returns (n_kernels,).
    """
    total: Array = (intermediate @ factors[:, :, None])[:, :, 0].sum(axis=0)
    return total
