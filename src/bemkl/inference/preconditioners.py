"""Approximate solvers for the system of the means (derivation, section 5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.approximation import Approximation
from bemkl.inference.coupling import Coupling
from bemkl.inference.moves import Solve
from bemkl.inference.protocols import Stack
from bemkl.inference.recent import recall
from bemkl.linalg import Cholesky, add_times
from bemkl.rough import rough_solver

Solvers = Callable[[slice], list[Solve]]
Preconditioner = Callable[[Stack, Coupling, Approximation], Solvers]

_NAME = "sample weights"
_MANY = 100
"""Basis points from which single precision saves time."""


def combined_kernel(stack: Stack, coupling: Coupling, approximation: Approximation) -> Solvers:
    r"""
    Precondition by the combined kernel.

    With :math:`\mathbf{M}_i \approx c_i\,\tilde{\boldsymbol e}\tilde{\boldsymbol e}^\top + \kappa\,\mathbf{I}` the sum
    over all pairs of kernels collapses to two matrices: the combined kernel and the gram matrix,

    .. math:: \Lambda + \kappa\,\mathbf{C} + \mathbf{K}_e^\top \operatorname{diag}(\boldsymbol c)\,\mathbf{K}_e,
              \qquad \mathbf{K}_e = \sum_m \tilde e_m \mathbf{K}_m
    """
    n_outputs = len(approximation.across)

    @cache
    def combined() -> Array:
        return stack.combine_roughly(approximation.weights)

    def solver(o: int) -> Solve:
        along, across, lam = approximation.along[o], approximation.across[o], approximation.sample_precision[o]
        if len(lam) >= _MANY:
            roughly = rough_solver(combined(), along, stack.gram(), across, lam)
            if roughly is not None:
                return roughly
        root = np.sqrt(along)[:, None] * combined()
        system: Array = root.T @ root
        add_times(system[None], np.array([across]), stack.gram()[None])
        return Cholesky.of(_with_prior(system, lam), _NAME, overwrite=True).solve

    def solvers(outputs: slice) -> list[Solve]:
        wanted = range(*outputs.indices(n_outputs))
        if len(wanted) < n_outputs:
            return [solver(o) for o in wanted]
        return recall(stack, approximation, lambda: [solver(o) for o in wanted])

    return solvers


def sample_precision(stack: Stack, coupling: Coupling, approximation: Approximation) -> Solvers:
    r"""
    Precondition by the covariance of the sample weights, :math:`(\Lambda + \tilde\upsilon\,\mathbf{C})^{-1}`.

    It is a worse preconditioner, but the same for every form of the same kernels.
    """
    lam, upsilon = coupling.context.sample_precision, coupling.context.intermediate_precision

    def solver(o: int) -> Solve:
        return Cholesky.of(_with_prior(upsilon[o] * stack.gram(), lam[o]), _NAME, overwrite=True).solve

    return lambda outputs: [solver(o) for o in range(*outputs.indices(len(lam)))]


def _with_prior(matrix: Array, precision: Array) -> Array:
    """Add the precisions of the sample weights to a matrix, in place."""
    matrix[np.diag_indices_from(matrix)] += precision
    return matrix
