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
    """
    A move x of the means of a, with what the kernels make of it.

    Parameters
    ----------
    mean : ndarray of shape (n_outputs, n_basis)
        The move.
    projection : ndarray of shape (n_outputs, n_kernels, n_samples)
        Kernels times the move, K x.
    coupled : ndarray of shape (n_outputs, n_kernels, n_samples) or None
        Coupled kernels times the move, M K x, where that was computed.
    """

    mean: Array
    projection: Array
    coupled: Array | None = None


class Plane(NamedTuple):
    """
    The quadratic model over all sums of two moves, one entry an output.

    Parameters
    ----------
    rise : ndarray of shape (n_outputs,)
        Derivative along the first move.
    slope : ndarray of shape (n_outputs,)
        Derivative along the second move.
    curvature : ndarray of shape (n_outputs,)
        Curvature along the first move.
    cross : ndarray of shape (n_outputs,)
        Curvature between the two.
    bend : ndarray of shape (n_outputs,)
        Curvature along the second move.
    """

    rise: Array
    slope: Array
    curvature: Array
    cross: Array
    bend: Array

    @classmethod
    def of(cls, residual: Array, move: Move, energy: Array, other: Move, lam: Array) -> Plane:
        """
        Compute the model.

        Parameters
        ----------
        residual : ndarray of shape (n_outputs, n_basis)
            The gradient.
        move : Move
            The first move; its coupled projection is not needed.
        energy : ndarray of shape (n_outputs,)
            Product of its projection and its coupled projection.
        other : Move
            The second move.
        lam : ndarray of shape (n_outputs, n_basis)
            Expected precisions of the sample weights.

        Returns
        -------
        Plane
            The model.
        """
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

        Parameters
        ----------
        floor : ndarray of shape (n_outputs,)
            Derivatives along the first move that are no more than rounding.

        Returns
        -------
        length : ndarray of shape (n_outputs,)
            How far to go along the first move; 0 where there is nothing to gain.
        share : ndarray of shape (n_outputs,)
            How far to go along the second.
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

    Parameters
    ----------
    stack : Stack
        Training kernels.
    coupling : Coupling
        The quadratic model.
    outputs : slice
        Which outputs move.
    residual : ndarray of shape (n_outputs, n_basis)
        Gradient of the model at the current means.
    here : Move
        The current means.
    solvers : sequence of callable
        The preconditioner, an output.
    n_steps : int
        Most steps.
    good_length : float
        Steps end when their lengths are between 1 / good_length and good_length.
    roughly : bool
        Whether one step may do with an estimate of its curvature, and without its coupled projection.

    Returns
    -------
    move : Move
        The sum of all steps.
    gain : ndarray of shape (n_outputs,)
        What the model rises by.
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

    Parameters
    ----------
    left : ndarray of shape (n_outputs, ...)
        The one array.
    right : ndarray of shape (n_outputs, ...)
        The other.

    Returns
    -------
    ndarray of shape (n_outputs,)
        The sums.

    Examples
    --------
    >>> import numpy as np
    >>> dot(np.ones((2, 3)), np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]]))
    array([6., 1.])
    """
    return np.array([np.vdot(one, two) for one, two in zip(left, right, strict=True)])
