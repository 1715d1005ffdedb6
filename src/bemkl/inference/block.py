"""One task: its samples with their kernels and labels or responses, its posterior, and what it says about weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array
from bemkl.distributions import Gamma, Precision, Priors
from bemkl.inference.matrices import Symmetric, is_dense
from bemkl.inference.moments import PairContext, WeightMoments
from bemkl.inference.pair import Intermediate, Kernels, SampleWeights
from bemkl.inference.protocols import AnyLikelihood, Likelihood, Stack, WeightPosterior, require_plug_in
from bemkl.inference.rows import (
    InMemory,
    InRows,
    Part,
    ProfileSums,
    Rows,
    TargetSums,
    curvature_matrix,
    curve,
    deviations,
    gather_locations,
    observe,
    rescale,
    retarget,
)

ASYMMETRY_TOLERANCE = 1e-6
"""Largest relative difference across the diagonal of a square training kernel."""


@dataclass(frozen=True, eq=False)
class Block:
    """
    Samples with their kernels and labels or responses; a task of multitask learning is a block.

    Parameters
    ----------
    stack : Stack
        Training kernels.
    likelihood : Likelihood
        Labels or responses of the same samples, one or more outputs.
    landmarks : bool
        Set it where the columns of the kernels are chosen basis points and happen to be as many as the samples.
        Otherwise square kernels have to be symmetric, because their columns are the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl.inference import Gaussian
    >>> from bemkl.kernels import DenseStack
    >>> block = Block(DenseStack(np.eye(3)[None]), Gaussian([0.5, 1.0, -1.0]))
    """

    stack: Stack
    likelihood: AnyLikelihood
    landmarks: bool = False

    def __post_init__(self) -> None:
        """Refuse kernels and labels or responses that do not fit each other."""
        require_plug_in("stack", self.stack, Stack, "DenseStack(kernels)")
        require_plug_in("likelihood", self.likelihood, Likelihood, "Probit(y) or Gaussian(y)")
        _, n_samples, n_basis = self.stack.shape
        if n_samples != self.likelihood.n_samples:
            raise ValueError(
                f"likelihood: has {self.likelihood.n_samples} samples, but the stack has kernels of {n_samples}. "
                "Pass the labels or responses of the rows of the kernels, in the same order."
            )
        if n_samples < 2:
            raise ValueError("stack: expected at least 2 samples, got 1. A model cannot be learned from one sample.")
        if n_samples == n_basis and not self.landmarks:
            asymmetry = self.stack.asymmetries().max()
            if asymmetry > ASYMMETRY_TOLERANCE:
                raise ValueError(
                    f"stack: square training kernels have to be symmetric, got a relative asymmetry of "
                    f"{asymmetry:.2g}. Average each kernel with its transpose if that is noise, or pass landmarks=True "
                    "if the columns are chosen basis points rather than the samples."
                )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""
        return self.stack.shape

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.likelihood.n_outputs

    def rows(self) -> Rows:
        """
        Return the samples, of which nothing is known yet.

        Returns
        -------
        Rows
            All samples in one part.
        """
        return InMemory((Part.of(self.stack, self.likelihood),))

    @lazy_property
    def kernels(self) -> Kernels:
        """What the sample weights need of all kernels together."""
        return Kernels(self.rows(), self.shape[0])

    def first_noise(self) -> Precision:
        """
        Return the factor of the noise precisions that goes with a predictor of zero.

        Returns
        -------
        Precision
            The factor.
        """
        nothing = np.zeros(self.n_outputs)
        _, targets = self.rows().run(observe, np.zeros(self.shape[0]), nothing)
        return self.likelihood.noise(targets.fit, nothing)


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


_MANY = 200
"""Kernels from which some products with the rows cost less than the sum of their squares."""


class Evidence:
    """
    The part of Eq. (4) that comes from one block.

    Parameters
    ----------
    here : BlockState
        The block.
    """

    __slots__ = ("_here",)

    def __init__(self, here: BlockState) -> None:
        self._here = here

    @property
    def bias_precision(self) -> Array:
        """Precision that the samples give each bias, shape (n_outputs,)."""
        precision: Array = self._here.tau * self._here.intermediate.n_samples
        return precision

    @property
    def bias_kernel_precision(self) -> Array:
        """Precision that links each bias with the kernel weights, shape (n_outputs, n_kernels)."""
        precision: Array = self._here.tau[:, None] * self._here.intermediate.sums.total
        return precision

    @property
    def kernel_precision(self) -> Symmetric:
        """Precision that the samples give the kernel weights, of size n_kernels."""
        return self._here.intermediate.second_moment(self._here.tau)

    @property
    def bias_pull(self) -> Array:
        """Linear term of each bias, shape (n_outputs,)."""
        pull: Array = self._here.tau * self._here.targets.total
        return pull

    @property
    def kernel_pull(self) -> Array:
        """Linear term of the kernel weights, shape (n_kernels,)."""
        pull: Array = self._here.tau @ self._here.targets.pull
        return pull

    @property
    def kernel_spread(self) -> Symmetric:
        """The part of `kernel_precision` that comes from the covariances of the intermediate outputs."""
        return self._here.intermediate.summed_spread(self._here.tau)

    def profile(self, weights: WeightMoments) -> tuple[ProfileSums, Symmetric]:
        """
        Sum the derivatives of the bound in the predictor, with its targets at their optimum.

        Parameters
        ----------
        weights : WeightMoments
            Kernel weights and biases at whose means they are taken.

        Returns
        -------
        sums : ProfileSums
            The sums.
        matrix : Symmetric of size n_kernels
            Outer products of the intermediate outputs times the curvatures of their samples.
        """
        rows, sums = self._here.rows.run(curve, self._here.tau, weights.mean, weights.bias, False)
        return sums, rows.run(curvature_matrix, is_dense(self.kernel_spread))[1]

    def missing(self, weights: WeightMoments) -> tuple[ProfileSums, Symmetric | InRows]:
        """
        Return the same, with curvatures counted from the precision of the targets down.

        Parameters
        ----------
        weights : WeightMoments
            Kernel weights and biases at whose means they are taken.

        Returns
        -------
        sums : ProfileSums
            The sums.
        matrix : Symmetric of size n_kernels, or InRows
            Outer products of the intermediate outputs times what is missing, to be multiplied with vectors.
        """
        many = len(weights.mean) > _MANY
        dense = not many and is_dense(self.kernel_spread)
        rows, sums = self._here.rows.run(curve, self._here.tau, weights.mean, weights.bias, True)
        return sums, InRows(rows) if many else rows.run(curvature_matrix, dense)[1]


PairStep = Callable[[BlockState, WeightMoments], BlockState]
"""One update of the pair (a, G), with the moments of the kernel weights."""

WeightT = TypeVar("WeightT")
WeightStep = Callable[[WeightT, Sequence[Evidence], Priors], WeightT]
"""One update of the kernel weights, with what the blocks say about them."""
