"""The means of a and G solved together: a preconditioned Newton step (derivation, section 5)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.approximation import Approximation
from bemkl.inference.coupling import Coupling
from bemkl.inference.mean_field import Intermediate, MeanFieldPair
from bemkl.inference.moments import PairContext, Profile
from bemkl.inference.moves import Move, best_move
from bemkl.inference.pair_factors import loss_of_staying, sample_factor
from bemkl.inference.preconditioners import Preconditioner, combined_kernel
from bemkl.inference.protocols import Stack
from bemkl.inference.relaxation import beyond
from bemkl.linalg import add_times

_MANY = 128
"""Samples from which exact moves cost more than they gain."""

_WORTH = 0.1
"""Share of what a step gains that a covariance may cost by not following it."""


def fixed_targets(context: PairContext) -> Callable[[Array], Profile]:
    """Return the bound's derivatives in the predictor with the targets where they are."""
    tau = context.output_precision[:, None]
    return lambda mean: Profile(tau * (context.target - mean), np.broadcast_to(tau, mean.shape))


def update_means(
    stack: Stack,
    pair: MeanFieldPair,
    context: PairContext,
    profile_at: Callable[[Array], Profile],
    n_steps: int,
    good_length: float = 1.0,
    preconditioner: Preconditioner = combined_kernel,
    relaxation: float = 1.0,
    *,
    roughly: bool = False,
) -> MeanFieldPair:
    r"""
    Update q(a) and q(G): covariances, optimal unless they may stay, and means from one Newton step in both.

    With G eliminated, the step x of the means of a solves

    .. math:: \Big(\Lambda + \sum_i \mathbf{K}^{i\top} \mathbf{M}_i \mathbf{K}^i\Big)\,\boldsymbol x = \boldsymbol r

    approximately, by conjugate gradients. Products with the kernels are carried along, so that neither the new
    projections nor the new means of G need another pass over the stack.
    """
    pair.intermediate.forget_sums()
    lam, upsilon = context.sample_precision, context.intermediate_precision
    roughly = roughly and stack.shape[1] >= _MANY
    predictor = context.weights.mean @ pair.intermediate.mean + context.weights.bias[:, None]
    profile = profile_at(predictor)
    coupling = Coupling.of(context, profile.curvature)
    left, right = coupling.pull(profile, predictor)
    coupled = coupling.couple(pair.projection)
    # Arrays over all kernels and samples are the largest of a fit: this one becomes the means of G.
    intermediate = np.matmul(upsilon[:, None, None] * left, right)
    intermediate -= coupled
    residual = stack.backproject(intermediate) - lam * pair.sample.mean

    mean, gain = np.empty_like(residual), np.empty(len(residual))
    approximation = _approximation(pair, coupling)
    solvers = preconditioner(stack, coupling, approximation)
    for outputs in _groups(coupled.shape, lam.shape[1]):
        here = Move(pair.sample.mean[outputs], pair.projection[outputs], coupled[outputs])
        move, gain[outputs] = best_move(
            stack, coupling, outputs, residual[outputs], here, solvers(outputs), n_steps, good_length, roughly=roughly
        )
        _write_optimum(intermediate[outputs], (left[outputs], right[outputs]), here, move, coupling, outputs)
        # The coupled projections have served: the new ones take their place.
        for out, old, step in ((mean, here.mean, move.mean), (coupled, here.projection, move.projection)):
            np.multiply(step, relaxation, out=out[outputs])
            out[outputs] += old
    if relaxation != 1.0:
        intermediate = beyond(pair.intermediate.mean, intermediate, relaxation)
    staying = (loss_of_staying(pair.sample, lam, upsilon) <= _WORTH * gain) & roughly
    sample = sample_factor(stack, context, lambda output, _: mean[output], pair.sample, staying)
    factor = Intermediate(intermediate, coupling.covariance, coupling.logdet)
    return MeanFieldPair(sample, factor, coupled, approximation)


def _write_optimum(
    out: Array, pull: tuple[Array, Array], here: Move, move: Move, coupling: Coupling, outputs: slice
) -> None:
    r"""
    Write the means of G after a move of those of a.

    .. math:: \mathbf{K}\tilde{\boldsymbol a} - \mathbf{M} \mathbf{K} \tilde{\boldsymbol a} / \tilde\upsilon
              + \text{pull}

    Where the coupled projection of the move is not known, that of `Coupling.rank_one` takes its place: the coupling is
    small next to the precision of G, but for the direction of the kernel weights.
    """
    upsilon, (left, right) = coupling.context.intermediate_precision[outputs], pull
    follows = np.ones(len(upsilon))
    if move.coupled is None:
        e, shares, across = coupling.rank_one_factors(move.projection, outputs)
        left = np.concatenate([left, -e / upsilon[:, None, None]], axis=2)
        right = np.concatenate([right, shares], axis=1)
        follows -= across / upsilon
    np.matmul(left, right, out=out)
    out += here.projection
    add_times(out, follows, move.projection)
    for coupled in (here.coupled, move.coupled):
        if coupled is not None:
            add_times(out, -1.0 / upsilon, coupled)


def _approximation(pair: MeanFieldPair, coupling: Coupling) -> Approximation:
    """Return what is close to the current system of that of the last update, and the current one for the rest."""
    current = Approximation(coupling.context.weights.mean, *coupling.rank_one, coupling.context.sample_precision)
    if pair.approximation is None:
        return current
    # A kernel matters by its weight times what it makes of the means.
    sizes = np.sqrt(np.vecdot(pair.projection, pair.projection).sum(axis=0))
    return pair.approximation.in_place_of(current, sizes)


def _groups(shape: tuple[int, ...], n_basis: int) -> list[slice]:
    """Cut the outputs into runs whose n_basis × n_basis matrices are together no larger than one array over G."""
    n_outputs = shape[0]
    step = max(1, int(np.prod(shape)) // n_basis**2)
    return [slice(first, min(first + step, n_outputs)) for first in range(0, n_outputs, step)]
