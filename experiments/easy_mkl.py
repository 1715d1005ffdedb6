"""Kernel weights by the margin distribution (EasyMKL), and the quadratic programme that finds them."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from bemkl.arrays import Array, finite_array, finite_number
from bemkl.exceptions import ConvergenceWarning

_ASYMMETRY = 1e-6
_GAP = 1e-10


def easy_mkl_weights(K: npt.ArrayLike, y: npt.ArrayLike, lam: float = 0.1) -> Array:
    r"""
    Return the kernel weights of EasyMKL [1]_.

    Two points, one in the convex hull of each class, are as close as the sum of all kernels allows, and spread over
    many samples:

    .. math:: \min_\gamma \; (1 - \lambda) \, \gamma^\top Y \Big(\sum_m K_m\Big) Y \gamma
        + \lambda \|\gamma\|^2, \qquad \gamma \ge 0, \quad
        \sum_{i: y_i = 1} \gamma_i = \sum_{i: y_i = -1} \gamma_i = 1

    A kernel's weight is the squared distance of the two points in its own space, :math:`\gamma^\top Y K_m Y \gamma`,
    so that kernels which keep the classes apart have more. Kernels are first divided by their mean diagonal entry.

    Shapes: K (n_kernels, n_samples, n_samples), y (n_samples,); returns (n_kernels,).
    """
    kernels, signs = training_kernels(K), binary_signs(y)
    if len(signs) != kernels.shape[1]:
        raise ValueError(f"y: expected a label for each of {kernels.shape[1]} samples, got {len(signs)}.")
    share = finite_number("lam", lam, least=0.0, allow_least=True)
    if share > 1.0:
        raise ValueError(f"lam: expected a number from 0 to 1, got {lam!r}.")
    weights: Array = solve_easy_mkl(kernels, signs[:, None], share)[0]
    return weights


def solve_easy_mkl(kernels: Array, signs: Array, lam: float) -> Array:
    """
    Solve one or several problems of `easy_mkl_weights` on the same kernels, without checks of input.

    Shapes: kernels (n_kernels, n_samples, n_samples), signs (n_samples, n_problems); returns (n_problems, n_kernels).
    """
    diagonals = np.einsum("mii->m", kernels) / kernels.shape[1]
    if diagonals.min() <= 0.0:
        raise ValueError(
            f"K: expected a positive mean diagonal entry, got {diagonals.min():g} for kernel {diagonals.argmin()}. "
            "Leave it out."
        )
    total = np.tensordot(1.0 / diagonals, kernels, axes=1)
    shares = np.empty_like(signs)
    for column, labels in zip(shares.T, signs.T, strict=True):
        # Twice the objective's matrix, over the number of kernels: neither changes the solution.
        H = (1.0 - lam) / len(kernels) * total * np.outer(labels, labels)
        H[np.diag_indices_from(H)] += lam / len(kernels)
        solution, gap = simplex_programme(H, np.zeros(len(labels)), labels > 0.0)
        if gap > 1e-6:
            warnings.warn(f"easy_mkl_weights: the duality gap is {gap:.2g}.", ConvergenceWarning, stacklevel=3)
        column[:] = labels * solution
    distances = np.stack([np.einsum("ip,ip->p", shares, kernel @ shares) for kernel in kernels], axis=1)
    scaled = np.maximum(distances / diagonals, 0.0)
    # Where all kernels take the points for one, none is better than another.
    scaled[scaled.sum(axis=1) == 0.0] = 1.0
    weights: Array = scaled / scaled.sum(axis=1, keepdims=True) / diagonals
    return weights


def simplex_programme(
    H: Array, c: Array, is_first: npt.NDArray[np.bool_], tol: float = _GAP, max_iter: int = 100
) -> tuple[Array, float]:
    r"""
    Minimise a convex quadratic function over one or two simplices, by a primal-dual interior point method.

    .. math:: \min_x \tfrac12 x^\top H x + c^\top x, \qquad x \ge 0, \quad \text{each group sums to 1}

    Start and steps satisfy the equations, so that what remains is complementarity. Each iteration is a Cholesky
    factorisation and two solves: a step towards the end, and one that corrects it [1]_.

    Shapes: H (n, n), c (n,), is_first (n,); returns x (n,).
    """
    groups = np.stack([group for group in (is_first, ~is_first) if group.any()], axis=1).astype(np.float64)
    x = groups @ (1.0 / groups.sum(axis=0))
    gradient = H @ x + c
    size = np.abs(gradient).max() or 1.0
    slack = gradient - groups @ _least(gradient, groups) + 0.1 * size
    gap = np.inf
    for _ in range(max_iter):
        gradient = H @ x + c
        gap = float(x @ gradient - _least(gradient, groups).sum())
        gap /= max(float(x @ (H @ x)) + abs(float(c @ x)), np.finfo(np.float64).tiny)
        if gap <= tol:
            break
        ratio = slack / x
        matrix = H.copy()
        matrix[np.diag_indices_from(matrix)] += ratio
        try:
            factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            raise ValueError(
                "K: the sum of the kernels is not positive semidefinite. "
                "Clip its negative eigenvalues, or add to the diagonal."
            ) from None
        lifted = cho_solve(factor, groups, check_finite=False)
        schur = groups.T @ lifted

        def direction(right: Array, lifted: Array = lifted, schur: Array = schur, factor: object = factor) -> Array:
            plain = cho_solve(factor, right, check_finite=False)
            constrained: Array = plain - lifted @ np.linalg.solve(schur, groups.T @ plain)
            return constrained

        mean = float(x @ slack) / len(x)
        dx = direction(-slack)
        ds = -slack - ratio * dx
        length = _longest(x, dx, slack, ds)
        centring = (float((x + length * dx) @ (slack + length * ds)) / len(x) / mean) ** 3
        target = (centring * mean - dx * ds) / x - slack
        dx = direction(target)
        ds = target - ratio * dx
        length = _longest(x, dx, slack, ds)
        x, slack = x + length * dx, slack + length * ds
        # The equations hold for each step; rounding is taken out before it adds up.
        x = x / (groups @ (groups.T @ x))
    return x, gap


def training_kernels(K: npt.ArrayLike) -> Array:
    """
    Check the kernel matrices of training samples.

    Shapes: K (n_kernels, n_samples, n_samples); returns (n_kernels, n_samples, n_samples).
    """
    kernels = finite_array("K", K)
    if kernels.ndim != 3 or kernels.shape[1] != kernels.shape[2] or 0 in kernels.shape:
        raise ValueError(
            f"K: expected shape (n_kernels, n_samples, n_samples), got {kernels.shape}. Kernels come first."
        )
    for position, kernel in enumerate(kernels):
        if np.abs(kernel - kernel.T).max() > _ASYMMETRY * np.abs(kernel).max():
            raise ValueError(f"K: expected symmetric matrices, and kernel {position} is not.")
    return kernels


def binary_signs(y: npt.ArrayLike) -> Array:
    """Check the labels of a problem with two classes. Shapes: y (n_samples,); returns (n_samples,)."""
    signs = finite_array("y", y)
    if signs.ndim != 1 or set(np.unique(signs).tolist()) != {-1.0, 1.0}:
        raise ValueError(
            f"y: expected both of the labels -1 and +1 and no other in one dimension, got shape {signs.shape} with "
            f"{np.unique(signs)[:4].tolist()}."
        )
    return signs


def _least(gradient: Array, groups: Array) -> Array:
    """Return the smallest entry of each group."""
    least: Array = np.where(groups > 0.0, gradient[:, None], np.inf).min(axis=0)
    return least


def _longest(x: Array, dx: Array, slack: Array, ds: Array) -> float:
    """Return the step, at most 1, that keeps variables and slacks positive."""
    share = max(float((-dx / x).max()), float((-ds / slack).max()))
    return min(1.0, 0.99 / share) if share > 0.0 else 1.0
