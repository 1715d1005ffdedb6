"""Kernels that are on or off: a spike at zero and a slab, with the probability that a kernel is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import betaln, digamma, expit, xlogy

from bemkl.arrays import Array
from bemkl.distributions import Gamma, Priors
from bemkl.inference.block import Evidence, WeightStep
from bemkl.inference.matrices import LowRank
from bemkl.inference.moments import JointPrecision, SpikesAndSlabs, WeightMoments
from bemkl.inference.protocols import Information

_FIXED = 1e4
"""How much more precise the size of all weights together is made than it is."""
_RARE = 1e-6
"""Least probability to be on of kernels beside which others are judged."""


@dataclass(frozen=True, slots=True, eq=False)
class SpikeSlabWeights:
    """
    Factors of indicators, kernel weights, biases and their hyper-parameters (docs/weights.md).

    The weight of kernel m in block t is :math:`s_m e_{tm}`. The indicators s are shared by all blocks; each block has
    weights of its own. Under q, :math:`s_m` and :math:`e_{tm}` depend on each other.
    """

    inclusion: Array  # (n_kernels,): probability π_m that a kernel is on
    share: tuple[float, float]  # parameters of the beta factor of κ, the share of kernels that are on
    share_prior: tuple[float, float]  # those of its prior
    slab_mean: Array  # (n_blocks, n_kernels): means of the weights of kernels that are on
    slab_variance: Array  # (n_blocks, n_kernels): their variances
    off_variance: Array  # (n_blocks, n_kernels): variances of the weights of kernels that are off; their means are 0
    kernel_precision: Gamma  # factor of ω, one entry a block
    bias: Array  # (n_biases,): means of the biases of all blocks in order
    bias_variance: Array  # (n_biases,): their variances
    bias_precision: Gamma  # factor of γ, one entry a bias
    n_outputs: tuple[int, ...]  # number of outputs of each block

    @property
    def mean(self) -> Array:
        """Expected weights, shape (n_blocks, n_kernels)."""
        return self.inclusion * self.slab_mean

    @property
    def log_odds(self) -> float:
        """Expected prior log-odds that a kernel is on."""
        return float(digamma(self.share[0]) - digamma(self.share[1]))

    @property
    def bias_slices(self) -> list[slice]:
        """Where the biases of each block are."""
        ends = np.cumsum(self.n_outputs).tolist()
        return [slice(end - count, end) for end, count in zip(ends, self.n_outputs, strict=True)]

    @property
    def second(self) -> Array:
        """Second moments of the weights e, on or off, shape (n_blocks, n_kernels)."""
        on = self.inclusion * (self.slab_mean**2 + self.slab_variance)
        return on + (1.0 - self.inclusion) * self.off_variance

    def moments(self, block: int) -> WeightMoments:
        """Moments as one block sees them."""
        mean, biases = self.mean[block], self.bias_slices[block]
        second = self.inclusion * (self.slab_mean[block] ** 2 + self.slab_variance[block])
        return WeightMoments(
            mean=mean,
            covariance=LowRank.of_diagonal(second - mean**2),
            bias=self.bias[biases],
            bias_variance=self.bias_variance[biases],
            cross=np.zeros((len(mean), self.n_outputs[block])),
            marginals=SpikesAndSlabs(self.inclusion, self.slab_mean[block], np.sqrt(self.slab_variance[block])),
        )

    def integrated(self, information: Sequence[Information]) -> SpikeSlabWeights:
        r"""
        Return the same weights of kernels that are on, with the deviations and the probabilities that are left.

        With :math:`J_m` what samples say of a kernel beside all others (derivation, section 10)

        .. math:: \sigma_m^2 = \frac{1}{\tilde\omega + J_m}, \qquad
                  \operatorname{logit} \pi_m = \psi(\zeta) - \psi(\eta)
                  + \tfrac12 \sum_t \Big(\log(\tilde\omega_t \sigma_{tm}^2) + \frac{\mu_{tm}^2}{\sigma_{tm}^2}\Big)

        with the prior of :math:`\kappa`, because its factor has counted kernels that were too sure to be on.
        """
        omega = self.kernel_precision.mean[:, None]
        prior = omega / np.maximum(self.inclusion, _RARE)
        variance = 1.0 / (omega + self._own_information(information, prior))
        gain = np.log(omega * variance) + self.slab_mean**2 / variance
        zeta, eta = self.share_prior
        inclusion = expit(digamma(zeta) - digamma(eta) + 0.5 * gain.sum(axis=0))
        return replace(self, slab_variance=variance, inclusion=inclusion)

    def _own_information(self, information: Sequence[Information], prior: Array) -> Array:
        """
        Return what samples say of each kernel beside all others, with the size of all weights together held.

        That size is hardly known, since sample weights may make up for it; it says nothing about one kernel.

        Shapes: prior, returns (n_blocks, n_kernels).
        """
        found = []
        parts = zip(information, self.bias_slices, prior, self.mean, strict=True)
        for block, biases, precision, mean in parts:
            kernels = block.kernel_precision.plus_diagonal(precision)
            size = mean / (np.linalg.norm(mean) or 1.0)
            joint = JointPrecision(
                corner=self.bias_precision.mean[biases] + block.bias_precision,
                link=block.bias_kernel_precision,
                kernels=kernels
                + LowRank(np.zeros(len(mean)), size[:, None], np.array([_FIXED * (size @ (kernels @ size))])),
            )
            found.append(1.0 / joint.solver().kernel_variances() - precision)
        return np.maximum(found, 0.0)

    def bound_terms(self, priors: Priors) -> dict[str, float]:
        """Return these factors' terms of the lower bound."""
        on, off = self.inclusion, 1.0 - self.inclusion
        log_on, log_off = (digamma(count) - digamma(sum(self.share)) for count in self.share)
        indicators = float(np.sum(on * log_on + off * log_off - xlogy(on, on) - xlogy(off, off)))
        omega, gamma = self.kernel_precision, self.bias_precision
        weights = omega.log_mean[:, None] - omega.mean[:, None] * self.second + 1.0
        weights = weights + on * np.log(self.slab_variance) + off * np.log(self.off_variance)
        second = self.bias**2 + self.bias_variance
        biases = gamma.log_mean - gamma.mean * second + np.log(self.bias_variance) + 1.0
        return {
            "inclusion": indicators - _beta_divergence(self.share, self.share_prior),
            "kernel_precision": -omega.divergence(priors.kernel),
            "kernel_weights": 0.5 * float(weights.sum()),
            "bias_precision": -gamma.divergence(priors.bias),
            "bias": 0.5 * float(biases.sum()),
        }


def _beta_divergence(q: tuple[float, float], p: tuple[float, float]) -> float:
    """Kullback-Leibler divergence between two beta distributions."""
    logs = [digamma(count) - digamma(sum(q)) for count in q]
    return float(betaln(*p) - betaln(*q) + sum((a - b) * log for a, b, log in zip(q, p, logs, strict=True)))


@dataclass(frozen=True, slots=True)
class SpikeSlab:
    r"""
    Indicators :math:`s_m \sim \mathrm{Bernoulli}(\kappa)` and weights :math:`e_{tm} \sim \mathcal{N}(0, 1/\omega_t)`.

    Parameters
    ----------
    share_prior : (float, float)
        Beta prior of the share of kernels that are on.
    joint : bool
        Whether indicator and weight of a kernel are updated together, or all indicators and then all weights. Both are
        coordinate ascent on the same bound; they may end at different maxima.
    order : tuple of int, optional
        Order in which kernels are visited; their own by default.

    Examples
    --------
    >>> list(SpikeSlab().steps)
    ['inclusion_share', 'kernel_precision', 'kernel_weights', 'bias_precision', 'bias']
    """

    shared: ClassVar[bool] = False  # blocks share what is on, and have weights of their own
    poolable: ClassVar[bool] = False  # weights of blocks have no common ones

    share_prior: tuple[float, float] = (1.0, 1.0)
    joint: bool = True
    order: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what is no beta distribution."""
        if len(self.share_prior) != 2 or not all(np.isfinite(count) and count > 0.0 for count in self.share_prior):
            raise ValueError(f"share_prior: expected two positive numbers, got {self.share_prior!r}.")

    @property
    def cautious(self) -> SpikeSlab:
        """Itself: no step lowers the bound."""
        return self

    @property
    def balanced(self) -> bool:
        """No scale is looked for."""
        return False

    @property
    def steps(self) -> Mapping[str, WeightStep[SpikeSlabWeights]]:
        """The updates, in order."""
        share, precision = _update_share, _update_kernel_precision
        if self.joint:
            middle = {"inclusion_share": share, "kernel_precision": precision, "kernel_weights": self._update_pairs}
        else:
            middle = {
                "inclusion_share": share,
                "inclusion": self._update_indicators,
                "kernel_precision": precision,
                "kernel_weights": self._update_slabs,
            }
        return middle | {"bias_precision": _update_bias_precision, "bias": _update_bias}

    def adopt(self, weights: SpikeSlabWeights) -> SpikeSlabWeights:
        """Return weights of another run under the prior of this one."""
        return replace(weights, share_prior=self.share_prior)

    def start(
        self, n_kernels: int, n_outputs: Sequence[int], priors: Priors, rng: np.random.Generator | None
    ) -> SpikeSlabWeights:
        """Return weights to begin with."""
        shape, n_biases = (len(n_outputs), n_kernels), sum(n_outputs)
        size = np.ones(shape) if rng is None else rng.standard_normal(shape)
        omega = priors.kernel.posterior(0, np.zeros(len(n_outputs)))
        return SpikeSlabWeights(
            inclusion=np.ones(n_kernels),
            share=self.share_prior,
            share_prior=self.share_prior,
            slab_mean=size / np.sqrt(n_kernels),
            slab_variance=np.full(shape, 1.0 / n_kernels),
            off_variance=np.full(shape, 1.0 / n_kernels),
            kernel_precision=omega,
            bias=np.zeros(n_biases),
            bias_variance=np.ones(n_biases),
            bias_precision=priors.bias.posterior(0, np.zeros(n_biases)),
            n_outputs=tuple(n_outputs),
        )

    def _update_pairs(
        self, weights: SpikeSlabWeights, evidence: Sequence[Evidence], priors: Priors
    ) -> SpikeSlabWeights:
        r"""
        Update indicator and weights of one kernel after another.

        .. math:: \sigma_{tm}^2 = \frac{1}{\tilde\omega_t + M_{t,mm}}, \quad \mu_{tm} = \sigma_{tm}^2 r_{tm}, \quad
                  \operatorname{logit} \pi_m = \psi(\zeta) - \psi(\eta)
                  + \tfrac12 \sum_t \Big(\log(\tilde\omega_t \sigma_{tm}^2) + \frac{\mu_{tm}^2}{\sigma_{tm}^2}\Big)
        """
        visit, omega = _Visit(weights, evidence), weights.kernel_precision.mean
        inclusion, mean, variance = weights.inclusion.copy(), weights.slab_mean.copy(), weights.slab_variance.copy()
        for m in self._order(weights):
            variance[:, m] = 1.0 / (omega + visit.own[:, m])
            mean[:, m] = variance[:, m] * visit.pull(m)
            gain = np.log(omega * variance[:, m]) + mean[:, m] ** 2 / variance[:, m]
            inclusion[m] = expit(weights.log_odds + 0.5 * gain.sum())
            visit.move(m, inclusion[m] * mean[:, m])
        off = np.broadcast_to(1.0 / omega[:, None], mean.shape)
        return replace(weights, inclusion=inclusion, slab_mean=mean, slab_variance=variance, off_variance=off)

    def _update_indicators(
        self, weights: SpikeSlabWeights, evidence: Sequence[Evidence], priors: Priors
    ) -> SpikeSlabWeights:
        """
        Update one indicator after another, with the weights fixed.

        The entropy and the prior of a weight that is on or off belong in the log-odds; a program that leaves them out
        does not ascend.
        """
        visit, omega = _Visit(weights, evidence), weights.kernel_precision.mean[:, None]
        mean, on, off = weights.slab_mean, weights.slab_variance, weights.off_variance
        inclusion = weights.inclusion.copy()
        constant = np.log(on / off) - omega * (mean**2 + on - off) - (mean**2 + on) * visit.own
        for m in self._order(weights):
            gain = mean[:, m] * visit.pull(m) + 0.5 * constant[:, m]
            inclusion[m] = expit(weights.log_odds + gain.sum())
            visit.move(m, inclusion[m] * mean[:, m])
        return replace(weights, inclusion=inclusion)

    def _update_slabs(
        self, weights: SpikeSlabWeights, evidence: Sequence[Evidence], priors: Priors
    ) -> SpikeSlabWeights:
        """Update the weights of one kernel after another, with the indicators fixed."""
        visit, omega = _Visit(weights, evidence), weights.kernel_precision.mean
        mean, variance = weights.slab_mean.copy(), 1.0 / (omega[:, None] + visit.own)
        for m in self._order(weights):
            mean[:, m] = variance[:, m] * visit.pull(m)
            visit.move(m, weights.inclusion[m] * mean[:, m])
        off = np.broadcast_to(1.0 / omega[:, None], mean.shape)
        return replace(weights, slab_mean=mean, slab_variance=variance, off_variance=off)

    def _order(self, weights: SpikeSlabWeights) -> Sequence[int]:
        return range(len(weights.inclusion)) if self.order is None else self.order


class _Visit:
    """What pulls at a kernel's weights, while the kernels are visited one after another."""

    def __init__(self, weights: SpikeSlabWeights, evidence: Sequence[Evidence]) -> None:
        matrices = [block.kernel_precision for block in evidence]
        self.own = np.stack([matrix.diagonal() for matrix in matrices])
        self._mean = weights.mean.copy()
        self._products = [matrix.coordinates(mean) for matrix, mean in zip(matrices, self._mean, strict=True)]
        slices = weights.bias_slices
        links = [weights.bias[s] @ block.bias_kernel_precision for s, block in zip(slices, evidence, strict=True)]
        self._pull = np.stack([block.kernel_pull for block in evidence]) - links

    def pull(self, m: int) -> Array:
        """Return what the samples of each block leave for one kernel, given all others, shape (n_blocks,)."""
        others = [product.off_diagonal(m) for product in self._products]
        left: Array = self._pull[:, m] - others
        return left

    def move(self, m: int, mean: Array) -> None:
        """Give one kernel new expected weights, shape (n_blocks,)."""
        for product, change in zip(self._products, (mean - self._mean[:, m]).tolist(), strict=True):
            product.move(m, change)
        self._mean[:, m] = mean


def _update_share(weights: SpikeSlabWeights, evidence: Sequence[Evidence], priors: Priors) -> SpikeSlabWeights:
    r"""Update :math:`q(\kappa)`."""
    on = float(weights.inclusion.sum())
    zeta, eta = weights.share_prior
    return replace(weights, share=(zeta + on, eta + len(weights.inclusion) - on))


def _update_kernel_precision(
    weights: SpikeSlabWeights, evidence: Sequence[Evidence], priors: Priors
) -> SpikeSlabWeights:
    r"""Update :math:`q(\omega)`, one a block for all its kernels."""
    second = weights.second
    return replace(weights, kernel_precision=priors.kernel.posterior(second.shape[1], second.sum(axis=1)))


def _update_bias_precision(weights: SpikeSlabWeights, evidence: Sequence[Evidence], priors: Priors) -> SpikeSlabWeights:
    r"""Update :math:`q(\gamma)`."""
    return replace(weights, bias_precision=priors.bias.posterior(1, weights.bias**2 + weights.bias_variance))


def _update_bias(weights: SpikeSlabWeights, evidence: Sequence[Evidence], priors: Priors) -> SpikeSlabWeights:
    """Update q(b), apart from the kernel weights."""
    precision = weights.bias_precision.mean + np.concatenate([block.bias_precision for block in evidence])
    pulls = [
        block.bias_pull - block.bias_kernel_precision @ mean for block, mean in zip(evidence, weights.mean, strict=True)
    ]
    return replace(weights, bias=np.concatenate(pulls) / precision, bias_variance=1.0 / precision)


def strategy(*, bold: bool) -> SpikeSlab:
    """Return weights that are on or off: there are no bold steps for them."""
    return SpikeSlab()


PARTS = {
    SpikeSlabWeights: {
        "inclusion": "P >= 0",
        "slab_mean": "t P",
        "slab_variance": "t P >= 0",
        "off_variance": "t P >= 0",
        "bias": "b",
        "bias_variance": "b >= 0",
    }
}
