"""Strategies for the pair (a, G): the paper's two updates in turn, or both means solved together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bemkl.arrays import Array, finite_number, whole_number
from bemkl.inference.graded import GradedFactor, PrecisionFactor
from bemkl.inference.joint_means import fixed_targets, update_means
from bemkl.inference.mean_field import MeanFieldPair, unit_pair
from bemkl.inference.moments import PairContext
from bemkl.inference.pair_factors import intermediate_covariance, intermediate_factor, sample_factor
from bemkl.inference.preconditioners import Preconditioner, combined_kernel, sample_precision
from bemkl.inference.protocols import PairStep, Stack
from bemkl.inference.relaxation import RELAXATION
from bemkl.linalg import Cholesky, refined_solve

_STARTING_STEPS = 3


def fitted_pair(
    stack: Stack,
    context: PairContext,
    n_steps: int,
    good_length: float = 1.0,
    preconditioner: Preconditioner = combined_kernel,
) -> MeanFieldPair:
    """
    Return the pair that joint means makes of zero means, to start with.

    From zero means themselves, the paper's updates can take dozens of sweeps to leave, or stay there for good.
    """
    n_kernels, n_samples, n_basis = stack.shape
    n_outputs = len(context.target)
    zero = unit_pair(stack, np.zeros((n_outputs, n_basis)), np.zeros((n_outputs, n_kernels, n_samples)))
    return update_means(stack, zero, context, fixed_targets(context), n_steps, good_length, preconditioner)


@dataclass(frozen=True, slots=True)
class Plain:
    """The paper's updates: q(a) with q(G) fixed, then q(G) with q(a) fixed."""

    @property
    def cautious(self) -> Plain:
        """Itself: no step lowers the bound."""
        return self

    @property
    def steps(self) -> Mapping[str, PairStep[MeanFieldPair]]:
        """The two updates, in order."""
        return {"sample_weights": update_sample_weights, "intermediate": update_intermediate}

    def start(self, stack: Stack, context: PairContext) -> MeanFieldPair:
        """
        Return a pair to begin with, the same for every form of the same kernels.

        Parameters
        ----------
        stack : Stack
            Training kernels.
        context : PairContext
            First expectations of the neighbours.

        Returns
        -------
        MeanFieldPair
            The pair.
        """
        return fitted_pair(stack, context, _STARTING_STEPS, preconditioner=sample_precision)


def update_sample_weights(stack: Stack, pair: MeanFieldPair, context: PairContext) -> MeanFieldPair:
    r"""
    Update q(a), Eq. (3).

    .. math:: \mu(\boldsymbol a)
              = \tilde\upsilon\,\Sigma(\boldsymbol a) \sum_m \mathbf{K}_m^\top \tilde{\boldsymbol g}^m
    """
    gram, lam, upsilon = stack.gram(), context.sample_precision, context.intermediate_precision
    pull = upsilon[:, None] * stack.backproject(pair.intermediate.mean)

    def mean_of(o: int, factor: PrecisionFactor | None) -> Array:
        assert factor is not None, "no covariance stays"
        if isinstance(factor, Cholesky):
            return refined_solve(
                factor.solve, lambda mean: pull[o] - lam[o] * mean - upsilon[o] * (gram @ mean), pull[o]
            )
        return _climbed(stack, factor, pair.sample.mean[o], pair.intermediate.mean[o], (lam[o], float(upsilon[o])))

    sample = sample_factor(stack, context, mean_of)
    return replace(pair, sample=sample, projection=stack.project(sample.mean))


def _climbed(
    stack: Stack, factor: GradedFactor, mean: Array, intermediate: Array, precisions: tuple[Array, float]
) -> Array:
    r"""
    Return means of a after some steps from the current ones, each as long as is best.

    .. math:: \boldsymbol r = \tilde\upsilon \sum_m \mathbf{K}_m^\top (\tilde{\boldsymbol g}^m - \mathbf{K}_m
              \tilde{\boldsymbol a}) - \tilde{\boldsymbol\lambda} \circ \tilde{\boldsymbol a}, \qquad
              \boldsymbol x = \Sigma(\boldsymbol a)\,\boldsymbol r, \qquad
              \tilde{\boldsymbol a} \leftarrow \tilde{\boldsymbol a} + \frac{\boldsymbol x^\top \boldsymbol r}
              {\boldsymbol x^\top \Sigma(\boldsymbol a)^{-1} \boldsymbol x}\,\boldsymbol x

    The first step would be the last one without rounding. With it, a step that lowers the bound is not taken.
    """
    lam, upsilon = precisions
    apart = intermediate - stack.project(mean[None])[0]
    loss = upsilon * float(np.vdot(apart, apart)) + float(lam * mean @ mean)
    for _ in range(_STARTING_STEPS):
        step = factor.solve(upsilon * stack.backproject(apart[None])[0] - lam * mean)
        projected = stack.project(step[None])[0]
        # From the projection, which is exact where products with the residual are rounding.
        slope = upsilon * float(np.vdot(projected, apart)) - float(lam * mean @ step)
        curvature = upsilon * float(np.vdot(projected, projected)) + float(lam * step @ step)
        # Squares of the smallest numbers are zero: no length of a step is the best one then.
        if not (0.0 < slope < np.inf and 0.0 < curvature < np.inf):
            break
        reached = mean + slope / curvature * step
        apart = intermediate - stack.project(reached[None])[0]
        previous, loss = loss, upsilon * float(np.vdot(apart, apart)) + float(lam * reached @ reached)
        if not loss < previous:
            break
        mean = reached
    return mean


def update_intermediate(stack: Stack, pair: MeanFieldPair, context: PairContext) -> MeanFieldPair:
    """Update q(G), after Eq. (3)."""
    return replace(pair, intermediate=intermediate_factor(pair.projection, *intermediate_covariance(context), context))


@dataclass(frozen=True, slots=True)
class JointMeans:
    """
    Same factors as `Plain`, both means solved together (derivation, section 5).

    With the covariances at their optimum, which does not depend on the means, eliminating G from the bound leaves a
    quadratic in the means of a. One preconditioned conjugate gradient step from the current means raises it by more
    than many plain iterations; no step lowers it.

    Parameters
    ----------
    n_steps : int
        Most conjugate gradient steps an update.
    good_length : float
        Steps end when their lengths are between 1 / good_length and good_length: with a good preconditioner the first
        one has a length of about 1, and more of them hardly pay. At 1 they go on.
    """

    n_steps: int = 8
    good_length: float = 3.0

    def __post_init__(self) -> None:
        """Refuse an update that does nothing."""
        whole_number("n_steps", self.n_steps, least=1)
        finite_number("good_length", self.good_length, least=1.0, allow_least=True)

    @property
    def cautious(self) -> JointMeans:
        """Itself: no step lowers the bound."""
        return self

    @property
    def steps(self) -> Mapping[str, PairStep[MeanFieldPair]]:
        """The one update."""
        return {"sample_weights_and_intermediate": self._update}

    def start(self, stack: Stack, context: PairContext) -> MeanFieldPair:
        """
        Return a pair to begin with.

        Parameters
        ----------
        stack : Stack
            Training kernels.
        context : PairContext
            First expectations of the neighbours.

        Returns
        -------
        MeanFieldPair
            The pair.
        """
        return fitted_pair(stack, context, self.n_steps, self.good_length)

    def _update(self, stack: Stack, pair: MeanFieldPair, context: PairContext) -> MeanFieldPair:
        return update_means(stack, pair, context, fixed_targets(context), self.n_steps, self.good_length)


@dataclass(frozen=True, slots=True)
class NewtonMeans(JointMeans):
    r"""
    Same factors as `JointMeans`, with means that do not wait for the targets (derivation, section 5).

    With q(f) fixed, the bound has the curvature :math:`\tilde\tau` in each mean of the predictor. With q(f) at its
    optimum, it has the curvature :math:`w_i \le \tilde\tau` of the likelihood's profile: much less for samples far on
    their side of the margin. One Newton step uses it, and goes on in the same direction. With many samples it leaves
    out what it can do without. It can overshoot; the engine then falls back on `JointMeans`.

    Parameters
    ----------
    n_steps : int
        Most conjugate gradient steps an update.
    good_length : float
        Lengths that end the steps, as in `JointMeans`.
    relaxation : float
        Length of the whole step relative to Newton's.
    """

    relaxation: float = RELAXATION

    @property
    def cautious(self) -> JointMeans:
        """Joint means with the targets fixed."""
        return JointMeans(self.n_steps, self.good_length)

    def _update(self, stack: Stack, pair: MeanFieldPair, context: PairContext) -> MeanFieldPair:
        return update_means(
            stack,
            pair,
            context,
            context.profile,
            self.n_steps,
            self.good_length,
            relaxation=self.relaxation,
            roughly=True,
        )
