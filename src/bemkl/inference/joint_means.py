"""The means of a and G solved together: a preconditioned Newton step (derivation, section 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.coupling import Coupling
from bemkl.inference.mean_field import Intermediate, MeanFieldPair
from bemkl.inference.moments import PairContext, Profile
from bemkl.inference.pair_factors import sample_factor
from bemkl.inference.protocols import Stack
from bemkl.inference.relaxation import beyond
from bemkl.linalg import Cholesky
from bemkl.rough import rough_gram, rough_solver

Solve = Callable[[Array], Array]
Solvers = Callable[[slice], list[Solve]]
Preconditioner = Callable[[Stack, Coupling, Array], Solvers]

_RESIDUAL_FLOOR = 1e-28
_CLOSE = 0.3
_PARALLEL = 1e-8
_NAME = "sample weights"
_BLOCK = 128
_MANY = 100
"""Basis points from which single precision saves time."""


def fixed_targets(context: PairContext) -> Callable[[Array], Profile]:
    """
    Return the bound's derivatives in the predictor with the targets where they are.

    Parameters
    ----------
    context : PairContext
        Expectations of the neighbours.

    Returns
    -------
    callable
        Maps (n_outputs, n_samples) means of the predictor to their `Profile`.
    """
    tau = context.output_precision[:, None]
    return lambda mean: Profile(tau * (context.target - mean), np.broadcast_to(tau, mean.shape))


def update_means(
    stack: Stack,
    pair: MeanFieldPair,
    context: PairContext,
    profile_at: Callable[[Array], Profile],
    n_steps: int,
    good_length: float = 1.0,
    preconditioner: Preconditioner | None = None,
    relaxation: float = 1.0,
) -> MeanFieldPair:
    r"""
    Update q(a) and q(G): optimal covariances, and means from one Newton step in both.

    With G eliminated, the step x of the means of a solves

    .. math:: \Big(\Lambda + \sum_i \mathbf{K}^{i\top} \mathbf{M}_i \mathbf{K}^i\Big)\,\boldsymbol x = \boldsymbol r

    approximately, by conjugate gradients. Products with the kernels are carried along, so that neither the new
    projections nor the new means of G need another pass over the stack.

    Parameters
    ----------
    stack : Stack
        Training kernels.
    pair : MeanFieldPair
        Current pair.
    context : PairContext
        Expectations of the neighbours.
    profile_at : callable
        Maps means of the predictor to the `Profile` of the likelihood there.
    n_steps : int
        Most conjugate gradient steps.
    good_length : float
        Steps end when their lengths are between 1 / good_length and good_length: with a good preconditioner the first
        one has a length of about 1, and is enough.
    preconditioner : callable, optional
        Makes approximate solvers for kernel weights; `combined_kernel` by default.
    relaxation : float
        How far all means go: 1 for the step that was computed, more to go beyond.

    Returns
    -------
    MeanFieldPair
        The new pair.
    """
    lam, upsilon = context.sample_precision, context.intermediate_precision[:, None, None]
    predictor = context.weights.mean @ pair.intermediate.mean + context.weights.bias[:, None]
    profile = profile_at(predictor)
    coupling = Coupling.of(context, profile.curvature)
    pull = coupling.pull(profile, predictor)
    coupled = coupling.couple(pair.projection)
    residual = stack.backproject(upsilon * pull - coupled) - lam * pair.sample.mean

    mean, projection = np.empty_like(residual), np.empty_like(coupled)
    combined_at = _weights_to_combine(pair, context.weights.mean)
    solvers = (preconditioner or combined_kernel)(stack, coupling, combined_at)
    for outputs in _groups(coupled.shape, lam.shape[1]):
        here = _Move(pair.sample.mean[outputs], pair.projection[outputs], coupled[outputs])
        move = _conjugate_gradients(
            stack, coupling, outputs, residual[outputs], here, solvers(outputs), n_steps, good_length
        )
        np.add(here.mean, move.mean, out=mean[outputs])
        np.add(here.projection, move.projection, out=projection[outputs])
        coupled[outputs] += move.coupled
    # In place: arrays over all kernels and samples are the largest of a fit.
    coupled /= upsilon
    intermediate = np.subtract(projection, coupled, out=coupled)
    intermediate += pull
    if relaxation != 1.0:
        mean = beyond(pair.sample.mean, mean, relaxation)
        projection = beyond(pair.projection, projection, relaxation)
        intermediate = beyond(pair.intermediate.mean, intermediate, relaxation)
    sample = sample_factor(stack, context, lambda output, _: mean[output])
    factor = Intermediate(intermediate, coupling.covariance, coupling.logdet)
    return MeanFieldPair(sample, factor, projection, combined_at)


def _weights_to_combine(pair: MeanFieldPair, weights: Array) -> Array:
    """Return the weights of the last update while they are close to these, by what each kernel does to the means."""
    if pair.combined_at is None:
        return weights
    sizes = np.sqrt(np.einsum("lmi,lmi->m", pair.projection, pair.projection))
    change, whole = np.linalg.norm(sizes * (weights - pair.combined_at)), np.linalg.norm(sizes * weights)
    return pair.combined_at if change <= _CLOSE * whole else weights


def _groups(shape: tuple[int, ...], n_basis: int) -> list[slice]:
    """Cut the outputs into runs whose n_basis × n_basis matrices are together no larger than one array over G."""
    n_outputs = shape[0]
    step = max(1, int(np.prod(shape)) // n_basis**2)
    return [slice(first, min(first + step, n_outputs)) for first in range(0, n_outputs, step)]


def combined_kernel(stack: Stack, coupling: Coupling, weights: Array) -> Solvers:
    r"""
    Precondition by the combined kernel.

    With :math:`\mathbf{M}_i \approx c_i\,\tilde{\boldsymbol e}\tilde{\boldsymbol e}^\top + \kappa\,\mathbf{I}` the sum
    over all pairs of kernels collapses to two matrices: the combined kernel and the gram matrix,

    .. math:: \Lambda + \kappa\,\mathbf{C} + \mathbf{K}_e^\top \operatorname{diag}(\boldsymbol c)\,\mathbf{K}_e,
              \qquad \mathbf{K}_e = \sum_m \tilde e_m \mathbf{K}_m

    Parameters
    ----------
    stack : Stack
        Training kernels.
    coupling : Coupling
        The quadratic model.
    weights : ndarray of shape (n_kernels,)
        The weights to combine the kernels with.

    Returns
    -------
    callable
        Maps a slice of outputs to their solvers.
    """
    combined = stack.combine(weights)
    along, across = coupling.rank_one()

    def system(squared: Array, o: int) -> Array:
        # Some rows at a time: another matrix of this size would be the peak of a fit of many samples.
        for first in range(0, len(squared), _BLOCK):
            rows = slice(first, first + _BLOCK)
            squared[rows] += across[o] * stack.gram()[rows]
        return _with_prior(squared, coupling, o)

    def solver(o: int) -> Solve:
        if len(combined.T) >= _MANY:
            roughly = rough_solver(system(rough_gram(combined, along[o]), o), _NAME)
            if roughly is not None:
                return roughly
        root = np.sqrt(along[o])[:, None] * combined
        return Cholesky.of(system(root.T @ root, o), _NAME).solve

    return _for_each(solver, coupling)


def sample_precision(stack: Stack, coupling: Coupling, weights: Array) -> Solvers:
    r"""
    Precondition by the covariance of the sample weights, :math:`(\Lambda + \tilde\upsilon\,\mathbf{C})^{-1}`.

    It is a worse preconditioner, but the same for every form of the same kernels.

    Parameters
    ----------
    stack : Stack
        Training kernels.
    coupling : Coupling
        The quadratic model.
    weights : ndarray of shape (n_kernels,)
        Not needed here.

    Returns
    -------
    callable
        Maps a slice of outputs to their solvers.
    """
    upsilon = coupling.context.intermediate_precision
    return _for_each(lambda o: Cholesky.of(_with_prior(upsilon[o] * stack.gram(), coupling, o), _NAME).solve, coupling)


def _with_prior(matrix: Array, coupling: Coupling, output: int) -> Array:
    """Add the precisions of the sample weights of one output to a matrix, in place."""
    matrix[np.diag_indices_from(matrix)] += coupling.context.sample_precision[output]
    return matrix


def _for_each(solver: Callable[[int], Solve], coupling: Coupling) -> Solvers:
    """Return the function that makes the solvers of some outputs."""
    n_outputs = len(coupling.context.sample_precision)
    return lambda outputs: [solver(o) for o in range(*outputs.indices(n_outputs))]


class _Move(NamedTuple):
    """A move x of the means of a, (n_outputs, n_basis), with K x and M K x, (n_outputs, n_kernels, n_samples)."""

    mean: Array
    projection: Array
    coupled: Array

    def dot(self, other: _Move, lam: Array) -> Array:
        """Return the quadratic model's product of two moves, an output."""
        return _dot(lam * self.mean, other.mean) + _dot(self.projection, other.coupled)

    def become(self, length: Array, other: _Move, share: Array) -> None:
        """Turn into a sum with another move, each times a number an output."""
        for here, there in zip(self, other, strict=True):
            axes = (slice(None), *[None] * (here.ndim - 1))
            here *= length[axes]
            if share.any():
                here += share[axes] * there


def _conjugate_gradients(
    stack: Stack,
    coupling: Coupling,
    outputs: slice,
    residual: Array,
    means: _Move,
    solvers: list[Solve],
    n_steps: int,
    good_length: float,
) -> _Move:
    """
    Take steps from zero; each raises the quadratic model.

    Every step is the best one in the plane of the preconditioned residual and another direction. That is the step
    before, which makes these conjugate gradients; and at first the means themselves, whose scale moves slowly and
    whose products are known.
    """
    lam, r, other = coupling.context.sample_precision[outputs], residual, means
    total: _Move | None = None
    floor = np.zeros(len(residual))
    for step in range(n_steps):
        z = np.stack([solve(row) for solve, row in zip(solvers, r, strict=True)])
        floor = floor if step else _RESIDUAL_FLOOR * _dot(r, z)
        Kz = stack.project(z)
        move = _Move(z, Kz, coupling.couple(Kz, outputs))
        length, share = _best_in_plane(r, move, other, lam, floor)
        move.become(length, other, share)
        if total is None:
            total = move
        else:
            total.become(np.ones_like(length), move, np.ones_like(length))
        well = (length > 1.0 / good_length) & (length < good_length)
        if step == n_steps - 1 or (well | (length == 0.0)).all():
            break
        r = r - lam * move.mean - stack.backproject(move.coupled)
        other = move
    assert total is not None, "there is at least one step"
    return total


def _best_in_plane(r: Array, move: _Move, other: _Move, lam: Array, floor: Array) -> tuple[Array, Array]:
    """Maximise the quadratic model over sums of two moves; over the first alone where they are nearly the same."""
    rise, slope = _dot(r, move.mean), _dot(r, other.mean)
    curvature, cross, bend = move.dot(move, lam), move.dot(other, lam), other.dot(other, lam)
    able = (rise > floor) & (curvature > 0.0)
    determinant = curvature * bend - cross**2
    both = able & (determinant > _PARALLEL * curvature * bend)
    alone = np.divide(rise, curvature, out=np.zeros_like(rise), where=able)
    length = np.divide(bend * rise - cross * slope, determinant, out=alone, where=both)
    share = np.divide(curvature * slope - cross * rise, determinant, out=np.zeros_like(rise), where=both)
    return length, share


def _dot(left: Array, right: Array) -> Array:
    """Sum the products of two arrays over all axes but the first."""
    product: Array = np.einsum("ld,ld->l", left.reshape(len(left), -1), right.reshape(len(right), -1))
    return product
