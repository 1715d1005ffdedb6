"""The posterior of one block, as the engine sees it: numbers without an axis of samples, and rows that have one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.distributions import Gamma, Precision
from bemkl.inference.block import Block
from bemkl.inference.factors.intermediate import Intermediate
from bemkl.inference.factors.sample_weights import SampleWeights
from bemkl.inference.moments import PairContext, WeightMoments
from bemkl.inference.protocols import WeightPosterior
from bemkl.inference.rows import (
    Rows,
    TargetSums,
    deviations,
    gather_locations,
    observe,
    rescale,
    retarget,
)


@dataclass(frozen=True, slots=True, eq=False)
class BlockPosterior:
    r"""
    Factors of one block without its samples: what a fitted model keeps.

    Parameters
    ----------
    sample_precision : Precision
        Factor of :math:`\lambda`, entries of shape (n_outputs, n_basis).
    intermediate_precision : Precision
        Factor of :math:`\upsilon`, entries of shape (n_outputs,), or one known value.
    noise_precision : Precision
        Factor of the precisions of the targets, entries of shape (n_outputs,).
    sample : SampleWeights
        Factor of the sample weights a.
    n_samples : int
        Number of training samples.
    location : ndarray of shape (n_outputs, n_samples), optional
        What the factor of the targets is made from again, where it does not follow from the other factors.
    """

    sample_precision: Precision
    intermediate_precision: Precision
    noise_precision: Precision
    sample: SampleWeights
    n_samples: int
    location: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BlockState:
    r"""Factors that belong to one block, in a run."""

    block: Block  # kernels and likelihood
    sample_precision: Precision  # factor of λ, entries of shape (n_outputs, n_basis)
    intermediate_precision: Precision  # factor of υ, entries of shape (n_outputs,), or one known value
    noise_precision: Precision  # factor of the precisions of the targets, entries of shape (n_outputs,)
    sample: SampleWeights  # factor of the sample weights a
    intermediate: Intermediate  # factor of the intermediate outputs G
    rows: Rows  # means of G, projections and targets, for each sample
    targets: TargetSums  # sums over the targets
    seen: WeightPosterior  # the kernel weights at whose means `targets.fit` was computed
    helper: Any = None  # what the pair strategy wants to see again in the next sweep; no part of the posterior

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.sample.mean)

    @property
    def upsilon(self) -> Array:
        """Expected precisions of the intermediate outputs, shape (n_outputs,)."""
        return np.broadcast_to(self.intermediate_precision.mean, (self.n_outputs,))

    @property
    def tau(self) -> Array:
        """Expected precisions of the targets, shape (n_outputs,)."""
        return np.broadcast_to(self.noise_precision.mean, (self.n_outputs,))

    @property
    def residual(self) -> Array:
        """Expected squared distance of G from its projections, summed over the samples, shape (n_outputs,)."""
        G = self.intermediate
        spread = G.spread.covariance.each(lambda matrix: matrix.trace())
        residual: Array = G.sums.residual + G.n_samples * spread + self.sample.trace
        return residual

    @property
    def pair_entropy(self) -> float:
        """Entropy of a and G."""
        G, n_kernels = self.intermediate, self.block.shape[0]
        logdet = self.sample.logdet + G.n_samples * G.spread.logdet
        size = self.sample.mean.size + self.n_outputs * n_kernels * G.n_samples
        return float(0.5 * logdet.sum() + 0.5 * size * (1.0 + np.log(2.0 * np.pi)))

    def context(self, weights: WeightMoments) -> PairContext:
        """Collect the expectations that the pair depends on."""
        return PairContext(self.sample_precision.mean, self.upsilon, self.tau, weights)

    def predictor_variance(self, weights: WeightMoments) -> Array:
        r"""
        Variances of the predictor :math:`\eta = \boldsymbol{e}^\top \boldsymbol{g} + b`, **summed over the samples**.

        .. math:: \sum_i \operatorname{Var} \eta_i = \operatorname{tr}(\Sigma_e\,\widetilde{\mathbf{G}\mathbf{G}^\top})
                  + \tilde{\boldsymbol e}^\top \Big(\sum_i \operatorname{Cov} \boldsymbol g_i\Big) \tilde{\boldsymbol e}
                  + 2\,\boldsymbol\Sigma_{eb}^\top \sum_i \tilde{\boldsymbol g}_i + N \Sigma_{bb}

        Shapes: returns (n_outputs,).
        """
        G = self.intermediate
        variance: Array = (
            G.quadratic(weights.covariance)
            + G.spread_along(weights.mean)
            + 2.0 * np.einsum("ml,lm->l", weights.cross, G.sums.total)
            + G.n_samples * weights.bias_variance
        )
        return variance

    def observed(self, weights: WeightPosterior, moments: WeightMoments) -> BlockState:
        """Look at the targets with these kernel weights, unless that was the last thing done."""
        if self.seen is weights:
            return self
        rows, targets = self.rows.run(observe, moments.mean, moments.bias)
        return replace(self, rows=rows, targets=targets, seen=weights)

    def retargeted(self, weights: WeightPosterior, moments: WeightMoments) -> BlockState:
        """Update the factor of the targets."""
        rows, targets = self.rows.run(retarget, moments.mean, moments.bias)
        return replace(self, rows=rows, targets=targets, seen=weights)

    def scaled(self, factor: float, *, spread: bool) -> BlockState:
        """Multiply the means of sample weights and intermediate outputs by a factor, or the variables themselves."""
        rows, _ = self.rows.run(rescale, factor)
        targets = self.targets._replace(pull=factor * self.targets.pull)
        scaled = replace(
            self,
            sample=self.sample.scaled(factor, spread=spread),
            intermediate=self.intermediate.scaled(factor, spread=spread),
            rows=rows,
            targets=targets,
        )
        if not spread:
            return scaled
        lam, upsilon = (divided(p, factor**2) for p in (self.sample_precision, self.intermediate_precision))
        return replace(scaled, sample_precision=lam, intermediate_precision=upsilon)

    def deviation(self) -> Array:
        """Return how much the means of G vary between the samples, shape (n_outputs, n_kernels)."""
        G = self.intermediate
        _, squares = self.rows.run(deviations, G.sums.total / G.n_samples)
        deviation: Array = np.sqrt(squares / G.n_samples)
        return deviation

    def posterior(self) -> BlockPosterior:
        """Return what is known without the samples: the intermediate outputs follow from it, and most targets."""
        _, location = self.rows.run(gather_locations)
        return BlockPosterior(
            self.sample_precision,
            self.intermediate_precision,
            self.noise_precision,
            self.sample,
            self.block.shape[1],
            None if location is None else location.values,
        )


def divided(precision: Precision, factor: float) -> Gamma:
    """Return the factor of a learned precision for variables that are multiplied by the root of a number."""
    assert isinstance(precision, Gamma), "a known precision has no scale to change"
    return Gamma(precision.shape, np.asarray(precision.scale) / factor)
