"""Kernel weights that are independent in the posterior: cost and memory linear in the number of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bemkl.distributions import Priors
from bemkl.inference.block import Evidence, WeightStep
from bemkl.inference.moments import JointCovariance
from bemkl.inference.weights.free import (
    Free,
    FreeWeights,
    precision_of,
    pull_of,
    update_bias_precision,
    update_kernel_precision,
)
from bemkl.inference.weights.newton import newton_mean, update_kernel_precision_boldly


@dataclass(frozen=True, slots=True)
class Factorized(Free):
    r"""
    Biases and kernel weights with a factor each, :math:`q(\boldsymbol b) \prod_m \mathcal{N}(e_m)`.

    Given the variances, which do not depend on the means, the bound is a quadratic in all means together: they are
    those of the joint Gaussian, and each variance is one over an entry on the diagonal of its precision
    (docs/weights.md).

    Parameters
    ----------
    bold : bool
        Whether means take Newton steps and precisions the steps of their fixed-point equation, as in
        `NewtonWeights`.

    Examples
    --------
    >>> Factorized(bold=True).cautious
    Factorized(bold=False)
    """

    poolable: ClassVar[bool] = False  # pooled weights depend on each other

    bold: bool = False

    @property
    def cautious(self) -> Factorized:
        """The steps of coordinate ascent."""
        return Factorized() if self.bold else self

    @property
    def balanced(self) -> bool:
        """Whether sweeps look for the best scale: bold ones do."""
        return self.bold

    @property
    def steps(self) -> Mapping[str, WeightStep[FreeWeights]]:
        """The three updates, in order."""
        return {
            "bias_precision": update_bias_precision,
            "kernel_precision": update_kernel_precision_boldly if self.bold else update_kernel_precision,
            "kernel_weights": self._update,
        }

    def _update(self, weights: FreeWeights, evidence: Sequence[Evidence], priors: Priors) -> FreeWeights:
        precision = precision_of(weights, evidence)
        solve = precision.solver().solve
        product = precision @ weights.mean
        mean = newton_mean(weights, evidence, product, solve) if self.bold else solve(pull_of(evidence))
        variance = 1.0 / precision.diagonal()
        return replace(
            weights,
            mean=mean,
            covariance=JointCovariance.independent(variance, weights.n_biases),
            logdet=float(np.log(variance).sum()),
        )


def strategy(*, bold: bool) -> Factorized:
    """Return independent weights."""
    return Factorized(bold)
