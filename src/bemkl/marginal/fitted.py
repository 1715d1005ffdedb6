"""What a fit keeps: kernel weights with their uncertainty, and a predictor of new samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.marginal.functions import Predictor
from bemkl.marginal.outputs import Output, Predicted
from bemkl.marginal.relevance import Relevance

Positions = npt.NDArray[np.intp]

_FARTHEST = 500.0
"""Most that the logarithm of a weight moves in a draw: beyond, an interval has no end worth a number."""


class NewKernels(Protocol):
    """Kernels between new samples and basis points."""

    @property
    def values(self) -> npt.NDArray[np.floating]:
        """The matrices, shape (n_kernels, n_new, n_basis)."""

    @property
    def own(self) -> Array | None:
        """Similarities of the samples to themselves, shape (n_kernels, n_new); None if they are not known."""


@dataclass(frozen=True, slots=True, eq=False)
class MarginalPosterior:
    """
    Posterior of the kernel weights, by Laplace's approximation: logarithms of weights are sums of normal effects.

    Parameters
    ----------
    weights : ndarray of shape (n_kernels,)
        Weights at the maximum, with the amplitude in them.
    design : ndarray of shape (n_kernels, n_effects)
        Ones where the logarithm of a weight has an effect: of its columns, its function, its scope, itself.
    covariance : ndarray of shape (n_effects, n_effects)
        Posterior covariance of the effects, under the spreads at their maximum.
    spreads : dict of str to float
        Standard deviation of each kind of effects, learned unless the prior is sparse.
    bias_variance : float
        Prior variance of the bias, learned.
    steps : ndarray of shape (n_draws, 1 + n_effects)
        Draws of the logarithm of what all weights have in common and of the effects, less their values at the maximum.
        Spreads are drawn, too.
    sizes : ndarray of shape (n_kernels,)
        Prior variance that a weight of one gives a predictor, on average over the training samples.
    """

    weights: Array
    design: Array
    covariance: Array
    spreads: dict[str, float]
    bias_variance: float
    steps: Array
    sizes: Array

    def deviation(self) -> Array:
        """
        Return standard deviations of the weights, to first order.

        Returns
        -------
        ndarray of shape (n_kernels,)
            The deviations; where one is as large as its weight, the interval says more.
        """
        return self.weights * self._effect_deviation()

    def interval(self, coverage: float) -> tuple[Array, Array]:
        """
        Return central intervals of the weights, all positive.

        Parameters
        ----------
        coverage : float
            Probability of the intervals.

        Returns
        -------
        low : ndarray of shape (n_kernels,)
            Lower ends.
        high : ndarray of shape (n_kernels,)
            Upper ends.
        """
        return central(self.draws(), coverage)

    def draws(self) -> Array:
        """
        Return draws of the weights, always the same ones.

        Returns
        -------
        ndarray of shape (n_draws, n_kernels)
            The draws.
        """
        steps = self.steps[:, :1] + self.steps[:, 1:] @ self.design.T
        drawn: Array = self.weights * np.exp(np.clip(steps, -_FARTHEST, _FARTHEST))
        return drawn

    def shares(self, coverage: float = 0.95, groups: npt.ArrayLike | None = None) -> tuple[Array, Array, Array]:
        """
        Return the shares of kernels in the prior variance of the predictor, without the bias.

        That variance is a sum over the kernels with the prior "sum", so that a share says how much of a function is a
        kernel's. With the other priors on functions it says how large a kernel is in the combination.

        Parameters
        ----------
        coverage : float
            Probability of the intervals.
        groups : array_like of shape (n_groups, n_kernels), optional
            Ones for the kernels of each group, such as a view, to have the shares of groups.

        Returns
        -------
        share : ndarray of shape (n_kernels,) or (n_groups,)
            The shares at the maximum.
        low : ndarray of shape (n_kernels,) or (n_groups,)
            Lower ends of central intervals.
        high : ndarray of shape (n_kernels,) or (n_groups,)
            Upper ends.
        """
        inside = np.eye(len(self.weights)) if groups is None else np.asarray(groups, dtype=np.float64)
        variances = np.vstack([self.weights, self.draws()]) * self.sizes
        shares = variances @ inside.T / variances.sum(axis=1, keepdims=True)
        return shares[0], *central(shares[1:], coverage)

    def _effect_deviation(self) -> Array:
        variance = np.einsum("pq,qr,pr->p", self.design, self.covariance, self.design)
        deviation: Array = np.sqrt(np.maximum(variance, 0.0))
        return deviation


@dataclass(frozen=True, slots=True, eq=False)
class FittedProcess:
    """All that predictions and summaries need of a fit."""

    posterior: MarginalPosterior
    predictors: tuple[Predictor, ...]  # one a unit of outputs
    output: Output
    signal: Array  # (n_outputs, n_kernels): deviations of the contributions between training samples
    diagonal: Array = field(repr=False)  # (n_kernels,): k(x, x) where it is the same for all samples, 0 elsewhere
    n_samples: int = 0  # number of training samples
    own_root: Array | None = None  # (n_basis, n_basis): of the other kernels, where nobody knows k(x, x)
    varying: Array | None = None  # (n_kernels,): the weights of these other kernels, zero elsewhere
    relevance: Relevance = field(default_factory=Relevance)  # what views and kernels are worth

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.output.shift)

    @property
    def n_basis(self) -> int:
        """Number of basis points."""
        return len(self.predictors[0].dual)

    @property
    def kernel_weights(self) -> Array:
        """Weights of the kernels, shape (n_kernels,)."""
        return self.posterior.weights

    @property
    def weight_deviations(self) -> Array:
        """Their standard deviations, shape (n_kernels,)."""
        return self.posterior.deviation()

    @property
    def inclusion(self) -> None:
        """None: all kernels are on."""
        return None

    def weight_interval(self, coverage: float) -> tuple[Array, Array]:
        """Return central intervals of the weights. Shapes: returns (n_kernels,), (n_kernels,)."""
        return self.posterior.interval(coverage)

    def sum_interval(self, groups: Array, coverage: float) -> tuple[Array, Array]:
        """
        Return central intervals of sums of weights, from draws that are always the same.

        Shapes: groups (n_kernels, n_groups); returns (n_groups,), (n_groups,).
        """
        return central(self.posterior.draws() @ groups, coverage)

    @property
    def never_negative(self) -> bool:
        """None can."""
        return True

    @property
    def dual(self) -> Array:
        """Coefficients of the combined kernel, shape (n_outputs, n_basis)."""
        dual = np.concatenate([predictor.dual.T for predictor in self.predictors])
        scaled: Array = self.output.scale[:, None] * dual
        return scaled

    @property
    def intercept(self) -> Array:
        """What is added to it, shape (n_outputs,)."""
        intercept = np.concatenate([predictor.intercept for predictor in self.predictors])
        shifted: Array = self.output.scale * intercept + self.output.shift
        return shifted

    def combine(self, stack: NewKernels) -> Array:
        """Sum kernels with the weights. Shapes: returns (n_new, n_basis)."""
        combined: Array = np.tensordot(self.kernel_weights, stack.values, 1)
        return combined

    def contributions(self, stack: NewKernels) -> Array:
        """Return what each kernel adds to the scores. Shapes: returns (n_outputs, n_kernels, n_new)."""
        parts: Array = np.einsum("mid,ld->lmi", stack.values, self.dual, optimize=True)
        return self.kernel_weights[:, None] * parts

    @property
    def additive(self) -> bool:
        """Whether predictors are sums of functions, one a kernel."""
        return all(predictor.additive for predictor in self.predictors)

    def contribution_deviations(self, stack: NewKernels, groups: Sequence[Positions]) -> Array | None:
        """
        Return deviations of what kernels of a group add to the scores together; None where k(x, x) is not known.

        A group's functions sum to a Gaussian process with the sum of its kernels.

        Shapes: groups (n_members,); returns (n_outputs, n_groups, n_new).
        """
        if stack.own is None and self.varying is not None:
            return None
        values, own = stack.values, self.diagonal[:, None] if stack.own is None else stack.own
        deviations = np.empty((self.n_outputs, len(groups), values.shape[1]))
        for g, members in enumerate(groups):
            weights = self.kernel_weights[members]
            cross, prior = np.tensordot(weights, values[members], 1), weights @ own[members]
            prior = np.broadcast_to(prior, len(cross))
            parts = [_columns(each, each.variance(cross, prior, with_bias=False)) for each in self.predictors]
            deviations[:, g] = np.sqrt(np.hstack(parts)).T
        scaled: Array = self.output.scale[:, None, None] * deviations
        return scaled

    def score(self, stack: NewKernels) -> Array:
        """Return expected scores. Shapes: returns (n_new, n_outputs)."""
        score: Array = self.combine(stack) @ self.dual.T + self.intercept
        return score

    def predictor(self, rule: str, max_bytes: int) -> Callable[[NewKernels], Predicted]:
        """Return what finds moments of scores and probabilities; there is one rule, and nothing more to keep."""
        return self.moments

    def moments(self, stack: NewKernels) -> Predicted:
        """Return moments of scores and probabilities, one column an output."""
        cross = self.combine(stack)
        own = self._own(stack, cross)
        mean = np.hstack([cross @ predictor.dual + predictor.intercept for predictor in self.predictors])
        parts = [_columns(predictor, predictor.variance(cross, own)) for predictor in self.predictors]
        return self.output.predict(mean, np.hstack(parts))

    def _own(self, stack: NewKernels, cross: Array) -> Array:
        """
        Return combined values k(x, x). Shapes: cross (n_new, n_basis); returns (n_new,).

        Where nobody knows them, they are what the basis points explain of them, which is all for kernels of low rank.
        """
        if stack.own is not None:
            own: Array = self.kernel_weights @ stack.own
            return own
        own = np.full(len(cross), float(self.kernel_weights @ self.diagonal))
        if self.own_root is not None and self.varying is not None:
            features = np.tensordot(self.varying, stack.values, 1) @ self.own_root
            own += np.vecdot(features, features)
        return own


def _columns(predictor: Predictor, variance: Array) -> Array:
    """Repeat variances for the outputs that share them. Shapes: variance (n,); returns (n, n_outputs)."""
    return np.repeat(variance[:, None], len(predictor.intercept), axis=1)


def central(drawn: Array, coverage: float) -> tuple[Array, Array]:
    """Return ends of central intervals. Shapes: drawn (n_draws, n); returns (n,), (n,)."""
    low, high = np.quantile(drawn, (0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage), axis=0)
    return low, high
