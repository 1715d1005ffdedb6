"""Approximate solvers for the system of the means (derivation, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bemkl._numerics.linalg import Cholesky, add_times
from bemkl.arrays import Array
from bemkl.inference.block_state import BlockState
from bemkl.inference.newton.coupling import Coupling
from bemkl.inference.newton.steps import Kept, Look, Solve
from bemkl.inference.rows import Part, Rows

_NAME = "sample weights"
_CLOSE = 0.3
"""How far a system may be from the current one, relative to its size: up to here it takes no more sweeps."""


@dataclass(frozen=True, slots=True, eq=False)
class CombinedKernel:
    r"""
    An approximate system for each output, and its solvers.

    .. math:: \Lambda + \kappa\,\mathbf{C} + \mathbf{K}_e^\top \operatorname{diag}(\boldsymbol c)\,\mathbf{K}_e,
              \qquad \mathbf{K}_e = \sum_m \tilde e_m \mathbf{K}_m

    The factors c of the samples are in their parts.
    """

    weights: Array  # (n_kernels,): kernel weights that the combined kernel is made with
    across: Array  # (n_outputs,): the factors κ
    sample_precision: Array  # (n_outputs, n_basis): expected precisions of the sample weights
    solvers: Sequence[Solve] | None  # one an output; None where all together take too much memory

    def has_same_kernel(self, coupling: Coupling, seen: Look) -> bool:
        """Say whether the combined kernel is close to the current one."""
        # A kernel matters by its weight times what it makes of the means.
        sizes = np.sqrt(seen.sizes)
        return bool(_close((sizes * self.weights)[None], (sizes * coupling.context.weights.mean)[None])[0])

    def serves(self, coupling: Coupling, seen: Look) -> npt.NDArray[np.bool_]:
        """Say for which outputs the rest of the system is close to the current one. Shapes: returns (n_outputs,)."""
        along = np.sqrt(seen.change) <= _CLOSE * np.sqrt(seen.size)
        across = _close(self.across[:, None], coupling.across[:, None])
        return along & across & _close(self.sample_precision, coupling.context.sample_precision)


def _close(old: Array, new: Array) -> npt.NDArray[np.bool_]:
    """Say which rows have hardly changed."""
    close: npt.NDArray[np.bool_] = np.linalg.norm(new - old, axis=1) <= _CLOSE * np.linalg.norm(new, axis=1)
    return close


Solvers = Callable[[slice], Sequence[Solve]]
"""Maps some outputs to their solvers."""


def combined_kernel(
    here: BlockState, rows: Rows, coupling: Coupling, seen: Look, together: bool
) -> tuple[Rows, Solvers, CombinedKernel]:
    r"""
    Precondition by the combined kernel.

    With :math:`\mathbf{M}_i \approx c_i\,\tilde{\boldsymbol e}\tilde{\boldsymbol e}^\top + \kappa\,\mathbf{I}` the sum
    over all pairs of kernels collapses to two matrices: the combined kernel and the gram matrix. A system serves for
    later updates as long as it is close to the current one, and where all outputs are asked for together, so do its
    solvers.
    """
    last, context, gram = here.helper, coupling.context, here.block.kernels.gram
    weights, across, lam = context.weights.mean, coupling.across, context.sample_precision
    serving = np.zeros(here.n_outputs, dtype=bool)
    if last is not None and last.has_same_kernel(coupling, seen):
        serving, weights = last.serves(coupling, seen), last.weights
        across, lam = np.where(serving, last.across, across), np.where(serving[:, None], last.sample_precision, lam)
        if serving.all() and last.solvers is not None:
            return rows, last.solvers.__getitem__, last
    rows, _ = rows.run(keep, weights, serving)

    def solvers(outputs: slice) -> list[Solve]:
        numbers = np.arange(here.n_outputs)[outputs]
        _, systems = rows.run(weigh, numbers)
        for o, system in zip(numbers, systems, strict=True):
            add_times(system[None], across[o : o + 1], gram[None])
            system[np.diag_indices_from(system)] += lam[o]
        return [Cholesky.of(system, _NAME, overwrite=True).solve for system in systems]

    if not together:
        return rows, solvers, CombinedKernel(weights, across, lam, None)
    known = [] if last is None or last.solvers is None else last.solvers
    whole = [known[o] if known and serving[o] else solvers(slice(o, o + 1))[0] for o in range(here.n_outputs)]
    return rows, whole.__getitem__, CombinedKernel(weights, across, lam, whole)


def keep(part: Part, weights: Array, serving: npt.NDArray[np.bool_]) -> tuple[Part, None]:
    """Note what the systems are made of: what it was for outputs that it serves, the current factors for others."""
    along, kept = part.work.samples.along, part.kept
    if kept is not None and np.array_equal(kept.weights, weights):
        combined = kept.combined
    else:
        combined = part.stack.combine_roughly(weights)
    if kept is not None:
        along = np.where(serving[:, None], kept.along, along)
    return replace(part, kept=Kept(along, weights, combined)), None


def weigh(part: Part, numbers: npt.NDArray[np.intp]) -> tuple[Part, tuple[Array, ...]]:
    """
    Sum the squares of the combined kernel, for some outputs with the factors of their samples.

    Shapes: numbers (n_chosen,); returns n_chosen matrices (n_basis, n_basis).
    """
    kept: Kept = part.kept
    roots = [np.sqrt(kept.along[o])[:, None] * kept.combined for o in numbers]
    return part, tuple(root.T @ root for root in roots)
