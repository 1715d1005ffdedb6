"""Steps of the means in the quadratic model of the bound: each goes to the best point of a plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bemkl._numerics.linalg import add_times
from bemkl.arrays import Array
from bemkl.inference.moments import Profile
from bemkl.inference.newton.coupling import Coupling, Energy, Samples
from bemkl.inference.rows import Part, Rows, predictor, profile_of

STEP_LENGTH = 1.3
"""
How far bold steps go. Updating two groups of means in turn closes a share of the remaining distance each time; going on
in the same direction closes more, and any factor below 2 keeps the quadratic part of the bound from falling. On the
paper's banks 1.2 to 1.4 are good (derivation, section 5).
"""


def beyond(old: Array, new: Array, step_length: float = STEP_LENGTH) -> Array:
    """Go from old to new means, and on in the same direction; the new ones may be lost."""
    new *= step_length
    add_times(new[None], np.array([1.0 - step_length]), old[None])
    return new


Solve = Callable[[Array], Array]

_RESIDUAL_FLOOR = 1e-28
_PARALLEL = 1e-8
_LARGE = 0.5
"""Share of another step from which its products are not added up but computed: adding enlarges their rounding."""


class Move(NamedTuple):
    """What kernels make of a change x of the means of a, for some samples."""

    projection: Array  # (n_outputs, n_kernels, n): K x
    coupled: Array | None  # (n_outputs, n_kernels, n): M K x, where it was computed


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What the tasks of one update hand on for their samples."""

    samples: Samples  # the quadratic model
    pull: tuple[Array, Array]  # what comes from the likelihood, as in `Samples.pull`
    coupled: Array  # (n_outputs, n_kernels, n): M K a at the means before the update
    step: Move | None = None  # what is tried
    other: Move | None = None  # the other direction of the plane: the step before, or the means themselves
    total: Move | None = None  # all steps so far
    done: tuple[tuple[Array, Array], ...] = ()  # means of G and new projections of the groups of outputs that are done

    @property
    def tried(self) -> Move:
        """The step that was tried last."""
        assert self.step is not None, "a step was tried"
        return self.step

    @property
    def direction(self) -> Move:
        """The other direction of the plane."""
        assert self.other is not None, "a group of outputs was begun"
        return self.other


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What the approximate systems of an update were made of, for some samples."""

    along: Array  # (n_outputs, n): the factors `Samples.along`
    weights: Array  # (n_kernels,): kernel weights
    combined: npt.NDArray[np.floating[Any]]  # (n, n_basis): kernels combined with these weights, columns over sizes


class Look(NamedTuple):
    """Sums at the means before the update."""

    pull: Array  # (n_outputs, n_basis): gradient of the bound in a, but for the prior
    sizes: Array  # (n_kernels,): squares of the projections
    change: Array  # (n_outputs,): squared distance of the factors `along` from those that were kept
    size: Array  # (n_outputs,): their squares


def look(part: Part, coupling: Coupling, moving_targets: bool) -> tuple[Part, Look]:
    """Build the quadratic model at the current means, with targets where they are or at their optimum."""
    weights, tau = coupling.context.weights, coupling.context.output_precision
    eta = predictor(part, weights.mean, weights.bias)
    profile = profile_of(part, tau, eta) if moving_targets else fixed_profile(part.targets.target, tau, eta)
    samples = Samples.of(coupling, profile.curvature)
    left, right = samples.pull(profile, eta)
    coupled = samples.couple(part.projection)
    # With means of G at their optimum, this is how far they are from the projections.
    apart = np.matmul(coupling.context.intermediate_precision[:, None, None] * left, right)
    apart -= coupled
    along, kept = samples.along, part.kept
    change = np.full(len(along), np.inf) if kept is None else np.square(along - kept.along).sum(axis=1)
    sizes = np.vecdot(part.projection, part.projection).sum(axis=0)
    found = Look(part.stack.backproject(apart), sizes, change, np.square(along).sum(axis=1))
    return replace(part, work=Work(samples, (left, right), coupled)), found


def fixed_profile(target: Array, tau: Array, eta: Array) -> Profile:
    """Return the bound's derivatives in the predictor with the targets where they are."""
    return Profile(tau[:, None] * (target - eta), np.broadcast_to(tau[:, None], eta.shape))


class Tried(NamedTuple):
    """Sums over a step z and the other direction of the plane, an output of the group."""

    energy: Energy  # quadratic form of the model along the step
    cross: Array  # its form between both
    bend: Array  # its form along the other


def begin(part: Part, outputs: slice) -> tuple[Part, None]:
    """Begin with a group of outputs: the first plane is that of a step and the means themselves."""
    other = Move(part.projection[outputs], part.work.coupled[outputs])
    return replace(part, work=replace(part.work, step=None, other=other, total=None)), None


def try_step(part: Part, z: Array, outputs: slice, n_samples: int, approximate: bool) -> tuple[Part, Tried]:
    """Multiply a step with the kernels. Shapes: z (n_outputs, n_basis)."""
    work: Work = part.work
    projection = part.stack.project(z)
    coupled = None if approximate else work.samples.couple(projection, outputs)
    if coupled is None:
        energy = work.samples.energy(projection, outputs, part.first, n_samples)
    else:
        energy = Energy.known(dot(projection, coupled))
    other = work.direction
    assert other.coupled is not None, "only the last step is not"
    cross, bend = dot(projection, other.coupled), dot(other.projection, other.coupled)
    return replace(part, work=replace(work, step=Move(projection, coupled))), Tried(energy, cross, bend)


def couple_step(part: Part, outputs: slice) -> tuple[Part, Energy]:
    """Compute what was estimated of a step."""
    work: Work = part.work
    coupled = work.samples.couple(work.tried.projection, outputs)
    step = Move(work.tried.projection, coupled)
    return replace(part, work=replace(work, step=step)), Energy.known(dot(step.projection, coupled))


def take_step(
    part: Part, outputs: slice, length: Array, share: Array, moved: Array | None, go_on: bool
) -> tuple[Part, Array | None]:
    """
    Go along the step and the other direction; where another step follows, return what the gradient loses.

    Where a large part of the other direction is taken, as where two long steps nearly cancel, its rounding would be
    enlarged with it, sweep after sweep: then the whole move is given, and its products are computed.

    Shapes: length, share (n_outputs,), moved, returns (n_outputs, n_basis).
    """
    work: Work = part.work
    step, other = work.tried, work.direction
    coupled = None
    if moved is None:
        projection = _sum(step.projection, length, other.projection, share)
        if step.coupled is not None and other.coupled is not None:
            coupled = _sum(step.coupled, length, other.coupled, share)
    else:
        projection = part.stack.project(moved)
        if step.coupled is not None:
            coupled = work.samples.couple(projection, outputs)
    total = move = Move(projection, coupled)
    if work.total is not None:
        whole = None if coupled is None or work.total.coupled is None else work.total.coupled + coupled
        total = Move(work.total.projection + projection, whole)
    loss = part.stack.backproject(coupled) if go_on and coupled is not None else None
    return replace(part, work=replace(work, step=None, other=move, total=total)), loss


def _sum(one: Array, length: Array, other: Array, share: Array) -> Array:
    """Add multiples of two arrays. Shapes: one, other (n_outputs, ...), length, share (n_outputs,)."""
    result: Array = length.reshape(-1, *[1] * (one.ndim - 1)) * one
    add_times(result, share, other)
    return result


def finish_group(part: Part, outputs: slice, step_length: float) -> tuple[Part, None]:
    r"""
    Find new projections, and means of G at their optimum after the steps of a group of outputs; then go on beyond both.

    .. math:: \mathbf{K}\tilde{\boldsymbol a} - \mathbf{M} \mathbf{K} \tilde{\boldsymbol a} / \tilde\upsilon
              + \text{pull}

    Where the coupled projection of the steps is not known, that of `Samples.approximate_coupling` takes its place: the
    coupling is small next to the precision of G, but for the direction of the kernel weights.
    """
    work: Work = part.work
    assert work.total is not None, "there was a step"
    upsilon, left, right = (
        work.samples.shared.context.intermediate_precision[outputs],
        *(factor[outputs] for factor in work.pull),
    )
    follows = np.ones(len(upsilon))
    if work.total.coupled is None:
        e, shares, across = work.samples.approximate_coupling(work.total.projection, outputs)
        left = np.concatenate([left, -e / upsilon[:, None, None]], axis=2)
        right = np.concatenate([right, shares], axis=1)
        follows -= across / upsilon
    mean = np.matmul(left, right)
    mean += part.projection[outputs]
    add_times(mean, follows, work.total.projection)
    for coupled in (work.coupled[outputs], work.total.coupled):
        if coupled is not None:
            add_times(mean, -1.0 / upsilon, coupled)
    projection = step_length * work.total.projection
    projection += part.projection[outputs]
    if step_length != 1.0:
        mean = beyond(part.mean[outputs], mean, step_length)
    done = (*work.done, (mean, projection))
    return replace(part, work=replace(work, step=None, other=None, total=None, done=done)), None


class Plane(NamedTuple):
    """The quadratic model over all sums of two directions, one entry an output."""

    rise: Array  # (n_outputs,): derivative along the first direction
    slope: Array  # (n_outputs,): derivative along the second direction
    curvature: Array  # (n_outputs,): curvature along the first direction
    cross: Array  # (n_outputs,): curvature between the two
    bend: Array  # (n_outputs,): curvature along the second direction

    def best(self, floor: Array) -> tuple[Array, Array]:
        """
        Maximise the model; over the first direction alone where the two are nearly the same.

        Shapes: floor (n_outputs,), derivatives along the first direction that are no more than rounding; returns
        length, share (n_outputs,), how far to go along each; the length is 0 where there is nothing to gain.
        """
        able = (self.rise > floor) & (self.curvature > 0.0)
        determinant = self.curvature * self.bend - self.cross**2
        both = able & (determinant > _PARALLEL * self.curvature * self.bend)
        length = np.divide(self.rise, self.curvature, out=np.zeros_like(self.rise), where=able)
        share = np.zeros_like(self.rise)
        np.divide(self.bend * self.rise - self.cross * self.slope, determinant, out=length, where=both)
        np.divide(self.curvature * self.slope - self.cross * self.rise, determinant, out=share, where=both)
        return length, share

    def gain(self, length: Array, share: Array) -> Array:
        """Return what the model rises by at its best. Shapes: all (n_outputs,)."""
        gain: Array = 0.5 * (length * self.rise + share * self.slope)
        return gain


@dataclass(frozen=True, slots=True)
class Steps:
    """How many steps an update takes, and how."""

    most: int  # most steps
    good_length: float  # steps end when their lengths are between 1 / good_length and good_length
    approximate: bool  # whether one step may do with an estimate of its curvature, and without its coupled projection
    n_samples: int  # number of samples of the block

    def are_good(self, length: Array) -> bool:
        """Say whether steps are about as long as with a perfect preconditioner, or there is nothing to gain."""
        well = (length > 1.0 / self.good_length) & (length < self.good_length)
        return bool((well | (length == 0.0)).all())

    def climb(
        self, rows: Rows, outputs: slice, here: Array, residual: Array, lam: Array, solvers: Sequence[Solve]
    ) -> tuple[Rows, Array, Array]:
        """
        Move a group of outputs from the current means of a to where the quadratic model is higher.

        Every step is the best one in the plane of the preconditioned residual and another direction. That is the step
        before, which makes these conjugate gradients; and at first the means themselves, whose scale moves slowly and
        whose products are known.

        Shapes: here, residual, lam (n_outputs, n_basis); returns moved (n_outputs, n_basis), gain (n_outputs,).
        """
        rows, _ = rows.run(begin, outputs)
        r, other, moved = residual, here, np.zeros_like(here)
        floor, gain = np.zeros(len(residual)), np.zeros(len(residual))
        for number in range(self.most):
            z = np.stack([solve(row) for solve, row in zip(solvers, r, strict=True)])
            floor = floor if number else _RESIDUAL_FLOOR * dot(r, z)
            approximate = self.approximate and number == 0
            rows, tried = rows.run(try_step, z, outputs, self.n_samples, approximate)
            plane = Plane(
                rise=dot(r, z),
                slope=dot(r, other),
                curvature=dot(lam * z, z) + tried.energy.total(self.n_samples),
                cross=dot(lam * z, other) + tried.cross,
                bend=dot(lam * other, other) + tried.bend,
            )
            length, share = plane.best(floor)
            good = self.are_good(length)
            if approximate and not good:
                rows, energy = rows.run(couple_step, outputs)
                plane = plane._replace(curvature=dot(lam * z, z) + energy.total(self.n_samples))
                length, share = plane.best(floor)
                good = self.are_good(length)
            move = length[:, None] * z + share[:, None] * other
            last = good or number == self.most - 1
            far = np.abs(share).max() > _LARGE
            rows, loss = rows.run(take_step, outputs, length, share, move if far else None, not last)
            gain += plane.gain(length, share)
            moved += move
            if last or loss is None:
                break
            r = r - lam * move - loss
            other = move
        return rows, moved, gain


def dot(left: Array, right: Array) -> Array:
    """
    Sum the products of two arrays over all axes but the first.

    Shapes: left, right (n_outputs, ...); returns (n_outputs,).
    """
    return np.array([np.vdot(one, two) for one, two in zip(left, right, strict=True)])
