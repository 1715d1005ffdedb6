"""Kernel weights that cannot be negative: a conic combination of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import erfcx

from bemkl._numerics.special import truncated_entropy, truncated_excess, truncated_variance
from bemkl.arrays import Array, whole_number
from bemkl.distributions import Gamma, Priors
from bemkl.inference.block import Evidence, WeightStep
from bemkl.inference.moments import JointCovariance, JointPrecision, TruncatedNormals, WeightMoments
from bemkl.inference.protocols import Information
from bemkl.inference.weights.free import (
    FreeWeights,
    precision_of,
    pull_of,
    update_bias_precision,
    update_kernel_precision,
)

_SHALLOW = -5.0
_ROOT = float(np.sqrt(2.0 / np.pi))
_NORMAL_ENTROPY = 0.5 * (1.0 + float(np.log(2.0 * np.pi)))


@dataclass(frozen=True, slots=True, eq=False)
class NonnegativeWeights(FreeWeights):
    """Independent factors: normal ones of the biases, normal ones kept at e_m >= 0 of the kernel weights."""

    location: Array  # (n_kernels,): means of the kernel weights before truncation
    deviation: Array  # (n_kernels,): their standard deviations before truncation

    def moments(self, block: int) -> WeightMoments:
        """Moments as one block sees them."""
        return replace(FreeWeights.moments(self, block), marginals=TruncatedNormals(self.location, self.deviation))

    def integrated(self, information: Sequence[Information]) -> NonnegativeWeights:
        r"""
        Return factors with the same slope at the mean, and the curvature that is left where all else may follow.

        With the covariance :math:`\Sigma` of free weights and the slope
        :math:`(\mu_m - \tilde e_m) / \sigma_m^2` of a factor, those are
        :math:`\mathcal{N}(\tilde e_m + \Sigma_{mm} (\mu_m - \tilde e_m) / \sigma_m^2,\; \Sigma_{mm})\,[e_m \ge 0]`.
        """
        covariance, _ = precision_of(self, information).inverse_and_logdet()
        variance, mean = covariance.kernels.diagonal(), self.mean[self.n_biases :]
        location = mean + variance * (self.location - mean) / self.deviation**2
        biases = self.mean[: self.n_biases], covariance.biases.diagonal()
        precisions = self.bias_precision, self.kernel_precision
        return nonnegative_weights(biases, (location, np.sqrt(variance)), precisions, self.n_outputs)

    def bound_terms(self, priors: Priors) -> dict[str, float]:
        """Return this factor's terms of the lower bound."""
        terms = FreeWeights.bound_terms(self, priors)
        return terms | {"kernel_weights": terms["kernel_weights"] + len(self.location) * float(np.log(2.0))}


def nonnegative_weights(
    bias: tuple[Array, Array],
    kernels: tuple[Array, Array],
    precisions: tuple[Gamma, Gamma],
    n_outputs: Sequence[int],
) -> NonnegativeWeights:
    """Build the factors from their parameters. Shapes: bias (n_biases,), kernels (n_kernels,)."""
    (mean, variance), (location, deviation) = bias, kernels
    depth = location / deviation
    entropy = np.log(deviation) + truncated_entropy(depth) - _NORMAL_ENTROPY
    return NonnegativeWeights(
        mean=np.concatenate([mean, deviation * truncated_excess(depth)]),
        covariance=JointCovariance.independent(
            np.concatenate([variance, deviation**2 * truncated_variance(depth)]), len(mean)
        ),
        logdet=float(np.log(variance).sum() + 2.0 * entropy.sum()),
        bias_precision=precisions[0],
        kernel_precision=precisions[1],
        n_outputs=tuple(n_outputs),
        location=location,
        deviation=deviation,
    )


@dataclass(frozen=True, slots=True)
class Nonnegative:
    r"""
    Weights with a prior on one side of zero, :math:`e_m \mid \omega_m \sim \mathcal{N}(0, 1/\omega_m)\,[e_m \ge 0]`.

    The optimal factor of each weight, with the others fixed, is a truncated normal in closed form; a step visits all
    weights and biases in turn, some times over (docs/weights.md).

    Parameters
    ----------
    n_passes : int
        Number of visits a step.

    Examples
    --------
    >>> list(Nonnegative().steps)
    ['bias_precision', 'kernel_precision', 'kernel_weights']
    """

    shared: ClassVar[bool] = True  # all blocks have the same weights
    poolable: ClassVar[bool] = False  # pooled weights may be negative

    n_passes: int = 3

    def __post_init__(self) -> None:
        """Refuse a step that does nothing."""
        whole_number("n_passes", self.n_passes, least=1)

    @property
    def cautious(self) -> Nonnegative:
        """Itself: no step lowers the bound."""
        return self

    @property
    def balanced(self) -> bool:
        """Means of truncated factors cannot move alone, so no scale is looked for."""
        return False

    @property
    def steps(self) -> Mapping[str, WeightStep[NonnegativeWeights]]:
        """The three updates, in order."""
        return {
            "bias_precision": update_bias_precision,
            "kernel_precision": update_kernel_precision,
            "kernel_weights": self._update,
        }

    def adopt(self, weights: NonnegativeWeights) -> NonnegativeWeights:
        """Return weights of another run, which have no priors of their own."""
        return weights

    def start(
        self, n_kernels: int, n_outputs: Sequence[int], priors: Priors, rng: np.random.Generator | None
    ) -> NonnegativeWeights:
        """Return weights to begin with."""
        n_biases, size = sum(n_outputs), n_kernels**-0.5
        location = np.ones(n_kernels) if rng is None else np.abs(rng.standard_normal(n_kernels))
        precisions = priors.bias.posterior(0, np.zeros(n_biases)), priors.kernel.posterior(0, np.zeros(n_kernels))
        biases = np.zeros(n_biases), np.ones(n_biases)
        return nonnegative_weights(biases, (size * location, np.full(n_kernels, size)), precisions, n_outputs)

    def _update(self, weights: NonnegativeWeights, evidence: Sequence[Evidence], priors: Priors) -> NonnegativeWeights:
        r"""
        Visit every factor.

        .. math:: q(e_m) = \mathcal{N}\Big(\frac{p_m - \sum_{n \ne m} A_{mn} \tilde e_n - \boldsymbol\ell_m^\top
                  \tilde{\boldsymbol b}}{A_{mm}},\; \frac{1}{A_{mm}}\Big)\,[e_m \ge 0]
        """
        precision, pull = precision_of(weights, evidence), pull_of(evidence)
        deviation = precision.kernels.diagonal() ** -0.5
        mean, location = _visit(precision, pull, weights.mean, deviation, self.n_passes)
        biases = mean[: weights.n_biases], 1.0 / precision.corner
        precisions = weights.bias_precision, weights.kernel_precision
        return nonnegative_weights(biases, (location, deviation), precisions, weights.n_outputs)


def _excess(t: float) -> float:
    """Compute the mean of a truncated normal variable as `truncated_excess` does, faster for one number."""
    if t > _SHALLOW:
        return float(t + _ROOT / erfcx(-t * 0.5**0.5))
    return float(truncated_excess(np.asarray(t)))


def _visit(precision: JointPrecision, pull: Array, mean: Array, deviation: Array, n_passes: int) -> tuple[Array, Array]:
    """Return the means of biases and weights, and the locations of the weights, after some passes."""
    n_biases = len(precision.corner)
    b, e = mean[:n_biases].copy(), mean[n_biases:].copy()
    location = np.empty_like(e)
    product = precision.kernels.coordinates(e)
    for _ in range(n_passes):
        b = (pull[:n_biases] - precision.link @ e) / precision.corner
        right = pull[n_biases:] - b @ precision.link
        for m, spread in enumerate(deviation.tolist()):
            location[m] = spread**2 * (right[m] - product.off_diagonal(m))
            moved = spread * _excess(location[m] / spread)
            product.move(m, moved - e[m])
            e[m] = moved
    return np.concatenate([b, e]), location


def strategy(*, bold: bool) -> Nonnegative:
    """Return weights that cannot be negative: there are no bold steps for them."""
    return Nonnegative()


PARTS = {NonnegativeWeights: {"location": "P", "deviation": "P > 0"}}
