"""The approximate system of the means that a preconditioner solves, and for how long it serves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array

_CLOSE = 0.3
"""How far a system may be from the current one, relative to its size: up to here it takes no more sweeps."""


@dataclass(frozen=True, slots=True, eq=False)
class Approximation:
    r"""
    An approximate system for each output (derivation, section 5).

    .. math:: \Lambda + \kappa\,\mathbf{C} + \mathbf{K}_e^\top \operatorname{diag}(\boldsymbol c)\,\mathbf{K}_e
    """

    weights: Array  # (n_kernels,): kernel weights that the combined kernel {K}_e is made with
    along: Array  # (n_outputs, n_samples): the factors c of the samples
    across: Array  # (n_outputs,): the factors κ
    sample_precision: Array  # (n_outputs, n_basis): expected precisions of the sample weights

    def in_place_of(self, current: Approximation, sizes: Array) -> Approximation:
        """Return what to use now: of this system whatever is close to the current one. Shapes: sizes (n_kernels,)."""
        if not _close((sizes * self.weights)[None], (sizes * current.weights)[None])[0]:
            return current
        serves = _close(self.along, current.along) & _close(self.sample_precision, current.sample_precision)
        serves &= _close(self.across[:, None], current.across[:, None])
        if serves.all():
            return self
        return Approximation(
            weights=self.weights,
            along=np.where(serves[:, None], self.along, current.along),
            across=np.where(serves, self.across, current.across),
            sample_precision=np.where(serves[:, None], self.sample_precision, current.sample_precision),
        )


def _close(old: Array, new: Array) -> npt.NDArray[np.bool_]:
    """Say which rows have hardly changed."""
    close: npt.NDArray[np.bool_] = np.linalg.norm(new - old, axis=1) <= _CLOSE * np.linalg.norm(new, axis=1)
    return close
