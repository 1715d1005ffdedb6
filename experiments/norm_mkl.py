"""Kernel weights of a support vector machine under a norm: l1, l2 and between, from precomputed kernels."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from sklearn.svm import SVC

from bemkl.arrays import Array, finite_number, whole_number
from bemkl.exceptions import ConvergenceWarning
from experiments.easy_mkl import binary_signs, simplex_programme, training_kernels

_GROWTH = 1.5
_NEW_KERNELS = 50
_SHORTEST_NEWTON = 0.01
_NEGLIGIBLE = 1e-6
_PRECISION = 1e-8


def norm_mkl_weights(
    K: npt.ArrayLike, y: npt.ArrayLike, C: float, norm: float, tol: float = 1e-4, max_iter: int = 200
) -> Array:
    r"""
    Return the kernel weights that lp-norm multiple kernel learning finds [1]_.

    With the hinge loss and the norm p, weights and support vector machine solve

    .. math:: \min_{\theta \ge 0, \, \|\theta\|_p \le 1} \; \max_{0 \le \alpha \le C, \, \alpha^\top y = 0} \;
        \mathbf{1}^\top \alpha - \tfrac12 \sum_m \theta_m g_m, \qquad g_m = (\alpha \circ y)^\top K_m (\alpha \circ y)

    They are found in turns: scikit-learn's machine for given weights, and the weights in closed form for a given
    machine, :math:`\theta_m \propto \|w_m\|^{2 / (p + 1)}` with :math:`\|w_m\|^2 = \theta_m^2 g_m`. That step is
    lengthened as long as the objective falls. For p = 1 it may need thousands of machines, and is only taken where
    Newton's step [2]_ does not lower the objective.

    Exchanging minimum and maximum bounds the optimum from below by
    :math:`\mathbf{1}^\top \alpha - \tfrac12 \|g\|_{p / (p - 1)}`, with the largest g for p = 1. The machine's own
    primal objective bounds it from above; the iterations stop where the two are close, or the weights settle.

    Shapes: K (n_kernels, n_samples, n_samples), y (n_samples,); returns (n_kernels,).
    """
    kernels, signs = training_kernels(K), binary_signs(y)
    if len(signs) != kernels.shape[1]:
        raise ValueError(f"y: expected a label for each of {kernels.shape[1]} samples, got {len(signs)}.")
    weights, gap = solve_norm_mkl(
        kernels,
        signs,
        finite_number("C", C, least=0.0),
        finite_number("norm", norm, least=1.0, allow_least=True),
        finite_number("tol", tol, least=0.0),
        whole_number("max_iter", max_iter, least=1),
    )
    if gap > tol:
        warnings.warn(
            f"norm_mkl_weights: the duality gap is {gap:.2g} of the objective, more than tol={tol:g}. "
            f"Raise max_iter={max_iter}, or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return weights


def solve_norm_mkl(
    kernels: Array, signs: Array, C: float, norm: float, tol: float, max_iter: int, start: Array | None = None
) -> tuple[Array, float]:
    """
    Solve the problem of `norm_mkl_weights`, without checks of input.

    Shapes: kernels (n_kernels, n_samples, n_samples), signs (n_samples,), start (n_kernels,); returns weights
    (n_kernels,).
    """
    weights = np.ones(len(kernels)) if start is None else start
    machine = _Machine(np.ascontiguousarray(kernels), signs, C, min(1e-4, 0.01 * tol), max_iter)
    point = machine.fit(weights / np.linalg.norm(weights, norm))
    if norm > 1.0:
        return _closed_form_steps(machine, point, norm, tol)
    has_few = start is not None
    while (gap := point.gap(norm)) > tol and machine.left > 0:
        # Few kernels will have a weight: look for them among those that have one and those that ask most for one.
        wanted = np.argsort(-point.energies)[:_NEW_KERNELS]
        wanted = wanted[point.energies[wanted] > point.energy]
        kept = point.weights > _NEGLIGIBLE * point.weights.max() if has_few else np.zeros(len(kernels), dtype=bool)
        active, has_few = np.union1d(np.flatnonzero(kept), wanted), True
        if len(active) == 0:
            break
        part = _Machine(machine.kernels[active], signs, C, machine.tol, machine.left)
        inside = point.weights[active] if point.weights[active].sum() > 0.0 else np.ones(len(active))
        # While other kernels are to come, these need not be settled to the last digit.
        inside, has_settled = _newton_steps(part, inside / inside.sum(), max(0.5 * tol, 0.1 * gap))
        weights = np.zeros(len(kernels))
        weights[active] = np.where(inside > _NEGLIGIBLE * inside.max(), inside, 0.0)
        machine.left = part.left
        point = machine.fit(weights / weights.sum())
        if has_settled and point.energies.max() <= point.energies[active].max():
            break
    return point.weights, point.gap(norm)


class _Point(NamedTuple):
    """A support vector machine on weighted kernels, and what it says about the weights."""

    weights: Array
    kernel: Array
    coefficients: Array
    images: Array
    energies: Array
    energy: float
    upper: float

    @property
    def value(self) -> float:
        """The machine's dual objective: nearer to its optimum than the primal one where the solver stopped early."""
        return float(np.abs(self.coefficients).sum()) - 0.5 * self.energy

    def gap(self, norm: float) -> float:
        """Return the duality gap as a share of the objective."""
        dual_norm = np.inf if norm == 1.0 else norm / (norm - 1.0)
        lower = self.value + 0.5 * (self.energy - float(np.linalg.norm(self.energies, dual_norm)))
        return (self.upper - lower) / max(self.upper, np.finfo(np.float64).tiny)


class _Machine:
    """Support vector machines on the same kernels and labels with different weights, a limited number of them."""

    def __init__(self, kernels: Array, signs: Array, C: float, tol: float, left: int) -> None:
        self.kernels, self.signs, self.C, self.tol, self.left = kernels, signs, C, tol, left

    def fit(self, weights: Array) -> _Point:
        self.left -= 1
        kernel = np.tensordot(weights, self.kernels, axes=1)
        svm = SVC(C=self.C, kernel="precomputed", tol=self.tol).fit(kernel, self.signs)
        coefficients = np.zeros(len(self.signs))
        coefficients[svm.support_] = svm.dual_coef_[0]
        outputs = kernel @ coefficients
        energy = float(coefficients @ outputs)
        upper = _primal(energy, self.signs * (outputs + svm.intercept_[0]), self.C)
        images = self.kernels @ coefficients
        energies = np.maximum(images @ coefficients, 0.0)
        return _Point(weights, kernel, coefficients, images, energies, energy, upper)


def _primal(energy: float, margins: Array, C: float) -> float:
    """
    Return the primal objective of a machine, or of a multiple of it where that is better.

    The solver leaves margins of support vectors a little below 1, and each costs C times that: far more than a machine
    that is larger by so little. At the scale 1 / m, samples of a margin below m pay.
    """
    ascending = np.sort(margins)
    scales = 1.0 / ascending[ascending > 0.0]
    first = len(ascending) - len(scales)
    n_paying, paid = np.arange(first, len(ascending)), np.cumsum(ascending)[first:] - ascending[first:]
    objectives = 0.5 * scales**2 * energy + C * (n_paying - scales * paid)
    plain = 0.5 * energy + C * float(np.maximum(0.0, 1.0 - margins).sum())
    return float(min(plain, objectives.min(initial=np.inf)))


def _closed_form_steps(machine: _Machine, point: _Point, norm: float, tol: float) -> tuple[Array, float]:
    """Alternate machines and closed forms, with steps that grow as long as the objective falls."""
    shortest = 1.0 / (norm + 1.0)
    step = shortest
    while point.gap(norm) > tol and machine.left > 0 and point.energies.any():
        weights = _closed_form(point, norm, step)
        if np.abs(weights - point.weights).max() <= 1e-3 * tol * weights.max():
            break
        proposal = machine.fit(weights)
        if proposal.value > point.value and step > shortest and machine.left > 0:
            step = shortest
            proposal = machine.fit(_closed_form(point, norm, step))
        step *= _GROWTH
        point = proposal
    return point.weights, point.gap(norm)


def _closed_form(point: _Point, norm: float, step: float) -> Array:
    """Return the weights of the closed form for the step 1 / (p + 1), and weights further that way for longer ones."""
    # A kernel without a weight, or without an effect, gets none.
    has_norm = (point.weights > 0.0) & (point.energies > 0.0)
    logarithm = np.log(point.weights[has_norm])
    logarithm += step * (np.log(point.energies[has_norm]) - (norm - 1.0) * logarithm)
    moved = np.zeros_like(point.weights)
    moved[has_norm] = np.exp(logarithm - logarithm.max())
    normalised: Array = moved / np.linalg.norm(moved, norm)
    return normalised


def _newton_steps(machine: _Machine, weights: Array, tol: float) -> tuple[Array, bool]:
    """Minimise the machine's objective over weights that sum to 1; also return whether they settled before."""
    point = machine.fit(weights)
    while point.gap(1.0) > tol and machine.left > 0 and point.energies.any():
        change = _newton_target(point, machine.C) - point.weights
        length, proposal = 1.0, point
        while not _is_better(proposal, point) and length >= _SHORTEST_NEWTON and machine.left > 0:
            proposal = machine.fit(point.weights + length * change)
            # The slope along the way rises; where it has passed zero, the way is cut at its estimated zero.
            before, after = float(point.energies @ change), float(proposal.energies @ change)
            length *= min(max(before / (before - after), 0.1), 0.9) if after < 0.0 < before else 0.3
        if not _is_better(proposal, point) and machine.left > 0:
            proposal = machine.fit(_closed_form(point, 1.0, 0.5))
        if not _is_better(proposal, point):
            return point.weights, True
        point = proposal
    return point.weights, False


def _is_better(proposal: _Point, point: _Point) -> bool:
    """
    Return whether a step is to be taken: the objective falls, or stays and the gap falls.

    Near the optimum the objective is flat, and the solver of machines, which has single precision inside, cannot tell
    its values apart; the gap still says which weights are closer.
    """
    if proposal.value < (1.0 - _PRECISION) * point.value:
        return True
    return proposal.value <= (1.0 + _PRECISION) * point.value and proposal.gap(1.0) < 0.9 * point.gap(1.0)


def _newton_target(point: _Point, C: float) -> Array:
    """
    Return the weights that minimise the second-order model of the objective on the simplex.

    While the same support vectors are at the bounds, the free ones follow the weights linearly, and the objective's
    Hessian is V M V', with the kernels' images V of the machine at the free ones and the inverse M of the combined
    kernel there, restricted to changes that sum to zero.
    """
    size = np.abs(point.coefficients)
    free = (size > 1e-8 * C) & (size < (1.0 - 1e-8) * C)
    H = np.zeros((len(point.weights), len(point.weights)))
    if free.any():
        inner = point.kernel[np.ix_(free, free)]
        ridge = 1e-8 * max(float(inner.diagonal().mean()), np.finfo(np.float64).tiny)
        factor = cho_factor(inner + ridge * np.eye(len(inner)))
        images = np.column_stack([np.ones(len(inner)), point.images[:, free].T])
        whole = images.T @ cho_solve(factor, images)
        H = whole[1:, 1:] - np.outer(whole[1:, 0], whole[0, 1:]) / whole[0, 0]
        H = 0.5 * (H + H.T)
    # Kernels that say the same leave the model flat: a small ridge keeps the step where it is.
    H[np.diag_indices_from(H)] += 1e-6 * max(float(H.diagonal().max()), point.energy)
    target, _ = simplex_programme(H, -0.5 * point.energies - H @ point.weights, np.ones(len(H), dtype=bool), tol=1e-8)
    return target
