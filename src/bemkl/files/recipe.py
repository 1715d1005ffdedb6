"""What a model that was fitted on files has to know of them to read others of the same kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bemkl.arrays import Array

KINDS = ("table", "views", "kernels")
"""What samples can be: one table, several tables, or matrices."""


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """
    How files became samples.

    Parameters
    ----------
    kind : {"table", "views", "kernels"}
        What the samples are.
    columns : dict of str to list of str
        Columns of each view, in the order of training; of a table those of the only one, ""; empty for kernels.
    named : dict of str to bool
        Whether the columns of a view have names of their own, or are only numbered.
    kernels : list of str
        Names of the matrices; empty for tables.
    targets : list of str
        Names of what is predicted.
    ids : list of str
        Names of the training samples.
    has_ids : bool
        Whether these are ids from the files.
    id_column : str or None
        What the user called the column of ids.
    scales : dict of str to float
        Mean distance of the training samples, where matrices are distances.
    negative : dict of str to ndarray of shape (n_train, n_negative)
        Eigenvectors that were taken out of repaired matrices.
    settings : dict of str to Any
        What the user asked for, to tell it again.
    """

    kind: str
    columns: dict[str, list[str]] = field(default_factory=dict)
    named: dict[str, bool] = field(default_factory=dict)
    kernels: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list, repr=False)
    has_ids: bool = False
    id_column: str | None = None
    scales: dict[str, float] = field(default_factory=dict)
    negative: dict[str, Array] = field(default_factory=dict, repr=False)
    settings: dict[str, Any] = field(default_factory=dict, repr=False)
