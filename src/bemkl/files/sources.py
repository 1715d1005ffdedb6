"""The files that a user names, the samples that they become, and what predictions have to know of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.alignment import Rows
from bemkl.arrays import Array
from bemkl.files.matching import Matched
from bemkl.files.problems import InputError
from bemkl.files.repairs import KernelRepair, MixedKernels
from bemkl.files.targets import Values
from bemkl.kernels import KernelStack

TARGET = "target"
"""What the file of the target is called where rows are matched."""
OPTIONS = {"table": "--data", "views": "--view", "kernels": "--kernel", "mixed": "tables and --kernel"}
"""The option of each kind of samples."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that a user names."""

    data: Path | None = None  # one table, whose columns are features
    views: dict[str, Path] = field(default_factory=dict)  # several tables, by name
    kernels: tuple[tuple[str | None, Path, str | None], ...] = ()  # matrices: name, file, and variable in the file
    target: str | None = None  # file and columns of what is to be predicted
    id_column: str | None = None  # the column to match rows by
    # what is between the cells of text files, instead of what their endings say: by the name of a view or kernel, by
    # "target", or by nothing for all others
    delimiters: dict[str, str] = field(default_factory=dict)
    distances: bool = False  # whether matrices are distances
    repair: bool = False  # whether matrices that are no kernels are made kernels
    keep_incomplete: bool = False  # whether samples that lack a view are kept

    @property
    def kind(self) -> str:
        """What the samples are: "table", "views", "kernels", or "mixed" for tables and kernels."""
        if (self.data is not None and self.views) or not (self.data is not None or self.views or self.kernels):
            raise InputError(
                f"Expected samples, got {'both --data and --view' if self.views else 'none'}.",
                "Pass --data with one table or --view for each of several, --kernel for each matrix, or both kinds.",
            )
        if not self.kernels and (self.distances or self.repair):
            option = "--distances" if self.distances else "--repair"
            raise InputError(f"{option} is for matrices.", "Pass them with --kernel, or leave the option out.")
        if self.kernels:
            return "mixed" if self.data is not None or self.views else "kernels"
        return "views" if self.views else "table"

    def delimiter(self, name: str) -> str | None:
        """Return what the user said is between the cells of a file."""
        return self.delimiters.get(name, self.delimiters.get(""))

    @property
    def paths(self) -> list[Path]:
        """All files that are read, as far as they can be told from options."""
        target = [] if self.target is None else [Path(self.target), Path(self.target.rpartition(":")[0] or self.target)]
        data = [] if self.data is None else [self.data]
        return [*data, *self.views.values(), *(path for _, path, _ in self.kernels), *target]

    def checksums(self) -> dict[str, dict[str, str]]:
        """Return what it takes to know the files again."""
        paths = {"data": self.data} if self.data is not None else dict(self.views)
        paths |= {name or str(path): path for name, path, _ in self.kernels}
        return {name: {"path": str(path), "sha256": _digest(path)} for name, path in paths.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Samples from files."""

    # the samples: columns of a table or matrices of views, as an estimator takes them; matrices, or both
    X: Any = field(repr=False)
    matched: Matched = field(repr=False)  # names of the samples, and how rows of files were matched
    recipe: Recipe = field(repr=False)  # what predictions have to know
    prints: list[str] = field(repr=False)  # fingerprints of the samples' values
    # (n_samples,) or (n_samples, n_targets): what is to be predicted, where it is known
    y: Values | None = field(default=None, repr=False)
    task: str = ""  # what the target asks for; nothing without a target
    reason: str = ""  # why that is the task

    @property
    def names(self) -> list[str]:
        """Ids of the samples, or numbers from 1 on."""
        return self.matched.names

    def take(self, rows: npt.NDArray[np.bool_], reason: str = "") -> Gathered:
        """Keep some samples. Shapes: rows (n_samples,)."""
        kept = self.X[np.flatnonzero(rows)] if isinstance(self.X, KernelStack) else _rows_of_each(self.X, rows)
        prints = [one for one, keep in zip(self.prints, rows, strict=True) if keep]
        y = None if self.y is None else self.y[rows]
        return replace(self, X=kept, matched=self.matched.take(rows, reason), prints=prints, y=y)


def fingerprints(tables: Sequence[Array]) -> list[str]:
    """Return what tells samples with the same values. Shapes: tables (n_samples, n_columns)."""
    rows = np.hstack([np.asarray(table, dtype=np.float64) for table in tables]) + 0.0
    return [hashlib.blake2b(row.tobytes(), digest_size=12).hexdigest() for row in rows]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _rows_of_each(X: dict[str, Any], rows: npt.NDArray[np.bool_]) -> dict[str, Any]:
    return {name: values[rows] for name, values in X.items()}


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
