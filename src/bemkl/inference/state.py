"""The variational posterior of all blocks, and where runs begin: nothing known, another posterior, or an easier run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bemkl.arrays import Array
from bemkl.distributions import PointMass
from bemkl.inference.block import Block, BlockPosterior, BlockState, Evidence
from bemkl.inference.moments import PairContext, WeightMoments
from bemkl.inference.pair import Intermediate, PerOutput, SampleWeights, Spread, optimal_mean, optimal_spread
from bemkl.inference.plain import place
from bemkl.inference.problem import Problem
from bemkl.inference.protocols import WeightPosterior
from bemkl.inference.rows import MeanSums, Part, TargetSums, observe, put, relabel, sums_of


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """
    The whole posterior without the samples: what a fitted model keeps. It can start a run.

    Parameters
    ----------
    blocks : tuple of BlockPosterior
        Factors of each block.
    weights : WeightPosterior
        Factors that the blocks share: biases, kernel weights and their precisions.
    """

    blocks: tuple[BlockPosterior, ...]
    weights: WeightPosterior


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """
    The whole posterior in a run.

    Parameters
    ----------
    blocks : tuple of BlockState
        Factors of each block, with its samples.
    weights : WeightPosterior
        Factors that the blocks share: biases, kernel weights and their precisions.
    """

    blocks: tuple[BlockState, ...]
    weights: WeightPosterior

    def evidence(self) -> tuple[Evidence, ...]:
        """
        Collect what the blocks say about biases and kernel weights.

        Returns
        -------
        tuple of Evidence
            One a block.
        """
        return tuple(Evidence(block) for block in self.blocks)

    def observed(self) -> State:
        """
        Look at all targets with the kernel weights as they are.

        Returns
        -------
        State
            The same posterior.
        """
        seen = [block.observed(self.weights, self.weights.moments(i)) for i, block in enumerate(self.blocks)]
        return replace(self, blocks=tuple(seen))

    def posterior(self) -> Posterior:
        """
        Return the posterior without the samples.

        Returns
        -------
        Posterior
            What a fitted model keeps.
        """
        return Posterior(tuple(block.posterior() for block in self.blocks), self.weights)


_MANY = 40
_SHARE = 0.2
_BALANCE = 20.0
_SHORT = 0.5

_MOST_STEPS = 100
_SETTLED = 1e-12


def first_state(problem: Problem, rng: np.random.Generator | None) -> State:
    """Return a first posterior of likelihoods that need no rehearsal: kernel weights equal, or drawn."""
    weights = problem.weights.start(problem.n_kernels, problem.n_outputs, problem.priors, rng)
    if problem.weights.balanced:
        weights = weights.scaled(starting_scale(problem), spread=True)
    blank = [blank_block(problem, block, weights, index) for index, block in enumerate(problem.blocks)]
    return State(tuple(problem.pair.start(here, weights.moments(i)) for i, here in enumerate(blank)), weights)


def starting_scale(problem: Problem) -> float:
    r"""
    Length of the vector of kernel weights to start with (derivation, section 5).

    .. math:: \lVert\tilde{\boldsymbol e}\rVert = \Big(\frac{20}{\tilde\omega + \tilde\tau N/\tilde\upsilon}\Big)^{1/3}

    with the mean over the outputs in the denominator; at most 1/2 under a sparse prior, at most 1 where several
    outputs share the weights, and 1 for few kernels: less than 40, or than a fifth of the samples.
    """
    most_samples = max(block.shape[1] for block in problem.blocks)
    if problem.n_kernels < max(_MANY, _SHARE * most_samples):
        return 1.0
    evidence = []
    for block in problem.blocks:
        n_outputs, n_samples = block.n_outputs, block.shape[1]
        tau = np.broadcast_to(block.first_noise().mean, (n_outputs,))
        upsilon = problem.priors.intermediate.posterior(0, np.zeros(n_outputs)).mean
        evidence.append(tau * n_samples / upsilon)
    each, kernel = np.concatenate(evidence), problem.priors.kernel
    length = float(np.cbrt(_BALANCE / (np.mean(kernel.mean) + each.mean())))
    # With a smaller shape of its precision's prior, a weight has no expected size.
    if np.mean(np.asarray(kernel.shape)) < 0.5:
        return min(length, _SHORT)
    return length if len(each) == 1 else min(length, 1.0)


def blank_block(problem: Problem, block: Block, weights: WeightPosterior, index: int) -> BlockState:
    """Return a block of which nothing is known: precisions at their priors, means at zero, targets for these."""
    (n_kernels, n_samples, n_basis), n_outputs = block.shape, block.n_outputs
    moments, spread = weights.moments(index), Spread.identity(n_outputs, n_kernels)
    rows, targets = block.rows().run(observe, moments.mean, moments.bias)
    return BlockState(
        block=block,
        sample_precision=problem.priors.sample.posterior(0, np.zeros((n_outputs, n_basis))),
        intermediate_precision=problem.priors.intermediate.posterior(0, np.zeros(n_outputs)),
        noise_precision=block.likelihood.noise(targets.fit, np.zeros(n_outputs)),
        sample=SampleWeights.unit(np.zeros((n_outputs, n_basis)), block.kernels.gram),
        intermediate=Intermediate(spread, MeanSums.zero(n_outputs, n_kernels), n_samples),
        rows=rows,
        targets=targets,
        seen=weights,
    )


def placed_block(problem: Problem, weights: WeightPosterior, index: int, a: Array, G: Array) -> BlockState:
    """
    Return a block with given means of sample weights and intermediate outputs, and identity covariances.

    Shapes: a (n_outputs, n_basis), G (n_outputs, n_kernels, n_samples).
    """
    here = blank_block(problem, problem.blocks[index], weights, index)
    rows, _ = here.rows.run(put, a, G)
    rows, (means, targets) = rows.run(look_again, weights.moments(index))
    sample = SampleWeights.unit(a, here.block.kernels.gram)
    intermediate = replace(here.intermediate, sums=means)
    return replace(here, sample=sample, intermediate=intermediate, rows=rows, targets=targets)


def resumed(problem: Problem, posterior: Posterior | State) -> State:
    """
    Let another posterior start a run of a problem; that of a run of the same blocks goes on as it is.

    Intermediate outputs and targets are where both together are best for all other factors: that is no step back.
    """
    check_fit(problem, posterior)
    weights = problem.weights.adopt(posterior.weights)
    if isinstance(posterior, State):
        if all(here.block is block for here, block in zip(posterior.blocks, problem.blocks, strict=True)):
            return State(tuple(_at_home(problem, here) for here in posterior.blocks), weights)
        posterior = posterior.posterior()
    blocks = []
    for index, (block, kept) in enumerate(zip(problem.blocks, posterior.blocks, strict=True)):
        moments = weights.moments(index)
        here = replace(
            blank_block(problem, block, weights, index),
            sample_precision=kept.sample_precision,
            intermediate_precision=kept.intermediate_precision,
            noise_precision=kept.noise_precision,
            sample=kept.sample,
        )
        here = _at_home(problem, here)
        context = here.context(moments)
        spread = optimal_spread(context)
        rows, (means, targets) = here.rows.run(restore, kept.sample.mean, spread.covariance, context, kept.location)
        intermediate = Intermediate(spread, means, block.shape[1])
        blocks.append(replace(here, intermediate=intermediate, rows=rows, targets=targets))
    return State(tuple(blocks), weights)


def restore(
    part: Part, a: Array, covariance: PerOutput, context: PairContext, location: Array | None
) -> tuple[Part, tuple[MeanSums, TargetSums]]:
    r"""
    Find intermediate outputs and targets for the sample weights and kernel weights of another run.

    With the means of G at their optimum, the predictor depends on the targets as
    :math:`\eta = \alpha + \beta \tilde f`, and these on it as :math:`\tilde f = \eta + \ell'(\eta) / \tau`. Both hold
    where :math:`(1 - \beta)\eta - \beta \ell'(\eta) / \tau = \alpha`, which Newton's method finds: the left side rises.

    Shapes: a (n_outputs, n_basis), location (n_outputs, n_samples) of the whole block.
    """
    weights, tau, likelihood = context.weights, context.output_precision[:, None], part.likelihood
    projection = part.stack.project(a)
    if location is None:
        zero = np.zeros((len(tau), projection.shape[2]))
        alpha = weights.mean @ optimal_mean(projection, zero, covariance, context) + weights.bias[:, None]
        beta = tau * ((covariance @ weights.mean) @ weights.mean)[:, None]
        targets, eta = likelihood.start(), weights.mean @ projection + weights.bias[:, None]
        for _ in range(_MOST_STEPS):
            profile = likelihood.profile(targets, context.output_precision, eta)
            excess = (1.0 - beta) * eta - beta * profile.gradient / tau - alpha
            step = excess / (1.0 - beta + beta * profile.curvature / tau)
            eta = eta - step
            if np.abs(step).max() <= _SETTLED * (1.0 + np.abs(eta).max()):
                break
        targets = likelihood.update(targets, eta)
    else:
        targets = likelihood.restored(location[:, part.places])
    part = replace(part, projection=projection, targets=targets)
    return place(part, covariance, context)


def look_again(part: Part, weights: WeightMoments) -> tuple[Part, tuple[MeanSums, TargetSums]]:
    """Sum over means of the intermediate outputs that came from elsewhere."""
    return part, sums_of(part, [False] * len(part.mean), weights)


def handed_over(problem: Problem, state: State) -> State:
    """Give the posterior of an easier run the likelihoods of the real one; the targets are yet to follow."""
    blocks = []
    for block, here in zip(problem.blocks, state.blocks, strict=True):
        rows, _ = here.rows.run(relabel, block.likelihood)
        blocks.append(replace(here, block=block, rows=rows))
    return replace(state, blocks=tuple(blocks))


def _at_home(problem: Problem, here: BlockState) -> BlockState:
    """Give a block the known precision of the problem, whatever it was learned with."""
    known = problem.priors.intermediate
    return replace(here, intermediate_precision=known) if isinstance(known, PointMass) else here


def check_fit(problem: Problem, posterior: Posterior | State) -> None:
    """Refuse a posterior that does not belong to a problem."""
    if not isinstance(posterior, Posterior | State):
        raise ValueError(
            f"state: expected a State or Posterior, got {posterior!r}. Pass that of another fit, or leave it out."
        )
    expected = [_signature_of_block(problem, block) for block in problem.blocks]
    found = [_signature(block) for block in posterior.blocks]
    if expected != found:
        raise ValueError(
            "state: its blocks (noise, deviation, n_outputs, n_basis, n_samples) "
            f"{found} do not fit a problem with blocks {expected}. Start from a state of the same problem."
        )
    family = type(problem.weights.start(problem.n_kernels, problem.n_outputs, problem.priors, None))
    if type(posterior.weights) is not family:
        raise ValueError(
            f"state: has {type(posterior.weights).__name__} where the problem has {family.__name__}. "
            "Start from a state of the same family of weights."
        )
    for index, n_outputs in enumerate(problem.n_outputs):
        weights = posterior.weights.moments(index)
        if weights.cross.shape != (problem.n_kernels, n_outputs):
            raise ValueError(
                f"state: weights of shape (n_kernels, n_outputs) {weights.cross.shape} in block {index} do not fit "
                f"{(problem.n_kernels, n_outputs)}. Start from a state of the same problem."
            )


Signature = tuple[str, str, int, int, int]


def _signature_of_block(problem: Problem, block: Block) -> Signature:
    (_, n_samples, n_basis), n_outputs = block.shape, block.n_outputs
    none = block.likelihood.some(slice(0, 0))
    noise = none.noise(none.fit(none.start(), np.zeros((n_outputs, 0))), np.zeros(n_outputs))
    return _kind(noise), _kind(problem.priors.intermediate), n_outputs, n_basis, n_samples


def _signature(here: BlockPosterior | BlockState) -> Signature:
    n_samples = here.block.shape[1] if isinstance(here, BlockState) else here.n_samples
    return _kind(here.noise_precision), _kind(here.intermediate_precision), *here.sample.mean.shape, n_samples


def _kind(precision: object) -> str:
    """Say whether a precision is known or learned."""
    return "known" if isinstance(precision, PointMass) else "learned"
