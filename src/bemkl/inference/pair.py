"""Strategies for the pair (a, G): the paper's two updates in turn, or both means solved together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bemkl.arrays import Array, whole_number
from bemkl.inference.mean_field import MeanFieldPair, unit_pair
from bemkl.inference.moments import PairContext
from bemkl.inference.pair_factors import (
    intermediate_covariance,
    intermediate_factor,
    mean_coupling,
    sample_factor,
    target_pull,
)
from bemkl.inference.protocols import PairStep, Stack
from bemkl.linalg import refined_solve

_STARTING_STEPS = 3
_RESIDUAL_FLOOR = 1e-28


class MeanFieldStrategy:
    """What the strategies for q(a) q(G) share: where they start."""

    __slots__ = ()

    def start(self, stack: Stack, context: PairContext) -> MeanFieldPair:
        """
        Return the pair that joint means makes of zero means.

        From zero means themselves, the paper's updates can take dozens of sweeps to leave, or stay there for good.

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
        return update_jointly(stack, zero, context, _STARTING_STEPS)


@dataclass(frozen=True, slots=True)
class Plain(MeanFieldStrategy):
    """The paper's updates: q(a) with q(G) fixed, then q(G) with q(a) fixed."""

    @property
    def cautious(self) -> Plain:
        """Itself: no step lowers the bound."""
        return self

    @property
    def steps(self) -> Mapping[str, PairStep[MeanFieldPair]]:
        """The two updates, in order."""
        return {"sample_weights": update_sample_weights, "intermediate": update_intermediate}


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
    gram, lam, upsilon = stack.gram(), context.sample_precision, context.intermediate_precision
    pull = upsilon[:, None] * stack.backproject(pair.intermediate.mean)

    def mean_of(outputs: slice, covariances: Array) -> Array:
        systems = zip(covariances, lam[outputs], upsilon[outputs], pull[outputs], strict=True)
        return np.stack([_solve(gram, *system) for system in systems])

    sample = sample_factor(stack, context, mean_of)
    return replace(pair, sample=sample, projection=stack.project(sample.mean))


def _solve(gram: Array, covariance: Array, lam: Array, upsilon: float, pull: Array) -> Array:
    """Solve (diag λ + υ C) μ = pull with the inverse at hand."""
    return refined_solve(covariance, lambda mean: pull - lam * mean - upsilon * (gram @ mean), pull)


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
    return replace(pair, intermediate=intermediate_factor(pair.projection, *intermediate_covariance(context), context))


@dataclass(frozen=True, slots=True)
class JointMeans(MeanFieldStrategy):
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
        whole_number("n_steps", self.n_steps, least=1)

    @property
    def cautious(self) -> JointMeans:
        """Itself: no step lowers the bound."""
        return self

    @property
    def steps(self) -> Mapping[str, PairStep[MeanFieldPair]]:
        """The one update."""
        return {
            "sample_weights_and_intermediate": lambda stack, pair, context: update_jointly(
                stack, pair, context, self.n_steps
            )
        }


def update_jointly(stack: Stack, pair: MeanFieldPair, context: PairContext, n_steps: int) -> MeanFieldPair:
    """
    Update q(a) and q(G) together (derivation, section 5).

    Parameters
    ----------
    stack : Stack
        Training kernels.
    pair : MeanFieldPair
        Current pair.
    context : PairContext
        Expectations of the neighbours.
    n_steps : int
        Conjugate gradient steps.

    Returns
    -------
    MeanFieldPair
        The new pair.
    """
    lam, upsilon = context.sample_precision, context.intermediate_precision[:, None, None]
    covariance, logdet = intermediate_covariance(context)
    M = mean_coupling(covariance, context)
    pull = upsilon * target_pull(covariance, context)
    residual = stack.backproject(pull - M @ pair.projection) - lam * pair.sample.mean

    def mean_of(outputs: slice, covariances: Array) -> Array:
        return pair.sample.mean[outputs] + conjugate_gradients(
            stack, lam[outputs], lambda x: M[outputs] @ x, residual[outputs], covariances, n_steps
        )

    sample = sample_factor(stack, context, mean_of)
    projection = stack.project(sample.mean)
    return MeanFieldPair(sample, intermediate_factor(projection, covariance, logdet, context), projection)


def conjugate_gradients(
    stack: Stack, lam: Array, couple: Callable[[Array], Array], residual: Array, covariances: Array, n_steps: int
) -> Array:
    r"""
    Take steps from zero towards the solution of a system for each output.

    .. math:: \Big(\Lambda + \sum_i \mathbf{K}^{i\top} \mathbf{M}_i \mathbf{K}^i\Big)\,\boldsymbol x = \boldsymbol r

    Parameters
    ----------
    stack : Stack
        Training kernels.
    lam : ndarray of shape (n_outputs, n_basis)
        Diagonals of the matrices :math:`\Lambda`.
    couple : callable
        Multiplies (n_outputs, n_kernels, n_samples) arrays with the matrices :math:`\mathbf{M}_i`.
    residual : ndarray of shape (n_outputs, n_basis)
        Right-hand sides r.
    covariances : ndarray of shape (n_outputs, n_basis, n_basis)
        Preconditioners: the covariances of a.
    n_steps : int
        Steps to take.

    Returns
    -------
    ndarray of shape (n_outputs, n_basis)
        The approximate solutions x; each step raises the quadratic they maximise.
    """
    x, r = np.zeros_like(residual), residual
    z = _apply(covariances, r)
    p, rho = z, _dot(r, z)
    floor = _RESIDUAL_FLOOR * rho
    for step in range(n_steps):
        Kp = stack.project(p)
        MKp = couple(Kp)
        curvature = _dot(lam * p, p) + _dot(Kp, MKp)
        length = np.divide(rho, curvature, out=np.zeros_like(rho), where=(rho > floor) & (curvature > 0.0))
        x = x + length[:, None] * p
        if step == n_steps - 1 or not length.any():
            break
        r = r - length[:, None] * (lam * p + stack.backproject(MKp))
        z = _apply(covariances, r)
        rho, before = _dot(r, z), rho
        p = z + np.divide(rho, before, out=np.zeros_like(rho), where=before > 0.0)[:, None] * p
    return x


def _apply(matrices: Array, vectors: Array) -> Array:
    """Multiply each output's matrix with its vector."""
    product: Array = (matrices @ vectors[:, :, None])[:, :, 0]
    return product


def _dot(left: Array, right: Array) -> Array:
    """Sum the products of two arrays over all axes but the first."""
    product: Array = np.einsum("ld,ld->l", left.reshape(len(left), -1), right.reshape(len(right), -1))
    return product
