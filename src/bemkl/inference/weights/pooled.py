"""Kernel weights of each block around common ones: neither shared nor separate, as much alike as the data say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bemkl.arrays import Array
from bemkl.distributions import DENSE, Gamma, Priors
from bemkl.inference.block import Evidence, WeightStep
from bemkl.inference.matrices import Dense, LowRank, Symmetric
from bemkl.inference.moments import JointCovariance, JointPrecision, WeightMoments
from bemkl.inference.newton.steps import beyond
from bemkl.inference.protocols import Information
from bemkl.inference.weights.newton import fixed_point


@dataclass(frozen=True, slots=True, eq=False)
class PooledWeights:
    """One Gaussian factor over the common weights, the weights of all blocks and the biases, with gamma factors."""

    centre: Array  # (n_kernels,): means of the common weights e_0
    centre_variance: Array  # (n_kernels,): their variances
    means: tuple[Array, ...]  # (n_outputs + n_kernels,): means of the biases and weights of each block
    covariances: tuple[JointCovariance, ...]  # their covariances, one a block
    centre_covariance: Array  # (n_blocks, n_kernels): covariances of each weight of a block with its common one
    logdet: float  # log-determinant of the covariance of everything
    bias_precision: Gamma  # factor of γ, one entry a bias
    kernel_precision: Gamma  # factor of ω, the precisions of the common weights
    pool_precision: Gamma  # factor of κ, the precisions of the blocks' weights around the common ones
    pool_prior: Gamma  # prior of κ
    n_outputs: tuple[int, ...]  # number of outputs of each block

    @property
    def inclusion(self) -> None:
        """None: all kernels are on."""
        return None

    @property
    def block_means(self) -> Array:
        """Means of the weights of each block, shape (n_blocks, n_kernels)."""
        return np.stack([mean[count:] for mean, count in zip(self.means, self.n_outputs, strict=True)])

    @property
    def distance(self) -> Array:
        """Expected squared distances from the common weights, summed over the blocks, shape (n_kernels,)."""
        distance: Array = ((self.block_means - self.centre) ** 2).sum(axis=0) + self.distance_variance
        return distance

    @property
    def distance_variance(self) -> Array:
        """Variances of the distances from the common weights, summed over the blocks, shape (n_kernels,)."""
        variances = np.stack([covariance.kernels.diagonal() for covariance in self.covariances])
        variance: Array = (variances + self.centre_variance - 2.0 * self.centre_covariance).sum(axis=0)
        return variance

    @property
    def bias_precisions(self) -> list[Array]:
        """Expected precisions of the biases of each block."""
        return np.split(self.bias_precision.mean, np.cumsum(self.n_outputs)[:-1])

    @property
    def bias_second(self) -> Array:
        """Second moments of the biases, shape (n_biases,)."""
        parts = zip(self.means, self.covariances, self.n_outputs, strict=True)
        return np.concatenate([mean[:count] ** 2 + cov.biases.diagonal() for mean, cov, count in parts])

    def moments(self, block: int) -> WeightMoments:
        """Moments as one block sees them."""
        count, covariance = self.n_outputs[block], self.covariances[block]
        return WeightMoments(
            mean=self.means[block][count:],
            covariance=covariance.kernels,
            bias=self.means[block][:count],
            bias_variance=covariance.biases.diagonal(),
            cross=covariance.cross,
        )

    def bound_terms(self, priors: Priors) -> dict[str, float]:
        """Return these factors' terms of the lower bound."""
        omega, gamma, kappa = self.kernel_precision, self.bias_precision, self.pool_precision
        n_blocks, size = len(self.means), len(self.centre) + sum(map(len, self.means))
        prior = np.sum(omega.log_mean - omega.mean * (self.centre**2 + self.centre_variance))
        prior += np.sum(gamma.log_mean - gamma.mean * self.bias_second)
        prior += np.sum(n_blocks * kappa.log_mean - kappa.mean * self.distance)
        return {
            "bias_precision": -gamma.divergence(priors.bias),
            "kernel_precision": -omega.divergence(priors.kernel),
            "pool_precision": -kappa.divergence(self.pool_prior),
            "kernel_weights": 0.5 * (float(prior) + self.logdet + size),
        }

    def integrated(self, information: Sequence[Information]) -> PooledWeights:
        """Return the same means, with the covariances that are left where all sample weights may follow them."""
        precisions = _precisions_of(self, information)
        centred = [(precision, np.zeros_like(mean)) for precision, mean in zip(precisions, self.means, strict=True)]
        return replace(_solved(self, centred), centre=self.centre, means=self.means)


@dataclass(frozen=True, slots=True)
class Pooled:
    r"""
    Weights of blocks around common ones (the paper's closing sentence).

    .. math:: \boldsymbol e_t \sim \mathcal{N}(\boldsymbol e_0, \operatorname{diag}(\boldsymbol\kappa)^{-1}), \qquad
              \boldsymbol e_0 \sim \mathcal{N}(\boldsymbol 0, \operatorname{diag}(\boldsymbol\omega)^{-1}), \qquad
              \kappa_m \sim \mathcal{G}(\alpha_\kappa, \beta_\kappa)

    Large :math:`\kappa` is one set of weights for all blocks, small ones a set for each (docs/pooled.md).

    Parameters
    ----------
    pool_prior : Gamma
        Prior of :math:`\kappa`.
    bold : bool
        Whether means take Newton steps, and precisions those of their fixed-point equations, as with
        `NewtonWeights`.

    Examples
    --------
    >>> list(Pooled().steps)
    ['bias_precision', 'kernel_precision', 'pool_precision', 'kernel_weights']
    """

    shared: ClassVar[bool] = False  # blocks have weights of their own
    poolable: ClassVar[bool] = False  # they are pooled already

    pool_prior: Gamma = DENSE
    bold: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no prior."""
        if not isinstance(self.pool_prior, Gamma) or np.ndim(self.pool_prior.mean):
            raise ValueError(
                f"pool_prior: expected one Gamma prior, got {self.pool_prior!r}. Write Gamma(shape, scale)."
            )

    @property
    def cautious(self) -> Pooled:
        """The steps of coordinate ascent."""
        return Pooled(self.pool_prior) if self.bold else self

    @property
    def balanced(self) -> bool:
        """No scale is looked for."""
        return False

    @property
    def steps(self) -> Mapping[str, WeightStep[PooledWeights]]:
        """The four updates, in order."""
        return {
            "bias_precision": _update_bias_precision,
            "kernel_precision": _move_kernel_precision if self.bold else _update_kernel_precision,
            "pool_precision": _move_pool_precision if self.bold else _update_pool_precision,
            "kernel_weights": _move_kernel_weights if self.bold else _update_kernel_weights,
        }

    def adopt(self, weights: PooledWeights) -> PooledWeights:
        """Return weights of another run under the prior of this one."""
        return replace(weights, pool_prior=self.pool_prior)

    def start(
        self, n_kernels: int, n_outputs: Sequence[int], priors: Priors, rng: np.random.Generator | None
    ) -> PooledWeights:
        """Return weights to begin with."""
        e = (np.ones(n_kernels) if rng is None else rng.standard_normal(n_kernels)) / np.sqrt(n_kernels)
        spread = np.full(n_kernels, 1.0 / n_kernels)
        variances = [np.concatenate([np.ones(count), spread]) for count in n_outputs]
        return PooledWeights(
            centre=e,
            centre_variance=spread,
            means=tuple(np.concatenate([np.zeros(count), e]) for count in n_outputs),
            covariances=tuple(JointCovariance.independent(v, c) for v, c in zip(variances, n_outputs, strict=True)),
            centre_covariance=np.zeros((len(n_outputs), n_kernels)),
            logdet=float(np.log(np.concatenate([spread, *variances])).sum()),
            bias_precision=priors.bias.posterior(0, np.zeros(sum(n_outputs))),
            kernel_precision=priors.kernel.posterior(0, np.zeros(n_kernels)),
            pool_precision=self.pool_prior.posterior(0, np.zeros(n_kernels)),
            pool_prior=self.pool_prior,
            n_outputs=tuple(n_outputs),
        )


def _update_bias_precision(weights: PooledWeights, evidence: Sequence[Evidence], priors: Priors) -> PooledWeights:
    r"""Update :math:`q(\gamma)`."""
    return replace(weights, bias_precision=priors.bias.posterior(1, weights.bias_second))


def _update_kernel_precision(weights: PooledWeights, evidence: Sequence[Evidence], priors: Priors) -> PooledWeights:
    r"""Update :math:`q(\omega)`."""
    second = weights.centre**2 + weights.centre_variance
    return replace(weights, kernel_precision=priors.kernel.posterior(1, second))


def _update_pool_precision(weights: PooledWeights, evidence: Sequence[Evidence], priors: Priors) -> PooledWeights:
    r"""Update :math:`q(\kappa)`."""
    precision = weights.pool_prior.posterior(len(weights.means), weights.distance)
    return replace(weights, pool_precision=precision)


def _move_kernel_precision(weights: PooledWeights, evidence: Sequence[Evidence], priors: Priors) -> PooledWeights:
    r"""Move :math:`q(\omega)` by its fixed-point equation."""
    moved = fixed_point(priors.kernel, weights.kernel_precision, 1, weights.centre**2, weights.centre_variance)
    return replace(weights, kernel_precision=moved)


def _move_pool_precision(weights: PooledWeights, evidence: Sequence[Evidence], priors: Priors) -> PooledWeights:
    r"""Move :math:`q(\kappa)` by its fixed-point equation."""
    squares = ((weights.block_means - weights.centre) ** 2).sum(axis=0)
    n_blocks = len(weights.means)
    moved = fixed_point(weights.pool_prior, weights.pool_precision, n_blocks, squares, weights.distance_variance)
    return replace(weights, pool_precision=moved)


def _update_kernel_weights(weights: PooledWeights, evidence: Sequence[Evidence], priors: Priors) -> PooledWeights:
    """Update the Gaussian factor of everything."""
    pulls = [np.concatenate([block.bias_pull, block.kernel_pull]) for block in evidence]
    return _solved(weights, list(zip(_precisions_of(weights, evidence), pulls, strict=True)))


def _precisions_of(weights: PooledWeights, evidence: Sequence[Information]) -> list[JointPrecision]:
    """Assemble the precision of the biases and weights of each block around the common weights."""
    return [
        JointPrecision(
            corner=gamma + block.bias_precision,
            link=block.bias_kernel_precision,
            kernels=block.kernel_precision.plus_diagonal(weights.pool_precision.mean, overwrite=True),
        )
        for block, gamma in zip(evidence, weights.bias_precisions, strict=True)
    ]


def _move_kernel_weights(weights: PooledWeights, evidence: Sequence[Evidence], priors: Priors) -> PooledWeights:
    """Update the Gaussian factor of everything, with a Newton step of its means and on (derivation, section 5)."""
    systems = []
    for t, (block, gamma) in enumerate(zip(evidence, weights.bias_precisions, strict=True)):
        sums, matrix = block.profile(weights.moments(t))
        block_precision = JointPrecision(
            corner=gamma + sums.curvature,
            link=sums.link,
            kernels=(matrix + block.kernel_spread).plus_diagonal(weights.pool_precision.mean, overwrite=True),
        )
        systems.append((block_precision, np.concatenate([sums.bias_pull, sums.kernel_pull])))
    ahead = _solved(weights, systems)
    return replace(
        _update_kernel_weights(weights, evidence, priors),
        centre=beyond(weights.centre, ahead.centre),
        means=tuple(beyond(old, new) for old, new in zip(weights.means, ahead.means, strict=True)),
    )


def _solved(weights: PooledWeights, systems: Sequence[tuple[JointPrecision, Array]]) -> PooledWeights:
    r"""
    Solve the precision and the linear term of every block together with the common weights, by eliminating the blocks.

    With :math:`\Sigma_t` the inverse of a block's own precision, which includes :math:`\boldsymbol\kappa`, and K the
    diagonal matrix of :math:`\tilde{\boldsymbol\kappa}`, the common weights have the precision

    .. math:: \Omega + \sum_t (\mathbf K - \mathbf K \Sigma_t \mathbf K)

    where :math:`\mathbf K - \mathbf K \Sigma_t \mathbf K` is what is left of a block's evidence at that distance.
    """
    kappa, omega = weights.pool_precision.mean, weights.kernel_precision.mean
    own, right, logdet = [], np.zeros(len(kappa)), 0.0
    precision: Symmetric = LowRank.of_diagonal(omega)
    for (block_precision, pull), count in zip(systems, weights.n_outputs, strict=True):
        covariance, block_logdet = block_precision.inverse_and_logdet()
        alone = covariance @ pull
        left = -kappa[:, None] * np.asarray(covariance.kernels) * kappa
        precision = Dense(left).plus_diagonal(kappa, overwrite=True) + precision
        right += kappa * alone[count:]
        own.append((covariance, alone))
        logdet += block_logdet
    centre_covariance, centre_logdet = precision.inverse_and_logdet("common kernel weights")
    centre, spread = centre_covariance @ right, np.asarray(centre_covariance)
    parts = [_joined(covariance, alone, kappa, centre, spread) for covariance, alone in own]
    return replace(
        weights,
        centre=centre,
        centre_variance=spread.diagonal().copy(),
        means=tuple(mean for mean, _, _ in parts),
        covariances=tuple(covariance for _, covariance, _ in parts),
        centre_covariance=np.stack([cross for _, _, cross in parts]),
        logdet=logdet + centre_logdet,
    )


def _joined(
    covariance: JointCovariance, alone: Array, kappa: Array, centre: Array, spread: Array
) -> tuple[Array, JointCovariance, Array]:
    """Return means and covariance of a block, and covariances with the common weights, all uncertainty included."""
    kernels = np.asarray(covariance.kernels) * kappa
    links = covariance.cross.T * kappa
    mean = alone + np.concatenate([links @ centre, kernels @ centre])
    through = kernels @ spread
    joined = JointCovariance(
        biases=covariance.biases + links @ spread @ links.T,
        cross=covariance.cross + through @ links.T,
        kernels=covariance.kernels + Dense(through @ kernels.T),
    )
    return mean, joined, through.diagonal().copy()


PARTS: dict[type, dict[str, str]] = {PooledWeights: {}}
