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
    """How files became samples."""

    kind: str  # what the samples are
    # columns of each view, in the order of training; of a table those of the only one, ""; empty for kernels
    columns: dict[str, list[str]] = field(default_factory=dict)
    # whether the columns of a view have names of their own, or are only numbered
    named: dict[str, bool] = field(default_factory=dict)
    kernels: list[str] = field(default_factory=list)  # names of the matrices; empty for tables
    # of each matrix its number of columns, and those of the training samples
    places: dict[str, tuple[int, Rows]] = field(default_factory=dict, repr=False)
    # what makes kernels of matrices, fitted; None for tables alone, which estimators take as they are
    prepare: KernelRepair | MixedKernels | None = None
    targets: list[str] = field(default_factory=list)  # names of what is predicted
    ids: list[str] = field(default_factory=list, repr=False)  # names of the training samples
    prints: list[str] = field(default_factory=list, repr=False)  # fingerprints of the training samples' values
    has_ids: bool = False  # whether the names are ids from the files
    id_column: str | None = None  # what the user called the column of ids
    settings: dict[str, Any] = field(default_factory=dict, repr=False)  # what the user asked for, to tell it again

    @property
    def has_views(self) -> bool:
        """Whether tables are views, and not one table."""
        return "" not in self.columns
