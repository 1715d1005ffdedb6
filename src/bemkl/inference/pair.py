"""Strategies for the pair (a, G): the paper's two updates in turn, or both means solved together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.mean_field import (
    Intermediate,
    MeanFieldPair,
    SampleWeights,
    intermediate_covariance,
    intermediate_factor,
    sample_covariance,
    target_pull,
)
from bemkl.inference.moments import PairContext
from bemkl.inference.protocols import PairStep, Stack

_RESIDUAL_FLOOR = 1e-28
_STARTING_STEPS = 10


def unit_pair(stack: Stack, sample_mean: Array, intermediate_mean: Array) -> MeanFieldPair:
    """
    Return a pair with given means and identity covariances.

    Parameters
    ----------
    stack : Stack
        Training kernels.
    sample_mean : ndarray of shape (n_outputs, n_basis)
        Means of a.
    intermediate_mean : ndarray of shape (n_outputs, n_kernels, n_samples)
        Means of G.

    Returns
    -------
    MeanFieldPair
        The pair.
    """
    n_outputs, n_kernels, _ = intermediate_mean.shape
    identity = np.broadcast_to(np.eye(n_kernels), (n_outputs, n_kernels, n_kernels))
    return MeanFieldPair(
        SampleWeights.unit(sample_mean, stack.gram()),
        Intermediate(intermediate_mean, identity, np.zeros(n_outputs)),
        stack.project(sample_mean),
    )


@dataclass(frozen=True, slots=True)
class Plain:
    """The paper's updates: q(a) with q(G) fixed, then q(G) with q(a) fixed."""

    @property
    def steps(self) -> Mapping[str, PairStep[MeanFieldPair]]:
        """The two updates, in order."""
        return {"sample_weights": update_sample_weights, "intermediate": update_intermediate}

    def start(self, stack: Stack, context: PairContext) -> MeanFieldPair:
        """
        Return the pair that joint means starts with.

        From zero means the paper's updates can take dozens of sweeps to leave the start, or stay there for good.

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
        return JointMeans().start(stack, context)


def update_sample_weights(stack: Stack, pair: MeanFieldPair, context: PairContext) -> MeanFieldPair:
    r"""
    Update q(a), Eq. (3).

    .. math:: \mu(\boldsymbol a)
              = \tilde\upsilon\,\Sigma(\boldsymbol a) \sum_m \mathbf{K}_m^\top \tilde{\boldsymbol g}^m

    Parameters
    ----------
    stack : Stack
        Training kernels.
    pair : MeanFieldPair
        Current pair.
    context : PairContext
        Expectations of the neighbours.

    Returns
    -------
    MeanFieldPair
        The pair with a new q(a).
    """
    gram = stack.gram()
    pull = context.intermediate_precision[:, None] * stack.backproject(pair.intermediate.mean)
    mean, variance = np.empty_like(pull), np.empty_like(pull)
    logdet, trace = np.empty(len(pull)), np.empty(len(pull))
    for o in range(len(pull)):
        covariance, logdet[o] = sample_covariance(gram, context.sample_precision[o], context.intermediate_precision[o])
        mean[o], variance[o] = covariance @ pull[o], covariance.diagonal()
        trace[o] = np.vdot(gram, covariance)
    sample = SampleWeights(mean, variance, logdet, trace, context.sample_precision, context.intermediate_precision)
    return replace(pair, sample=sample, projection=stack.project(mean))


def update_intermediate(stack: Stack, pair: MeanFieldPair, context: PairContext) -> MeanFieldPair:
    """
    Update q(G), after Eq. (3).

    Parameters
    ----------
    stack : Stack
        Training kernels.
    pair : MeanFieldPair
        Current pair.
    context : PairContext
        Expectations of the neighbours.

    Returns
    -------
    MeanFieldPair
        The pair with a new q(G).
    """
    return replace(pair, intermediate=intermediate_factor(pair.projection, context))


@dataclass(frozen=True, slots=True)
class JointMeans:
    r"""
    Same factors as `Plain`, both means solved together (derivation, section 5).

    With the covariances at their optimum, which does not depend on the means, eliminating G from the bound leaves

    .. math:: \left(\tilde\Lambda + \sum_i \mathbf{K}^{i\top} \mathbf{M} \mathbf{K}^i\right) \mu(\boldsymbol a)
              = \tilde\upsilon\tilde\tau \sum_i \mathbf{K}^{i\top} \Sigma(\boldsymbol g)\,
                (\tilde{\boldsymbol e} \tilde f_i - \widetilde{\boldsymbol e b}), \qquad
              \mathbf{M} = \tilde\upsilon\tilde\tau\,\Sigma(\boldsymbol g)\,\widetilde{\boldsymbol e\boldsymbol e^\top}

    and a few conjugate gradient steps from the current mean, with :math:`\Sigma(\boldsymbol a)` as preconditioner,
    raise the bound by more than many plain iterations. Each step raises it, so any number of them is safe.

    Parameters
    ----------
    n_steps : int
        Conjugate gradient steps an update.
    """

    n_steps: int = 3

    def __post_init__(self) -> None:
        """Refuse an update that does nothing."""
        if self.n_steps < 1:
            raise ValueError(f"n_steps: expected at least 1 conjugate gradient step, got {self.n_steps!r}.")

    @property
    def steps(self) -> Mapping[str, PairStep[MeanFieldPair]]:
        """The one update."""
        return {"sample_weights_and_intermediate": self._update}

    def start(self, stack: Stack, context: PairContext) -> MeanFieldPair:
        """
        Return the pair that fits the first expectations of its neighbours.

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
        n_kernels, n_samples, n_basis = stack.shape
        n_outputs = len(context.target)
        zero = unit_pair(stack, np.zeros((n_outputs, n_basis)), np.zeros((n_outputs, n_kernels, n_samples)))
        return JointMeans(_STARTING_STEPS)._update(stack, zero, context)

    def _update(self, stack: Stack, pair: MeanFieldPair, context: PairContext) -> MeanFieldPair:
        """Solve the outputs in groups whose covariances together are no larger than the stack."""
        n_kernels, n_samples, n_basis = stack.shape
        covariance, logdet = intermediate_covariance(context)
        pull = target_pull(covariance, context)
        group = max(1, n_kernels * n_samples // n_basis)
        n_outputs = len(pull)
        parts = [
            self._solve(stack, pair, context, covariance, pull, slice(first, min(first + group, n_outputs)))
            for first in range(0, n_outputs, group)
        ]
        mean, variance, sample_logdet, trace = (np.concatenate(part) for part in zip(*parts, strict=True))
        sample = SampleWeights(
            mean, variance, sample_logdet, trace, context.sample_precision, context.intermediate_precision
        )
        projection = stack.project(mean)
        upsilon = context.intermediate_precision[:, None, None]
        intermediate = Intermediate(covariance @ (upsilon * projection) + pull, covariance, logdet)
        return MeanFieldPair(sample, intermediate, projection)

    def _solve(
        self,
        stack: Stack,
        pair: MeanFieldPair,
        context: PairContext,
        covariance: Array,
        pull: Array,
        outputs: slice,
    ) -> tuple[Array, Array, Array, Array]:
        """Return mean, variance, log-determinant and trace of q(a) for some outputs."""
        gram, lam = stack.gram(), context.sample_precision[outputs]
        upsilon, tau = context.intermediate_precision[outputs], context.output_precision[outputs]
        found = [sample_covariance(gram, *pair_of) for pair_of in zip(lam, upsilon, strict=True)]
        preconditioner = np.stack([matrix for matrix, _ in found])
        variance = np.diagonal(preconditioner, axis1=1, axis2=2)
        logdet = np.array([value for _, value in found])
        trace = np.einsum("de,lde->l", gram, preconditioner)
        M = (upsilon * tau)[:, None, None] * (covariance[outputs] @ context.weights.second)

        a = pair.sample.mean[outputs]
        r = stack.backproject(upsilon[:, None, None] * pull[outputs] - M @ pair.projection[outputs]) - lam * a
        z = np.einsum("lde,le->ld", preconditioner, r)
        p, rho = z, np.einsum("ld,ld->l", r, z)
        floor = _RESIDUAL_FLOOR * rho
        for step in range(self.n_steps):
            Kp = stack.project(p)
            MKp = M @ Kp
            curvature = np.einsum("ld,ld->l", lam * p, p) + np.einsum("lmi,lmi->l", Kp, MKp)
            length = np.divide(rho, curvature, out=np.zeros_like(rho), where=(rho > floor) & (curvature > 0.0))
            a = a + length[:, None] * p
            if step == self.n_steps - 1 or not length.any():
                break
            r = r - length[:, None] * (lam * p + stack.backproject(MKp))
            z = np.einsum("lde,le->ld", preconditioner, r)
            rho, before = np.einsum("ld,ld->l", r, z), rho
            p = z + np.divide(rho, before, out=np.zeros_like(rho), where=before > 0.0)[:, None] * p
        return a, variance, logdet, trace
