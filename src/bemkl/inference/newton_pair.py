"""Joint means with the targets eliminated: a Newton step in the means of (a, G), with q(f) at its optimum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bemkl.arrays import Array, whole_number
from bemkl.inference.mean_field import Intermediate, MeanFieldPair
from bemkl.inference.moments import PairContext
from bemkl.inference.pair import JointMeans, MeanFieldStrategy, conjugate_gradients
from bemkl.inference.pair_factors import intermediate_covariance, mean_coupling, sample_factor
from bemkl.inference.protocols import PairStep, Stack


@dataclass(frozen=True, slots=True)
class NewtonMeans(MeanFieldStrategy):
    r"""
    Same factors as `JointMeans`, with means that do not wait for the targets (derivation, section 5).

    With q(f) fixed, the bound has the curvature :math:`\tilde\tau` in each mean of the predictor. With q(f) at its
    optimum, it has the curvature :math:`w_i \le \tilde\tau` of the likelihood's profile: much less for samples far on
    their side of the margin. One Newton step of the means uses it,

    .. math:: \Sigma_i = \big(\Sigma(\boldsymbol g)^{-1}
              + (w_i - \tilde\tau)\,\tilde{\boldsymbol e}\tilde{\boldsymbol e}^\top\big)^{-1}

    in the place of :math:`\Sigma(\boldsymbol g)`, a correction of rank one. A Newton step can overshoot; the engine
    then falls back on `JointMeans`.

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
        """Joint means with the targets fixed."""
        return JointMeans(self.n_steps)

    @property
    def steps(self) -> Mapping[str, PairStep[MeanFieldPair]]:
        """The one update."""
        return {
            "sample_weights_and_intermediate": lambda stack, pair, context: update_by_newton(
                stack, pair, context, self.n_steps
            )
        }


@dataclass(frozen=True, slots=True, eq=False)
class Curved:
    r"""
    Covariances of the intermediate outputs in a quadratic model whose curvature differs between samples.

    Parameters
    ----------
    covariance : ndarray of shape (n_outputs, n_kernels, n_kernels)
        :math:`\Sigma(\boldsymbol g)`, for the precision of the targets.
    direction : ndarray of shape (n_outputs, n_kernels)
        :math:`\boldsymbol q = \Sigma(\boldsymbol g)\,\tilde{\boldsymbol e}`.
    shrinkage : ndarray of shape (n_outputs, n_samples)
        :math:`1 + (w_i - \tilde\tau)\,\tilde{\boldsymbol e}^\top\boldsymbol q`, positive.
    correction : ndarray of shape (n_outputs, n_samples)
        :math:`\rho_i = (w_i - \tilde\tau)` over the shrinkage, so that
        :math:`\Sigma_i = \Sigma(\boldsymbol g) - \rho_i\,\boldsymbol q\boldsymbol q^\top`.
    """

    covariance: Array
    direction: Array
    shrinkage: Array
    correction: Array

    @classmethod
    def of(cls, covariance: Array, curvature: Array, context: PairContext) -> Curved:
        """
        Correct covariances for the curvature of each sample.

        Parameters
        ----------
        covariance : ndarray of shape (n_outputs, n_kernels, n_kernels)
            Covariances for the precision of the targets.
        curvature : ndarray of shape (n_outputs, n_samples)
            Curvatures w.
        context : PairContext
            Expectations of the neighbours.

        Returns
        -------
        Curved
            The covariances.
        """
        e = context.weights.mean
        q = covariance @ e
        excess = curvature - context.output_precision[:, None]
        shrinkage = 1.0 + excess * (q @ e)[:, None]
        return cls(covariance, q, shrinkage, excess / shrinkage)

    def along(self, x: Array, outputs: slice = slice(None)) -> Array:
        r"""
        Return the correction of rank one, :math:`\rho_i\,\boldsymbol q\boldsymbol q^\top \boldsymbol x_i`.

        Parameters
        ----------
        x : ndarray of shape (n_outputs, n_kernels, n_samples)
            Vectors.
        outputs : slice
            Which outputs they belong to.

        Returns
        -------
        ndarray of shape (n_outputs, n_kernels, n_samples)
            The corrections.
        """
        q, rho = self.direction[outputs], self.correction[outputs]
        product: Array = q[:, :, None] * (rho * np.einsum("lm,lmi->li", q, x))[:, None, :]
        return product


def update_by_newton(stack: Stack, pair: MeanFieldPair, context: PairContext, n_steps: int) -> MeanFieldPair:
    """
    Update q(a) and q(G) together, with means from a Newton step (derivation, section 5).

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
    eta = context.weights.mean @ pair.intermediate.mean + context.weights.bias[:, None]
    profile = context.profile(eta)
    curved = Curved.of(covariance, profile.curvature, context)
    pull = _pull(curved, profile.curvature * (eta - context.weights.bias[:, None]) + profile.gradient, context)

    def couple(x: Array, outputs: slice = slice(None)) -> Array:
        product: Array = M[outputs] @ x + upsilon[outputs] ** 2 * curved.along(x, outputs)
        return product

    residual = stack.backproject(upsilon * pull - couple(pair.projection)) - lam * pair.sample.mean

    def mean_of(outputs: slice, covariances: Array) -> Array:
        return pair.sample.mean[outputs] + conjugate_gradients(
            stack, lam[outputs], lambda x: couple(x, outputs), residual[outputs], covariances, n_steps
        )

    sample = sample_factor(stack, context, mean_of)
    projection = stack.project(sample.mean)
    mean = upsilon * (covariance @ projection - curved.along(projection)) + pull
    return MeanFieldPair(sample, Intermediate(mean, covariance, logdet), projection)


def _pull(curved: Curved, slope: Array, context: PairContext) -> Array:
    """Part of the mean of G that comes from the likelihood: of rank two an output, as with fixed targets."""
    tau, cross = context.output_precision[:, None], context.weights.cross
    offset = tau * np.einsum("lmn,nl->lm", curved.covariance, cross)
    bent = tau * curved.correction * np.einsum("lm,ml->l", curved.direction, cross)[:, None]
    along = slope / curved.shrinkage + bent
    pull: Array = curved.direction[:, :, None] * along[:, None, :] - offset[:, :, None]
    return pull
