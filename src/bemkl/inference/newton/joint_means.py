"""The means of a and G solved together: a preconditioned Newton step (derivation, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl._numerics.linalg import Cholesky, SingleCholesky, add_times
from bemkl.arrays import Array, finite_number, whole_number
from bemkl.inference.block import BlockState, PairStep
from bemkl.inference.moments import WeightMoments
from bemkl.inference.newton.coupling import Coupling
from bemkl.inference.newton.steps import STEP_LENGTH, Kept, Look, Solve, Steps, finish_group, look
from bemkl.inference.pair import Intermediate, SampleWeights, sample_factor
from bemkl.inference.rows import MeanSums, Part, Rows, TargetSums, sums_of

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
    step_length : float
        Length of the whole step relative to Newton's.
    """

    step_length: float = STEP_LENGTH

    @property
    def cautious(self) -> JointMeans:
        """Joint means with the targets fixed."""
        return JointMeans(self.n_steps, self.good_length)

    def _update(self, here: BlockState, weights: WeightMoments) -> BlockState:
        return update_means(here, weights, self.n_steps, self.good_length, step_length=self.step_length, boldly=True)


def update_means(
    here: BlockState,
    weights: WeightMoments,
    n_steps: int,
    good_length: float = 1.0,
    step_length: float = 1.0,
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
    approximate = boldly and n_samples >= _MANY
    steps = Steps(n_steps, good_length, approximate, n_samples)
    coupling = Coupling.of(context)
    rows, seen = here.rows.run(look, coupling, boldly)
    residual = seen.pull - lam * here.sample.mean

    mean, gain, groups = np.empty_like(residual), np.empty(len(residual)), _groups(here)
    rows, solvers, helper = combined_kernel(here, rows, coupling, seen, len(groups) == 1)
    for outputs in groups:
        rows, moved, gain[outputs] = steps.climb(
            rows, outputs, here.sample.mean[outputs], residual[outputs], lam[outputs], solvers(outputs)
        )
        rows, _ = rows.run(finish_group, outputs, step_length)
        mean[outputs] = here.sample.mean[outputs] + step_length * moved
    rows, (means, targets) = rows.run(settle, coupling)
    staying = (_loss_of_staying(here.sample, lam, upsilon) <= _WORTH * gain) & approximate
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


Floating = np.floating[Any]

_NAME = "sample weights"
_LARGE = 256
"""Basis points from which single precision saves time."""
_CLOSE = 0.3
"""How far a system may be from the current one, relative to its size: up to here it takes no more sweeps."""


@dataclass(frozen=True, slots=True, eq=False)
class CombinedKernel:
    r"""
    An approximate system for each output, and its solvers.

    .. math:: \Lambda + \kappa\,\mathbf{C} + \mathbf{K}_e^\top \operatorname{diag}(\boldsymbol c)\,\mathbf{K}_e,
              \qquad \mathbf{K}_e = \sum_m \tilde e_m \mathbf{K}_m

    The factors c of the samples are in their parts.
    """

    weights: Array  # (n_kernels,): kernel weights that the combined kernel is made with
    across: Array  # (n_outputs,): the factors κ
    sample_precision: Array  # (n_outputs, n_basis): expected precisions of the sample weights
    solvers: Sequence[Solve] | None  # one an output; None where all together take too much memory

    def has_same_kernel(self, coupling: Coupling, seen: Look) -> bool:
        """Say whether the combined kernel is close to the current one."""
        # A kernel matters by its weight times what it makes of the means.
        sizes = np.sqrt(seen.sizes)
        return bool(_close((sizes * self.weights)[None], (sizes * coupling.context.weights.mean)[None])[0])

    def serves(self, coupling: Coupling, seen: Look) -> npt.NDArray[np.bool_]:
        """Say for which outputs the rest of the system is close to the current one. Shapes: returns (n_outputs,)."""
        along = np.sqrt(seen.change) <= _CLOSE * np.sqrt(seen.size)
        across = _close(self.across[:, None], coupling.across[:, None])
        return along & across & _close(self.sample_precision, coupling.context.sample_precision)


def _close(old: Array, new: Array) -> npt.NDArray[np.bool_]:
    """Say which rows have hardly changed."""
    close: npt.NDArray[np.bool_] = np.linalg.norm(new - old, axis=1) <= _CLOSE * np.linalg.norm(new, axis=1)
    return close


@dataclass(frozen=True, slots=True, eq=False)
class Systems:
    """The approximate systems of all outputs, from rows that have kept the combined kernel."""

    rows: Rows  # rows after `keep`
    gram: Array  # (n_basis, n_basis): sum of the squared kernels
    sizes: Array  # (n_basis,): what the columns of the combined kernel were divided by
    most: Array  # (n_outputs,): numbers that the factors of samples are hardly larger than
    across: Array  # (n_outputs,): the factors κ
    sample_precision: Array  # (n_outputs, n_basis): expected precisions of the sample weights

    def matrices(self, outputs: npt.NDArray[np.intp], kind: type[Floating]) -> Iterator[Array]:
        """Sum the systems of some outputs, the squares of the combined kernel in single or double precision."""
        _, sums = self.rows.run(weigh, outputs, self.most[outputs], kind)
        for o, total in zip(outputs, sums, strict=True):
            system = np.multiply(total, self.most[o] * self.sizes, dtype=np.float64)
            system *= self.sizes[:, None]
            add_times(system[None], self.across[o : o + 1], self.gram[None])
            system.flat[:: len(system) + 1] += self.sample_precision[o]
            yield system

    def solvers(self, outputs: slice) -> list[Solve]:
        """Factor the systems of some outputs: large ones in single precision, unless that is not enough."""
        numbers = np.arange(len(self.across))[outputs]
        if len(self.gram) >= _LARGE:
            with suppress(np.linalg.LinAlgError):
                return [SingleCholesky.of(system, _NAME).solve for system in self.matrices(numbers, np.float32)]
        return [Cholesky.of(system, _NAME, overwrite=True).solve for system in self.matrices(numbers, np.float64)]


Solvers = Callable[[slice], Sequence[Solve]]
"""Maps some outputs to their solvers."""


def combined_kernel(
    here: BlockState, rows: Rows, coupling: Coupling, seen: Look, together: bool
) -> tuple[Rows, Solvers, CombinedKernel]:
    r"""
    Precondition by the combined kernel.

    With :math:`\mathbf{M}_i \approx c_i\,\tilde{\boldsymbol e}\tilde{\boldsymbol e}^\top + \kappa\,\mathbf{I}` the sum
    over all pairs of kernels collapses to two matrices: the combined kernel and the gram matrix. A system serves for
    later updates as long as it is close to the current one, and where all outputs are asked for together, so do its
    solvers.
    """
    last, context, gram = here.helper, coupling.context, here.block.kernels.gram
    weights, across, lam = context.weights.mean, coupling.across, context.sample_precision
    serving = np.zeros(here.n_outputs, dtype=bool)
    if last is not None and last.has_same_kernel(coupling, seen):
        serving, weights = last.serves(coupling, seen), last.weights
        across, lam = np.where(serving, last.across, across), np.where(serving[:, None], last.sample_precision, lam)
        if serving.all() and last.solvers is not None:
            return rows, last.solvers.__getitem__, last
    # No entry of a column of the combined kernel is larger than its size.
    sizes = np.linalg.norm(weights) * np.sqrt(gram.diagonal())
    sizes[sizes == 0.0] = 1.0
    rows, _ = rows.run(keep, weights, serving, sizes, np.float32 if len(gram) >= _LARGE else np.float64)
    most = 1.0 / (1.0 / context.output_precision + coupling.squared / context.intermediate_precision)
    systems = Systems(rows, gram, sizes, most, across, lam)
    if not together:
        return rows, systems.solvers, CombinedKernel(weights, across, lam, None)
    known = [] if last is None or last.solvers is None else last.solvers
    whole = [known[o] if known and serving[o] else systems.solvers(slice(o, o + 1))[0] for o in range(here.n_outputs)]
    return rows, whole.__getitem__, CombinedKernel(weights, across, lam, whole)


def keep(
    part: Part, weights: Array, serving: npt.NDArray[np.bool_], sizes: Array, kind: type[Floating]
) -> tuple[Part, None]:
    """
    Note what the systems are made of: what it was for outputs that it serves, the current factors for others.

    Columns of the combined kernel are divided by their sizes, for the range of single precision.
    """
    along, kept = part.work.samples.along, part.kept
    if kept is not None and np.array_equal(kept.weights, weights):
        combined = kept.combined
    else:
        combined = (part.stack.combine_approximately(weights) / sizes).astype(kind, copy=False)
    if kept is not None:
        along = np.where(serving[:, None], kept.along, along)
    return replace(part, kept=Kept(along, weights, combined)), None


def weigh(
    part: Part, numbers: npt.NDArray[np.intp], most: Array, kind: type[Floating]
) -> tuple[Part, tuple[npt.NDArray[Any], ...]]:
    """
    Sum the squares of the combined kernel, for some outputs with the factors of their samples over the largest.

    Shapes: numbers, most (n_chosen,); returns n_chosen matrices (n_basis, n_basis).
    """
    kept: Kept = part.kept
    factors = np.sqrt(kept.along[numbers] / most[:, None]).astype(kind)
    roots = [factor[:, None] * kept.combined for factor in factors]
    return part, tuple(root.T @ root for root in roots)
