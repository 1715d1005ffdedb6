"""What a fit keeps: kernel weights with their uncertainty, and a predictor of new samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from bemkl.arrays import Array
from bemkl.marginal.functions import Predictor
from bemkl.marginal.outputs import Output, Predicted
from bemkl.marginal.relevance import Relevance

_DRAWS = 2000
"""Draws of weights for intervals of their sums."""


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
        Posterior covariance of the effects.
    spreads : dict of str to float
        Standard deviation of each kind of effects, learned unless the prior is sparse.
    bias_variance : float
        Prior variance of the bias, learned.
    """

    weights: Array
    design: Array
    covariance: Array
    spreads: dict[str, float]
    bias_variance: float

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
        Return central intervals of the weights, all positive; the amplitude stays as it is.

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
        width = np.exp(float(ndtri(0.5 + 0.5 * coverage)) * self._effect_deviation())
        return self.weights / width, self.weights * width

    def draws(self) -> Array:
        """
        Draw weights, always the same ones.

        Returns
        -------
        ndarray of shape (n_draws, n_kernels)
            The draws.
        """
        normal = np.random.default_rng(0).standard_normal((_DRAWS, len(self.covariance)))
        values, vectors = np.linalg.eigh(self.covariance)
        moved = (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        drawn: Array = self.weights * np.exp(moved @ self.design.T)
        return drawn

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
    relevance: Relevance | None = None  # what each view is worth, where views can be left out

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
        drawn = self.posterior.draws() @ groups
        low, high = np.quantile(drawn, (0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage), axis=0)
        return low, high

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

    def score(self, stack: NewKernels) -> Array:
        """Return expected scores. Shapes: returns (n_new, n_outputs)."""
        score: Array = self.combine(stack) @ self.dual.T + self.intercept
        return score

    def moments(self, stack: NewKernels, rule: str = "exact") -> Predicted:
        """Return moments of scores and probabilities, one column an output; there is one rule."""
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
