"""The approximate system of the means that a preconditioner solves, and for how long it serves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bemkl.arrays import Array

_CLOSE = 0.3
"""How far a system may be from the current one, relative to its size: up to here it takes no more sweeps."""


@dataclass(frozen=True, slots=True, eq=False)
class Approximation:
    r"""
    An approximate system for each output (derivation, section 5).

    .. math:: \Lambda + \kappa\,\mathbf{C} + \mathbf{K}_e^\top \operatorname{diag}(\boldsymbol c)\,\mathbf{K}_e

    Parameters
    ----------
    weights : ndarray of shape (n_kernels,)
        Kernel weights that the combined kernel :math:`\mathbf{K}_e` is made with.
    along : ndarray of shape (n_outputs, n_samples)
        The factors c of the samples.
    across : ndarray of shape (n_outputs,)
        The factors :math:`\kappa`.
    sample_precision : ndarray of shape (n_outputs, n_basis)
        Expected precisions of the sample weights.
    """

    weights: Array
    along: Array
    across: Array
    sample_precision: Array

    def in_place_of(self, current: Approximation, sizes: Array) -> Approximation:
        """
        Return what to use now: this system, the current one with these kernel weights, or the current one.

        Parameters
        ----------
        current : Approximation
            The system at the current means.
        sizes : ndarray of shape (n_kernels,)
            How much each kernel has to say: changes of its weight count as much.

        Returns
        -------
        Approximation
            The same object where it is close enough.
        """
        if not _close(sizes * self.weights, sizes * current.weights):
            return current
        same = (
            _close(self.along, current.along)
            and _close(self.across, current.across)
            and _close(self.sample_precision, current.sample_precision)
        )
        return self if same else replace(current, weights=self.weights)


def _close(old: Array, new: Array) -> bool:
    return bool(np.linalg.norm(new - old) <= _CLOSE * np.linalg.norm(new))
