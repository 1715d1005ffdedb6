"""Tables and sections of a report, for the terminal and for a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich import box
from rich.table import Table as RichTable
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Table:
    """Cells under a header."""

    header: Sequence[str]  # names of the columns
    rows: Sequence[Sequence[str]]  # the cells

    def markdown(self) -> str:
        """Return the table in Markdown."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def rich(self) -> RichTable:
        """Return the table for a terminal."""
        table = RichTable(box=box.SIMPLE)
        for heading in self.header:
            table.add_column(heading, overflow="fold")
        for row in self.rows:
            table.add_row(*(Text(cell.strip("*"), style="bold" if cell.startswith("**") else "") for cell in row))
        return table


@dataclass(frozen=True, slots=True)
class Section:
    """Part of a report: a heading, sentences and a table."""

    heading: str  # the heading
    text: str  # what the table shows
    table: Table | None = None  # the table

    def markdown(self) -> str:
        """Return the section in Markdown."""
        parts = [f"## {self.heading}", self.text, *([self.table.markdown()] if self.table else [])]
        return "\n\n".join(parts)


def spread(values: npt.ArrayLike, digits: int = 2, factor: float = 1.0) -> str:
    """Write mean and standard deviation. Shapes: values (n_values,)."""
    numbers = np.asarray(values, dtype=np.float64) * factor
    if not numbers.size or np.isnan(numbers).any():
        return "–"
    deviation = f"±{numbers.std(ddof=1):.{digits}f}" if len(numbers) > 1 else ""
    return f"{numbers.mean():.{digits}f}{deviation}"
