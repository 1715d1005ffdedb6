"""The paper's way with the pair (a, G): the factor of one with that of the other fixed (section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bemkl._numerics.linalg import Cholesky, RootFactor, refined_solve
from bemkl.arrays import Array
from bemkl.inference.block import BlockState, PairStep
from bemkl.inference.moments import PairContext, WeightMoments
from bemkl.inference.pair import (
    Intermediate,
    PerOutput,
    PrecisionFactor,
    optimal_mean,
    optimal_spread,
    precision_factor,
    sample_factor,
)
from bemkl.inference.rows import MeanSums, Part, Rows, TargetSums, blocks_of, sums_of

_MOST_STEPS = 3


@dataclass(frozen=True, slots=True)
class Plain:
    """The paper's updates: q(a) with q(G) fixed, then q(G) with q(a) fixed."""

    @property
    def cautious(self) -> Plain:
        """Itself: no step lowers the bound."""
        return self

    @property
    def steps(self) -> Mapping[str, PairStep]:
        """The two updates, in order."""
        return {"sample_weights": update_sample_weights, "intermediate": update_intermediate}

    def start(self, here: BlockState, weights: WeightMoments) -> BlockState:
        """Return a block with a pair to begin with: sample weights by ridge regression on the combined kernel."""
        return update_intermediate(regress(here, weights), weights)


def regress(here: BlockState, weights: WeightMoments) -> BlockState:
    r"""
    Give a the means of a ridge regression of the targets, and its optimal covariance.

    With G integrated out, :math:`\tilde f_i \sim \mathcal{N}(\tilde{\boldsymbol e}^\top\mathbf{K}^i\boldsymbol a
    + \tilde b, 1/c)` with :math:`1/c = 1/\tilde\tau + \lVert\tilde{\boldsymbol e}\rVert^2/\tilde\upsilon`, so that

    .. math:: (\tilde\Lambda + c\,\mathbf{K}_e^\top\mathbf{K}_e)\,\mu(\boldsymbol a)
              = c\,\mathbf{K}_e^\top(\tilde{\boldsymbol f} - \tilde b),
              \qquad \mathbf{K}_e = \sum_m \tilde e_m \mathbf{K}_m
    """
    lam, upsilon, tau = here.sample_precision.mean, here.upsilon, here.tau
    rows, (squares, pull) = here.rows.run(combine, weights.mean, weights.bias)
    c = 1.0 / (1.0 / tau + (weights.mean @ weights.mean) / upsilon)

    def mean_of(o: int, _: PrecisionFactor | None) -> Array:
        return precision_factor(squares, lam[o], float(c[o])).solve(c[o] * pull[o])

    sample = sample_factor(here.block.kernels, lam, upsilon, mean_of)
    rows, _ = rows.run(project, sample.mean)
    return replace(here, sample=sample, rows=rows)


def combine(part: Part, e: Array, b: Array) -> tuple[Part, tuple[Array, Array]]:
    """
    Sum the squares of the combined kernel, and its products with the targets.

    Shapes: e (n_kernels,), b (n_outputs,); returns (n_basis, n_basis), (n_outputs, n_basis).
    """
    combined = np.concatenate([np.tensordot(e, rows, axes=1) for _, rows in blocks_of(part.stack)])
    return part, (combined.T @ combined, (part.targets.target - b[:, None]) @ combined)


def update_sample_weights(here: BlockState, weights: WeightMoments) -> BlockState:
    r"""
    Update q(a), Eq. (3).

    .. math:: \mu(\boldsymbol a)
              = \tilde\upsilon\,\Sigma(\boldsymbol a) \sum_m \mathbf{K}_m^\top \tilde{\boldsymbol g}^m
    """
    kernels, lam, upsilon = here.block.kernels, here.sample_precision.mean, here.upsilon
    rows, pull = here.rows.run(backproject)
    pull = upsilon[:, None] * pull

    def mean_of(o: int, factor: PrecisionFactor | None) -> Array:
        assert factor is not None, "no covariance stays"
        if isinstance(factor, Cholesky):
            return refined_solve(
                factor.solve, lambda mean: pull[o] - lam[o] * mean - upsilon[o] * (kernels.gram @ mean), pull[o]
            )
        return _climbed(rows, o, factor, here.sample.mean[o], (lam[o], float(upsilon[o])))

    sample = sample_factor(kernels, lam, upsilon, mean_of)
    rows, residual = rows.run(project, sample.mean)
    sums = here.intermediate.sums._replace(residual=residual)
    return replace(here, sample=sample, rows=rows, intermediate=replace(here.intermediate, sums=sums))


def backproject(part: Part) -> tuple[Part, Array]:
    """Sum the kernels against the means of G. Shapes: returns (n_outputs, n_basis)."""
    return part, part.stack.backproject(part.mean)


def project(part: Part, a: Array) -> tuple[Part, Array]:
    """Give the sample weights new means; sum the squared distances of G. Shapes: a (n_outputs, n_basis)."""
    projection = part.stack.project(a)
    apart = part.mean - projection
    return replace(part, projection=projection), np.vecdot(apart, apart).sum(axis=1)


def _climbed(rows: Rows, output: int, factor: RootFactor, mean: Array, precisions: tuple[Array, float]) -> Array:
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
    rows, apart = rows.run(distance, output, mean)
    loss = upsilon * apart.square + float(lam * mean @ mean)
    for _ in range(_MOST_STEPS):
        step = factor.solve(upsilon * apart.pull - lam * mean)
        rows, along = rows.run(measure, output, mean, step)
        # From the projection, which is exact where products with the residual are rounding.
        slope = upsilon * along.slope - float(lam * mean @ step)
        curvature = upsilon * along.square + float(lam * step @ step)
        # Squares of the smallest numbers are zero: no length of a step is the best one then.
        if not (0.0 < slope < np.inf and 0.0 < curvature < np.inf):
            break
        reached = mean + slope / curvature * step
        rows, apart = rows.run(distance, output, reached)
        previous, loss = loss, upsilon * apart.square + float(lam * reached @ reached)
        if not loss < previous:
            break
        mean = reached
    return mean


class Distance(NamedTuple):
    """How far the means of G of one output are from their projections."""

    pull: Array  # (n_basis,): the kernels against the differences
    square: float  # sum of their squares


class Along(NamedTuple):
    """What a step of the means of a does to the projections of one output."""

    slope: float  # product of the change with the distance that is left
    square: float  # its square


def _apart(part: Part, output: int, mean: Array) -> Array:
    apart: Array = part.mean[output] - part.stack.project(mean[None])[0]
    return apart


def distance(part: Part, output: int, mean: Array) -> tuple[Part, Distance]:
    """Compare the means of G with what means of a make of the kernels. Shapes: mean (n_basis,)."""
    apart = _apart(part, output, mean)
    return part, Distance(part.stack.backproject(apart[None])[0], float(np.vdot(apart, apart)))


def measure(part: Part, output: int, mean: Array, step: Array) -> tuple[Part, Along]:
    """Look along a step of the means of a. Shapes: mean, step (n_basis,)."""
    change = part.stack.project(step[None])[0]
    return part, Along(float(np.vdot(change, _apart(part, output, mean))), float(np.vdot(change, change)))


def update_intermediate(here: BlockState, weights: WeightMoments) -> BlockState:
    """Update q(G), after Eq. (3)."""
    context = here.context(weights)
    spread = optimal_spread(context)
    rows, (means, targets) = here.rows.run(place, spread.covariance, context)
    intermediate = Intermediate(spread, means, here.intermediate.n_samples)
    return replace(here, intermediate=intermediate, rows=rows, targets=targets)


def place(part: Part, covariance: PerOutput, context: PairContext) -> tuple[Part, tuple[MeanSums, TargetSums]]:
    """Give G its optimal means for the sample weights and targets as they are."""
    part = replace(part, mean=optimal_mean(part.projection, part.targets.target, covariance, context))
    return part, sums_of(part, covariance.dense, context.weights)
