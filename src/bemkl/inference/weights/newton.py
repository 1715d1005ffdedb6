"""The paper's posterior of the kernel weights, reached by bolder steps: targets eliminated, precisions extrapolated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bemkl.arrays import Array
from bemkl.distributions import Gamma, Priors
from bemkl.inference.block import Evidence, WeightStep
from bemkl.inference.newton.steps import STEP_LENGTH, beyond
from bemkl.inference.weights.free import Free, FreeWeights, precision_of, pull_of, update_bias_precision

_BOLDEST = 10.0
_MEEKEST = 0.01
_FAR = 0.1
"""Share of the precision of kernel weights, in the mean, from which a move of their priors' precisions is a far one."""

_MOST_STEPS = 20
_ENOUGH = 1e-4
"""Share of the squared error that a Newton step may leave: less saves no sweeps."""


@dataclass(frozen=True, slots=True)
class NewtonWeights(Free):
    """
    The family of `Free` with steps that usually raise the bound by more, and may lower it (derivation, section 5).

    Means take a Newton step with the targets at their optimum; precisions of kernel weights take the step of their
    fixed-point equation, and after a far one another with the weights that follow from it. Where a sweep lowers the
    bound, the engine repeats it with `Free`.

    Parameters
    ----------
    step_length : float
        Length of the steps of the means relative to Newton's.

    Examples
    --------
    >>> NewtonWeights().cautious
    Free()
    """

    step_length: float = STEP_LENGTH

    @property
    def cautious(self) -> Free:
        """The steps of coordinate ascent."""
        return Free()

    @property
    def balanced(self) -> bool:
        """Sweeps look for the best scale of kernel weights against the rest."""
        return True

    @property
    def steps(self) -> Mapping[str, WeightStep[FreeWeights]]:
        """The three updates, in order."""
        return {
            "bias_precision": update_bias_precision,
            "kernel_precision": update_kernel_precision_twice,
            "kernel_weights": self._update,
        }

    def _update(self, weights: FreeWeights, evidence: Sequence[Evidence], priors: Priors) -> FreeWeights:
        """Take the covariance of Eq. (4), and a Newton step of the mean (derivation, section 5)."""
        precision = precision_of(weights, evidence)
        product = precision @ weights.mean
        covariance, logdet = precision.inverse_and_logdet(overwrite=True)
        mean = newton_mean(weights, evidence, product, covariance.__matmul__, self.step_length)
        return replace(weights, mean=mean, covariance=covariance, logdet=logdet)


def update_kernel_precision_boldly(weights: FreeWeights, evidence: Sequence[Evidence], priors: Priors) -> FreeWeights:
    r"""Move :math:`q(\omega)` by its fixed-point equation."""
    kernels = slice(weights.n_biases, None)
    mean, variance = weights.mean[kernels], weights.covariance.diagonal()[kernels]
    return replace(weights, kernel_precision=fixed_point(priors.kernel, weights.kernel_precision, 1, mean**2, variance))


def update_kernel_precision_twice(weights: FreeWeights, evidence: Sequence[Evidence], priors: Priors) -> FreeWeights:
    r"""
    Move :math:`q(\omega)` by its fixed-point equation and, if that is far, again where it leads the weights.

    Under a sparse prior, kernels are dropped over several sweeps, and all but their weights hardly notice: a second
    move costs a fraction of the sweep that it may save. Where it goes back, the precision stays between the two.
    """
    kernels = slice(weights.n_biases, None)
    moved = update_kernel_precision_boldly(weights, evidence, priors)
    change = np.abs(moved.kernel_precision.mean - weights.kernel_precision.mean)
    if np.mean(change * weights.covariance.diagonal()[kernels]) < _FAR:
        return moved
    solver = precision_of(moved, evidence).solver(overwrite=True)
    mean = beyond(weights.mean, solver.solve(pull_of(evidence)))
    variances = solver.kernel_variances(overwrite=True)
    again = fixed_point(priors.kernel, moved.kernel_precision, 1, mean[kernels] ** 2, variances)
    return replace(moved, mean=mean, kernel_precision=_settled(weights.kernel_precision, moved.kernel_precision, again))


def _settled(before: Gamma, once: Gamma, twice: Gamma) -> Gamma:
    """Go half the way back where a second move reverses the first: those of a dropped kernel would go on for good."""
    first, second = once.mean / before.mean, twice.mean / once.mean
    back = np.where((first > 1.0) == (second > 1.0), 1.0, 1.0 / np.sqrt(second))
    return Gamma(twice.shape, np.asarray(twice.scale) * back)


def fixed_point(prior: Gamma, precision: Gamma, count: int, squares: Array, variance: Array) -> Gamma:
    r"""
    Move the factor of precisions by their fixed-point equation (derivation, section 5).

    .. math:: \tilde\omega_m \leftarrow \frac{2\alpha_\omega + 1 - \tilde\omega_m \Sigma_{mm}}
              {2/\beta_\omega + \mu_m^2}

    It has the fixed points of coordinate ascent, which adds only a constant to the precision of a kernel without
    support; this multiplies it.

    Shapes: squares (n_kernels,), variance (n_kernels,).
    """
    plain = prior.posterior(count, squares + variance)
    supported = np.maximum(count - precision.mean * variance, 0.0)
    goal = (2.0 * np.asarray(prior.shape) + supported) / (2.0 / np.asarray(prior.scale) + squares)
    chosen = np.clip(goal, _MEEKEST * plain.mean, _BOLDEST * plain.mean)
    return Gamma(plain.shape, chosen / np.asarray(plain.shape))


def newton_mean(
    weights: FreeWeights,
    evidence: Sequence[Evidence],
    product: Array,
    solve: Callable[[Array], Array],
    step_length: float = STEP_LENGTH,
) -> Array:
    """
    Take a Newton step of the means of (b, e), with the targets at their optimum, and go on (derivation, section 5).

    Shapes: product (n_biases + n_kernels,); returns (n_biases + n_kernels,).
    """
    kernels, gradient = slice(weights.n_biases, None), -product
    found = [block.missing(weights.moments(t)) for t, block in enumerate(evidence)]
    for (sums, _), biases in zip(found, weights.bias_slices, strict=True):
        gradient[biases] += sums.bias_pull
        gradient[kernels] += sums.kernel_pull

    def add_excess(vector: Array, out: Array) -> None:
        for (sums, matrix), biases in zip(found, weights.bias_slices, strict=True):
            out[biases] -= sums.curvature * vector[biases] + sums.link @ vector[kernels]
            out[kernels] -= matrix @ vector[kernels] + vector[biases] @ sums.link

    return weights.mean + step_length * _newton_step(gradient, solve, add_excess)


def _newton_step(gradient: Array, solve: Callable[[Array], Array], add_excess: Callable[[Array, Array], None]) -> Array:
    """
    Solve the system of a Newton step by conjugate gradients.

    The matrix is a precision plus an excess of low rank. What solves systems with the precision is the preconditioner;
    so its products with the directions are sums of residuals, and come for free.
    """
    x, r, z = np.zeros_like(gradient), gradient, solve(gradient)
    p, along, rho = z, r, float(r @ z)
    enough = _ENOUGH * rho
    for _ in range(_MOST_STEPS):
        if rho <= enough:
            break
        product = along.copy()
        add_excess(p, product)
        length = rho / float(p @ product)
        x = x + length * p
        r = r - length * product
        z = solve(r)
        rho, before = float(r @ z), rho
        p, along = z + (rho / before) * p, r + (rho / before) * along
    return x


def strategy(*, bold: bool) -> Free:
    """Return the paper's family of weights: with bold steps, or with its own."""
    return NewtonWeights() if bold else Free()


PARTS: dict[type, dict[str, str]] = {FreeWeights: {}}
