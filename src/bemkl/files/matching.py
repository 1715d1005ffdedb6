"""Rows of several files that belong together: by ids, or by order where files have none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from bemkl.alignment import Rows, rows_of
from bemkl.files.problems import InputError, listed
from bemkl.files.tables import FileTable


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The rows of a file."""

    label: str  # what to call the file in messages
    n_rows: int  # number of rows
    ids: list[str] | None  # their ids


def rows_of_table(label: str, table: FileTable, id_column: str | None) -> Part:
    """Return the rows of a table."""
    return Part(label, table.n_rows, None if id_column is None else table.ids(id_column))


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Samples, and where each file has them."""

    names: list[str]  # ids of the samples, or numbers from 1 on
    rows: dict[str, Rows]  # (n_samples,): by file, the row of each sample; -1 for a sample that the file lacks
    unmatched: dict[str, list[str]]  # by file, ids of rows that have no partner in the other files
    by_order: list[str]  # files without ids, whose rows were taken in the order of the others
    has_ids: bool  # whether the names are ids
    # by a reason other than that, names of samples that were left out
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def take(self, keep: npt.NDArray[np.bool_], reason: str = "") -> Matched:
        """Keep some samples. Shapes: keep (n_samples,)."""
        names = [name for name, kept in zip(self.names, keep, strict=True) if kept]
        gone = [name for name, kept in zip(self.names, keep, strict=True) if not kept]
        left_out = self.left_out | ({reason: gone} if reason and gone else {})
        rows = {label: rows[keep] for label, rows in self.rows.items()}
        return replace(self, names=names, rows=rows, left_out=left_out)

    def everything_left_out(self) -> dict[str, list[str]]:
        """Return what did not match and what was left out, in full."""
        return {label: ids for label, ids in (self.unmatched | self.left_out).items() if ids}

    def sentences(self) -> list[str]:
        """Say what did not match."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for name in dict.fromkeys(name for ids in self.unmatched.values() for name in ids):
            groups.setdefault(tuple(label for label, ids in self.unmatched.items() if name not in ids), []).append(name)
        said = [
            f"Left out {len(ids)} {'row that is' if len(ids) == 1 else 'rows that are'} not in {' and '.join(labels)}: "
            f"{listed(ids, 10)}."
            for labels, ids in groups.items()
        ]
        said += [
            f"Left out {len(ids)} {'sample' if len(ids) == 1 else 'samples'} {reason}: {listed(ids, 10)}."
            for reason, ids in self.left_out.items()
        ]
        lacking = {label: [self.names[i] for i in np.flatnonzero(rows < 0)] for label, rows in self.rows.items()}
        said += [
            f"{label}: lacks {len(ids)} of the {len(self.names)} samples: {listed(ids, 10)}."
            for label, ids in lacking.items()
            if ids
        ]
        if self.has_ids and self.by_order:
            said.append(f"{', '.join(self.by_order)}: no ids, rows are taken in the order of the other files.")
        elif len(self.by_order) > 1:
            said.append("No file has ids: rows are taken in their order.")
        return said


def match(parts: Sequence[Part], may_lack: Collection[str] = ()) -> Matched:
    """Find the samples that all files have."""
    named = [part for part in parts if part.ids is not None]
    by_order = [part for part in parts if part.ids is None]
    first = named[0] if named else parts[0]
    different = [part for part in by_order if part.n_rows != first.n_rows]
    if different:
        sizes = ", ".join(f"{part.label} has {part.n_rows} rows" for part in (first, *different))
        raise InputError(
            f"Rows cannot be matched: {sizes}, and not all files have ids.",
            "Give every table an id column (--id names it), or the same rows in the same order.",
        )
    if not named:
        every = np.arange(first.n_rows)
        names = [str(row + 1) for row in every]
        return Matched(names, {part.label: every for part in parts}, {}, [part.label for part in parts], False)
    known = {part.label: set(part.ids or []) for part in named}
    needed = [part for part in named if part.label not in may_lack]
    candidates = [name for part in needed or named for name in part.ids or []]
    common = [name for name in dict.fromkeys(candidates) if all(name in known[part.label] for part in needed)]
    if not common:
        shown = "; ".join(f"{part.label} has {listed(part.ids or [], 3)}" for part in named)
        raise InputError(f"No id is in all files: {shown}.", "Check the id columns (--id), and how ids are written.")
    inside = set(common)
    rows = {part.label: rows_of(common, part.ids or []) for part in named}
    rows |= {part.label: rows[first.label] for part in by_order}
    unmatched = {part.label: [name for name in part.ids or [] if name not in inside] for part in named}
    return Matched(common, rows, unmatched, [part.label for part in by_order], True)
