"""Posteriors of biases and kernel weights. `Free`, the paper's, is one Gaussian over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar, TypeVar

import numpy as np

from bemkl._numerics.linalg import refined_solve
from bemkl.arrays import Array
from bemkl.distributions import Gamma, Priors
from bemkl.inference.block import Evidence, WeightStep
from bemkl.inference.matrices import total
from bemkl.inference.moments import JointCovariance, JointPrecision, WeightMoments
from bemkl.inference.protocols import Information


@dataclass(frozen=True, slots=True, eq=False)
class FreeWeights:
    """Joint Gaussian factor of biases and kernel weights, with the gamma factors of their precisions."""

    mean: Array  # (n_biases + n_kernels,): mean of (b, e): the biases of all blocks in order, then the kernel weights
    covariance: JointCovariance  # covariance of (b, e)
    logdet: float  # log-determinant of the covariance
    bias_precision: Gamma  # factor of γ, one entry a bias
    kernel_precision: Gamma  # factor of ω, one entry a kernel
    n_outputs: tuple[int, ...]  # number of outputs of each block

    @property
    def n_biases(self) -> int:
        """Number of biases, one an output of a block."""
        return sum(self.n_outputs)

    @property
    def bias_slices(self) -> list[slice]:
        """Where the biases of each block are."""
        ends = accumulate(self.n_outputs)
        return [slice(end - count, end) for end, count in zip(ends, self.n_outputs, strict=True)]

    @property
    def second(self) -> Array:
        """Second moments E[b²] and E[e²], shape (n_biases + n_kernels,)."""
        return self.mean**2 + self.covariance.diagonal()

    @property
    def precision_mean(self) -> Array:
        """Expected precisions of the kernel weights."""
        return self.kernel_precision.mean

    @property
    def inclusion(self) -> None:
        """None: all kernels are on."""
        return None

    @property
    def mean_cost(self) -> float:
        """Squared means of the kernel weights, summed with their expected precisions."""
        return float(self.kernel_precision.mean @ self.mean[self.n_biases :] ** 2)

    def scaled(self, factor: float, *, spread: bool) -> FreeWeights:
        """Multiply the kernel weights by a factor."""
        moved = replace(self, mean=np.concatenate([self.mean[: self.n_biases], factor * self.mean[self.n_biases :]]))
        if not spread:
            return moved
        precision = Gamma(self.kernel_precision.shape, np.asarray(self.kernel_precision.scale) / factor**2)
        return replace(
            moved,
            covariance=self.covariance.scaled(factor),
            logdet=self.logdet + 2.0 * (len(self.mean) - self.n_biases) * float(np.log(factor)),
            kernel_precision=precision,
        )

    def moments(self, block: int) -> WeightMoments:
        """Moments as one block sees them."""
        biases, kernels = self.bias_slices[block], slice(self.n_biases, None)
        return WeightMoments(
            mean=self.mean[kernels],
            covariance=self.covariance.kernels,
            bias=self.mean[biases],
            bias_variance=self.covariance.biases.diagonal()[biases],
            cross=self.covariance.cross[:, biases],
        )

    def bound_terms(self, priors: Priors) -> dict[str, float]:
        """Return this factor's terms of the lower bound (derivation, section 4)."""
        precision = np.concatenate([self.bias_precision.mean, self.kernel_precision.mean])
        log_precision = np.concatenate([self.bias_precision.log_mean, self.kernel_precision.log_mean])
        prior = 0.5 * float(np.sum(log_precision - precision * self.second))
        return {
            "bias_precision": -self.bias_precision.divergence(priors.bias),
            "kernel_precision": -self.kernel_precision.divergence(priors.kernel),
            "kernel_weights": prior + 0.5 * self.logdet + 0.5 * len(self.mean),
        }

    def integrated(self, information: Sequence[Information]) -> FreeWeights:
        """Return the same means, with the covariance that is left where all sample weights may follow them."""
        covariance, logdet = precision_of(self, information).inverse_and_logdet()
        return replace(self, covariance=covariance, logdet=logdet)


FreeT = TypeVar("FreeT", bound=FreeWeights)


@dataclass(frozen=True, slots=True)
class Free:
    """
    The paper's posterior: one Gaussian over biases and kernel weights, which may be negative.

    Examples
    --------
    >>> list(Free().steps)
    ['bias_precision', 'kernel_precision', 'kernel_weights']
    """

    shared: ClassVar[bool] = True  # all blocks have the same weights
    poolable: ClassVar[bool] = True  # Gaussian weights may lie around common ones

    @property
    def cautious(self) -> Free:
        """Itself: no step lowers the bound."""
        return self

    @property
    def balanced(self) -> bool:
        """The paper's sweep does not look for the best scale."""
        return False

    @property
    def steps(self) -> Mapping[str, WeightStep[FreeWeights]]:
        """The three updates, in order."""
        return {
            "bias_precision": update_bias_precision,
            "kernel_precision": update_kernel_precision,
            "kernel_weights": update_kernel_weights,
        }

    def adopt(self, weights: FreeWeights) -> FreeWeights:
        """Return weights of another run, which have no priors of their own."""
        return weights

    def start(
        self, n_kernels: int, n_outputs: Sequence[int], priors: Priors, rng: np.random.Generator | None
    ) -> FreeWeights:
        """Return weights to begin with."""
        n_biases = sum(n_outputs)
        e = np.ones(n_kernels) if rng is None else rng.standard_normal(n_kernels)
        return independent_weights(
            mean=np.concatenate([np.zeros(n_biases), e / np.sqrt(n_kernels)]),
            variance=np.concatenate([np.ones(n_biases), np.full(n_kernels, 1.0 / n_kernels)]),
            n_outputs=n_outputs,
            priors=priors,
        )


def independent_weights(mean: Array, variance: Array, n_outputs: Sequence[int], priors: Priors) -> FreeWeights:
    """
    Return independent weights with given moments, and precisions at their priors.

    Shapes: mean (n_biases + n_kernels,), variance (n_biases + n_kernels,).
    """
    n_biases = sum(n_outputs)
    return FreeWeights(
        mean=mean,
        covariance=JointCovariance.independent(variance, n_biases),
        logdet=float(np.log(variance).sum()),
        bias_precision=priors.bias.posterior(0, np.zeros(n_biases)),
        kernel_precision=priors.kernel.posterior(0, np.zeros(len(mean) - n_biases)),
        n_outputs=tuple(n_outputs),
    )


def update_bias_precision(weights: FreeT, evidence: Sequence[Evidence], priors: Priors) -> FreeT:
    r"""Update :math:`q(\gamma)` (paper, section 4.1)."""
    return replace(weights, bias_precision=priors.bias.posterior(1, weights.second[: weights.n_biases]))


def update_kernel_precision(weights: FreeT, evidence: Sequence[Evidence], priors: Priors) -> FreeT:
    r"""Update :math:`q(\omega)` (paper, section 4.1)."""
    return replace(weights, kernel_precision=priors.kernel.posterior(1, weights.second[weights.n_biases :]))


def precision_of(weights: FreeWeights, evidence: Sequence[Information]) -> JointPrecision:
    """Assemble the precision of (b, e), Eq. (4), with the sums over all blocks."""
    parts = [(block.bias_precision, block.bias_kernel_precision, block.kernel_precision) for block in evidence]
    corner, link, kernels = zip(*parts, strict=True)
    return JointPrecision(
        corner=weights.bias_precision.mean + np.concatenate(corner),
        link=np.concatenate(link),
        kernels=total(kernels).plus_diagonal(weights.kernel_precision.mean, overwrite=True),
    )


def pull_of(evidence: Sequence[Evidence]) -> Array:
    """
    Assemble the linear term of (b, e), Eq. (4), with the sums over all blocks.

    Shapes: returns (n_biases + n_kernels,).
    """
    kernels = np.sum([block.kernel_pull for block in evidence], axis=0)
    return np.concatenate([*(block.bias_pull for block in evidence), kernels])


def update_kernel_weights(weights: FreeWeights, evidence: Sequence[Evidence], priors: Priors) -> FreeWeights:
    """Update q(b, e), Eq. (4), with the sums over all blocks."""
    precision, pull = precision_of(weights, evidence), pull_of(evidence)
    covariance, logdet = precision.inverse_and_logdet()
    mean = refined_solve(covariance.__matmul__, lambda x: pull - precision @ x, pull)
    return replace(weights, mean=mean, covariance=covariance, logdet=logdet)
