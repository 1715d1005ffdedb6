"""What a model that was fitted on files has to know of them to read others of the same kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.files.mixed import MixedKernels
from bemkl.files.repairs import KernelRepair

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """
    How files became samples.

    Parameters
    ----------
    kind : {"table", "views", "kernels", "mixed"}
        What the samples are.
    columns : dict of str to list of str
        Columns of each view, in the order of training; of a table those of the only one, ""; empty for kernels.
    named : dict of str to bool
        Whether the columns of a view have names of their own, or are only numbered.
    kernels : list of str
        Names of the matrices; empty for tables.
    places : dict of str to (int, ndarray of int)
        Of each matrix its number of columns, and those of the training samples.
    prepare : KernelRepair or MixedKernels, or None
        What makes kernels of matrices, fitted; None for tables alone, which estimators take as they are.
    targets : list of str
        Names of what is predicted.
    ids : list of str
        Names of the training samples.
    prints : list of str
        Fingerprints of the training samples' values.
    has_ids : bool
        Whether the names are ids from the files.
    id_column : str or None
        What the user called the column of ids.
    settings : dict of str to Any
        What the user asked for, to tell it again.
    """

    kind: str
    columns: dict[str, list[str]] = field(default_factory=dict)
    named: dict[str, bool] = field(default_factory=dict)
    kernels: list[str] = field(default_factory=list)
    places: dict[str, tuple[int, Rows]] = field(default_factory=dict, repr=False)
    prepare: KernelRepair | MixedKernels | None = None
    targets: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list, repr=False)
    prints: list[str] = field(default_factory=list, repr=False)
    has_ids: bool = False
    id_column: str | None = None
    settings: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def has_views(self) -> bool:
        """Whether tables are views, and not one table."""
        return "" not in self.columns
