"""Moves of the means in the quadratic model of the bound: each is the best one in a plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.coupling import Coupling
from bemkl.inference.protocols import Stack
from bemkl.linalg import add_times

Solve = Callable[[Array], Array]

_RESIDUAL_FLOOR = 1e-28
_PARALLEL = 1e-8
_LARGE = 0.5
"""Share of another move from which its products are not added up but computed: adding enlarges their rounding."""


class Move(NamedTuple):
    """A move x of the means of a, with what the kernels make of it."""

    mean: Array  # (n_outputs, n_basis): the move
    projection: Array  # (n_outputs, n_kernels, n_samples): kernels times the move, K x
    # (n_outputs, n_kernels, n_samples): coupled kernels times the move, M K x, where that was computed
    coupled: Array | None = None


class Plane(NamedTuple):
    """The quadratic model over all sums of two moves, one entry an output."""

    rise: Array  # (n_outputs,): derivative along the first move
    slope: Array  # (n_outputs,): derivative along the second move
    curvature: Array  # (n_outputs,): curvature along the first move
    cross: Array  # (n_outputs,): curvature between the two
    bend: Array  # (n_outputs,): curvature along the second move

    @classmethod
    def of(cls, residual: Array, move: Move, energy: Array, other: Move, lam: Array) -> Plane:
        """Compute the model. Shapes: residual (n_outputs, n_basis), energy (n_outputs,), lam (n_outputs, n_basis)."""
        assert other.coupled is not None, "the second move is coupled"
        return cls(
            rise=dot(residual, move.mean),
            slope=dot(residual, other.mean),
            curvature=dot(lam * move.mean, move.mean) + energy,
            cross=dot(lam * move.mean, other.mean) + dot(move.projection, other.coupled),
            bend=dot(lam * other.mean, other.mean) + dot(other.projection, other.coupled),
        )

    def best(self, floor: Array) -> tuple[Array, Array]:
        """
        Maximise the model; over the first move alone where the two are nearly the same.

        Shapes: floor (n_outputs,); returns length (n_outputs,), share (n_outputs,).
        """
        able = (self.rise > floor) & (self.curvature > 0.0)
        determinant = self.curvature * self.bend - self.cross**2
        both = able & (determinant > _PARALLEL * self.curvature * self.bend)
        length = np.divide(self.rise, self.curvature, out=np.zeros_like(self.rise), where=able)
        share = np.zeros_like(self.rise)
        np.divide(self.bend * self.rise - self.cross * self.slope, determinant, out=length, where=both)
        np.divide(self.curvature * self.slope - self.cross * self.rise, determinant, out=share, where=both)
        return length, share


def best_move(
    stack: Stack,
    coupling: Coupling,
    outputs: slice,
    residual: Array,
    here: Move,
    solvers: Sequence[Solve],
    n_steps: int,
    good_length: float,
    *,
    roughly: bool,
) -> tuple[Move, Array]:
    """
    Move from the current means to where the quadratic model is higher.

    Every step is the best one in the plane of the preconditioned residual and another direction. That is the step
    before, which makes these conjugate gradients; and at first the means themselves, whose scale moves slowly and whose
    products are known.

    Shapes: residual (n_outputs, n_basis); returns gain (n_outputs,).
    """
    lam, r, other = coupling.context.sample_precision[outputs], residual, here
    floor, gain = np.zeros(len(residual)), np.zeros(len(residual))
    total: Move | None = None
    for step in range(n_steps):
        z = np.stack([solve(row) for solve, row in zip(solvers, r, strict=True)])
        Kz = stack.project(z)
        floor = floor if step else _RESIDUAL_FLOOR * dot(r, z)
        if roughly and step == 0:
            plane = Plane.of(r, Move(z, Kz), coupling.energy(Kz, outputs), other, lam)
            length, share = plane.best(floor)
            if _good(length, good_length):
                move = _added(stack, coupling, outputs, (Move(z, Kz), length), (other, share))
                return move, _gain(plane, length, share)
        MKz = coupling.couple(Kz, outputs)
        plane = Plane.of(r, Move(z, Kz), dot(Kz, MKz), other, lam)
        length, share = plane.best(floor)
        move = _added(stack, coupling, outputs, (Move(z, Kz, MKz), length), (other, share))
        gain += _gain(plane, length, share)
        total = move if total is None else _sum(total, None, move, np.ones_like(length))
        if step == n_steps - 1 or _good(length, good_length):
            break
        assert move.coupled is not None, "it was computed above"
        r = r - lam * move.mean - stack.backproject(move.coupled)
        other = move
    assert total is not None, "there is at least one step"
    return total, gain


def _good(length: Array, good_length: float) -> bool:
    """Say whether steps are about as long as with a perfect preconditioner, or there is nothing to gain."""
    well = (length > 1.0 / good_length) & (length < good_length)
    return bool((well | (length == 0.0)).all())


def _gain(plane: Plane, length: Array, share: Array) -> Array:
    gain: Array = 0.5 * (length * plane.rise + share * plane.slope)
    return gain


def _added(
    stack: Stack, coupling: Coupling, outputs: slice, first: tuple[Move, Array], second: tuple[Move, Array]
) -> Move:
    """
    Add multiples of two moves, with their products.

    Where a large part of the second one is taken, as where two long moves nearly cancel, its rounding would be enlarged
    with it, sweep after sweep.
    """
    (move, length), (other, share) = first, second
    added = _sum(move, length, other, share)
    if np.abs(share).max() <= _LARGE:
        return added
    projection = stack.project(added.mean)
    return Move(added.mean, projection, None if move.coupled is None else coupling.couple(projection, outputs))


def _sum(move: Move, length: Array | None, other: Move, share: Array) -> Move:
    """Turn a move, times its length, into a sum with another one, in place, as far as both have products."""
    for here, there in zip(move, other, strict=True):
        if here is not None and there is not None:
            if length is not None:
                here *= length.reshape(-1, *[1] * (here.ndim - 1))
            add_times(here, share, there)
    return move


def dot(left: Array, right: Array) -> Array:
    """
    Sum the products of two arrays over all axes but the first.

    Shapes: left (n_outputs, ...), right (n_outputs, ...); returns (n_outputs,).
    """
    return np.array([np.vdot(one, two) for one, two in zip(left, right, strict=True)])
