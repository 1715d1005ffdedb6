"""The means of a and G solved together: a preconditioned Newton step (derivation, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bemkl.arrays import Array, finite_number, whole_number
from bemkl.inference.block_state import BlockState
from bemkl.inference.factors.intermediate import Intermediate
from bemkl.inference.factors.sample_weights import SampleWeights, sample_factor
from bemkl.inference.moments import WeightMoments
from bemkl.inference.newton.coupling import Coupling
from bemkl.inference.newton.extrapolation import RELAXATION
from bemkl.inference.newton.preconditioner import combined_kernel
from bemkl.inference.newton.steps import Steps, finish_group, look
from bemkl.inference.rows import MeanSums, Part, TargetSums, sums_of
from bemkl.inference.strategies import PairStep

_MANY = 128
"""Samples from which exact steps cost more than they gain."""

_WORTH = 0.1
"""Share of what a step gains that a covariance may cost by not following it."""


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
    def steps(self) -> Mapping[str, PairStep]:
        """The one update."""
        return {"sample_weights_and_intermediate": self._update}

    def start(self, here: BlockState, weights: WeightMoments) -> BlockState:
        """Return a block with a pair to begin with."""
        return update_means(here, weights, self.n_steps, self.good_length)

    def _update(self, here: BlockState, weights: WeightMoments) -> BlockState:
        return update_means(here, weights, self.n_steps, self.good_length)


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

    def _update(self, here: BlockState, weights: WeightMoments) -> BlockState:
        return update_means(here, weights, self.n_steps, self.good_length, relaxation=self.relaxation, boldly=True)


def update_means(
    here: BlockState,
    weights: WeightMoments,
    n_steps: int,
    good_length: float = 1.0,
    relaxation: float = 1.0,
    *,
    boldly: bool = False,
) -> BlockState:
    r"""
    Update q(a) and q(G): covariances, optimal unless they may stay, and means from one Newton step in both.

    With G eliminated, the step x of the means of a solves

    .. math:: \Big(\Lambda + \sum_i \mathbf{K}^{i\top} \mathbf{M}_i \mathbf{K}^i\Big)\,\boldsymbol x = \boldsymbol r

    approximately, by conjugate gradients. Products with the kernels are carried along, so that neither the new
    projections nor the new means of G need another pass over the stack.

    Boldly, targets do not stay where they are. Then a step for many samples saves what it can do without: the means of
    G follow it up to a part that is small, and the covariance of a stays where it would gain next to nothing. Fixed
    points are the same, but the bound need not rise.
    """
    context, n_samples = here.context(weights), here.intermediate.n_samples
    lam, upsilon = context.sample_precision, context.intermediate_precision
    roughly = boldly and n_samples >= _MANY
    steps = Steps(n_steps, good_length, roughly, n_samples)
    coupling = Coupling.of(context)
    rows, seen = here.rows.run(look, coupling, boldly)
    residual = seen.pull - lam * here.sample.mean

    mean, gain, groups = np.empty_like(residual), np.empty(len(residual)), _groups(here)
    rows, solvers, helper = combined_kernel(here, rows, coupling, seen, len(groups) == 1)
    for outputs in groups:
        rows, moved, gain[outputs] = steps.climb(
            rows, outputs, here.sample.mean[outputs], residual[outputs], lam[outputs], solvers(outputs)
        )
        rows, _ = rows.run(finish_group, outputs, relaxation)
        mean[outputs] = here.sample.mean[outputs] + relaxation * moved
    rows, (means, targets) = rows.run(settle, coupling)
    staying = (_loss_of_staying(here.sample, lam, upsilon) <= _WORTH * gain) & roughly
    sample = sample_factor(here.block.kernels, lam, upsilon, lambda o, _: mean[o], here.sample, staying)
    intermediate = Intermediate(coupling.spread, means, n_samples)
    return replace(here, sample=sample, intermediate=intermediate, rows=rows, targets=targets, helper=helper)


def settle(part: Part, coupling: Coupling) -> tuple[Part, tuple[MeanSums, TargetSums]]:
    """Put the groups of outputs together, and sum what everybody else needs of them."""
    done = part.work.done
    mean, projection = done[0] if len(done) == 1 else map(np.concatenate, zip(*done, strict=True))
    part = replace(part, mean=mean, projection=projection, work=None)
    return part, sums_of(part, coupling.spread.covariance.dense, coupling.context.weights)


def _groups(here: BlockState) -> list[slice]:
    """Cut the outputs into runs whose n_basis × n_basis matrices are together no larger than one array over G."""
    (n_kernels, n_samples, n_basis), n_outputs = here.block.shape, here.n_outputs
    step = max(1, n_outputs * n_kernels * n_samples // n_basis**2)
    return [slice(first, min(first + step, n_outputs)) for first in range(0, n_outputs, step)]


def _loss_of_staying(sample: SampleWeights, lam: Array, upsilon: Array) -> Array:
    r"""
    Bound what the lower bound loses if the covariances of a stay where their optimum has moved on.

    With x the eigenvalues of :math:`\Sigma^{1/2} \Delta\, \Sigma^{1/2}`, where :math:`\Delta` is the change of the
    precision, it loses :math:`\tfrac12 \sum (x - \log(1 + x))`. If no part of the precision shrinks by more than the
    share :math:`\rho`, that is at most (derivation, section 5)

    .. math:: \frac{1}{4 (1 - \rho)} \Big(\sum_d \frac{(\delta\tilde\lambda_d)^2}{\tilde\lambda_d}\,\Sigma_{dd}
              + \frac{(\delta\tilde\upsilon)^2}{\tilde\upsilon} \operatorname{tr}(\mathbf{C}\,\Sigma)\Big)

    Shapes: lam (n_outputs, n_basis), upsilon (n_outputs,); returns (n_outputs,).
    """
    parts, weights = np.column_stack([sample.diagonal, sample.scale]), np.column_stack([sample.variance, sample.trace])
    change = np.column_stack([lam, upsilon]) - parts
    # A part that was not there has no relative change.
    shares = np.divide(change, parts, out=np.full_like(parts, np.inf), where=parts > 0.0)
    squares: Array = np.einsum("ld,ld,ld->l", shares, change, weights)
    shrinks = -shares.min(axis=1)
    loss: Array = np.full(len(squares), np.inf)
    np.divide(0.25 * squares, 1.0 - np.maximum(shrinks, 0.0), out=loss, where=shrinks < 1.0)
    return loss
