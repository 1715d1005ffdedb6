"""What is kept of a fitted block: the distribution of outputs and scores at new samples, and its kernel weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bemkl._numerics.threads import one_pool
from bemkl.arrays import Array
from bemkl.inference.block import BlockPosterior
from bemkl.inference.moments import WeightMoments
from bemkl.inference.protocols import AnyLikelihood, Rule, Stack
from bemkl.inference.sample_spread import SampleSpread


class Combined(Protocol):
    """Kernels that can be summed with weights."""

    def combine(self, weights: Array) -> Array:
        """Return the sum with (n_kernels,) weights, shape (n_samples, n_basis)."""


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
    integrated : WeightMoments
        The same with the sample weights integrated out, which intervals are read from.
    deviation : ndarray of shape (n_outputs, n_kernels)
        How much the means of the intermediate outputs varied between the training samples.
    root : ndarray of shape (n_rows, n_basis), optional
        Root of the gram matrix, where kernels are so large that covariances need it.
    """

    likelihood: AnyLikelihood
    gram: Array
    posterior: BlockPosterior
    weights: WeightMoments
    integrated: WeightMoments
    deviation: Array
    root: Array | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.weights.bias)

    @property
    def n_basis(self) -> int:
        """Number of basis points."""
        return len(self.gram)

    @property
    def kernel_weights(self) -> Array:
        """Expected kernel weights, shape (n_kernels,)."""
        return self.weights.mean

    @property
    def weight_deviations(self) -> Array:
        """Standard deviations of the kernel weights, shape (n_kernels,)."""
        deviation: Array = np.sqrt(self.integrated.covariance.diagonal())
        return deviation

    @property
    def inclusion(self) -> Array | None:
        """Probabilities that kernels are on, shape (n_kernels,), where there are such."""
        return None if self.integrated.marginals is None else self.integrated.marginals.inclusion

    @property
    def signal(self) -> Array:
        """How much each kernel's contributions vary between training samples, shape (n_outputs, n_kernels)."""
        return np.abs(self.weights.mean) * self.deviation

    @property
    def relevance(self) -> None:
        """None: no view was left out."""
        return None

    @property
    def dual(self) -> Array:
        """Expected sample weights, shape (n_outputs, n_basis)."""
        return self.posterior.sample.mean

    @property
    def intercept(self) -> Array:
        """Expected biases, shape (n_outputs,)."""
        return self.weights.bias

    @property
    def n_samples(self) -> int:
        """Number of training samples."""
        return self.posterior.n_samples

    @property
    def never_negative(self) -> bool:
        """Whether no kernel weight can be below zero."""
        marginals = self.integrated.marginals
        return marginals is not None and bool((marginals.quantile(np.zeros_like(self.weights.mean)) >= 0.0).all())

    def weight_interval(self, coverage: float) -> tuple[Array, Array]:
        """
        Central intervals of the kernel weights.

        Parameters
        ----------
        coverage : float
            Probability of the intervals.

        Returns
        -------
        low : ndarray of shape (n_kernels,)
            Their lower ends.
        high : ndarray of shape (n_kernels,)
            Their upper ends.
        """
        return self.integrated.interval(coverage)

    def sum_interval(self, groups: Array, coverage: float) -> tuple[Array, Array]:
        """
        Central intervals of sums of kernel weights.

        Parameters
        ----------
        groups : ndarray of shape (n_kernels, n_groups)
            Ones where a kernel belongs to a group, zeros elsewhere.
        coverage : float
            Probability of the intervals.

        Returns
        -------
        low : ndarray of shape (n_groups,)
            Their lower ends.
        high : ndarray of shape (n_groups,)
            Their upper ends.
        """
        return self.integrated.sum_interval(groups, coverage)

    def combine(self, stack: Combined) -> Array:
        """
        Sum kernels with their expected weights.

        Parameters
        ----------
        stack : DenseStack
            Kernels between new samples (rows) and basis points (columns).

        Returns
        -------
        ndarray of shape (n_samples, n_basis)
            The sum.
        """
        return stack.combine(self.weights.mean)

    def contributions(self, stack: Stack) -> Array:
        """
        What each kernel adds to the predictor.

        Parameters
        ----------
        stack : Stack
            Kernels between new samples (rows) and basis points (columns).

        Returns
        -------
        ndarray of shape (n_outputs, n_kernels, n_samples)
            Expected weights times intermediate outputs.
        """
        return self.weights.mean[:, None] * self.project(stack)

    def predictor(self, rule: Rule, max_bytes: int) -> Callable[[Stack], Prediction]:
        """
        Return what predicts one block of new samples after the other.

        Parameters
        ----------
        rule : {"exact", "paper"}
            Exact moments under the posterior, or the rule that the paper prints.
        max_bytes : int
            Memory for what is kept from one block to the next.

        Returns
        -------
        callable
            Maps kernels between new samples (rows) and basis points (columns) to a Prediction.
        """
        spread = self._spread(max_bytes)
        return lambda stack: self._predict(stack, rule, spread, intermediate=False)

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
        return self._predict(stack, predictive, self._spread(0), intermediate=intermediate)

    def _spread(self, max_bytes: int) -> SampleSpread:
        return SampleSpread(self.posterior.sample, self.gram, self.root, self.weights, max_bytes)

    def _predict(self, stack: Stack, predictive: Rule, spread: SampleSpread, *, intermediate: bool) -> Prediction:
        # Most of the work is systems with triangular matrices, which are SciPy's.
        with one_pool(max(stack.shape[0], stack.shape[2]), mostly_scipy=True):
            return self._moments(stack, predictive, spread, intermediate=intermediate)

    def _moments(self, stack: Stack, predictive: Rule, spread: SampleSpread, *, intermediate: bool) -> Prediction:
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
            variance += noise[:, None] * (weights.covariance.trace() + weights.mean @ weights.mean)
            variance += spread.trace(stack, variance)

        output = self.likelihood.predict(here.noise_precision, mean, variance, predictive)
        return Prediction(
            mean=output.mean.T,
            variance=output.variance.T,
            probability=None if output.probability is None else output.probability.T,
            intermediate_mean=u.transpose(2, 1, 0),
            intermediate_variance=(spread.diagonal(stack) + noise[:, None, None]).transpose(2, 1, 0)
            if intermediate
            else None,
        )
