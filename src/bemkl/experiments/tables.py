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
    """
    Cells under a header.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : sequence of sequence of str
        The cells.

    Examples
    --------
    >>> print(Table(["set", "accuracy"], [["wdbc", "97.1"]]).markdown())
    | set | accuracy |
    | --- | --- |
    | wdbc | 97.1 |
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """
        Return the table in Markdown.

        Returns
        -------
        str
            Its lines.
        """
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def rich(self) -> RichTable:
        """
        Return the table for a terminal.

        Returns
        -------
        rich.table.Table
            The table.
        """
        table = RichTable(box=box.SIMPLE)
        for heading in self.header:
            table.add_column(heading, overflow="fold")
        for row in self.rows:
            table.add_row(*(Text(cell.strip("*"), style="bold" if cell.startswith("**") else "") for cell in row))
        return table


@dataclass(frozen=True, slots=True)
class Section:
    """
    Part of a report: a heading, sentences and a table.

    Parameters
    ----------
    heading : str
        The heading.
    text : str
        What the table shows.
    table : Table or None
        The table.
    """

    heading: str
    text: str
    table: Table | None = None

    def markdown(self) -> str:
        """
        Return the section in Markdown.

        Returns
        -------
        str
            Its lines.
        """
        parts = [f"## {self.heading}", self.text, *([self.table.markdown()] if self.table else [])]
        return "\n\n".join(parts)


def spread(values: npt.ArrayLike, digits: int = 2, factor: float = 1.0) -> str:
    """
    Write mean and standard deviation.

    Parameters
    ----------
    values : array_like of shape (n_values,)
        The values; a single one, or none that is a number, has no deviation.
    digits : int
        Digits after the point.
    factor : float
        What to multiply by, such as 100 for per cent.

    Returns
    -------
    str
        Such as "95.70±2.32".

    Examples
    --------
    >>> spread([0.9, 1.0], factor=100.0)
    '95.00±7.07'
    """
    numbers = np.asarray(values, dtype=np.float64) * factor
    if not numbers.size or np.isnan(numbers).any():
        return "–"
    deviation = f"±{numbers.std(ddof=1):.{digits}f}" if len(numbers) > 1 else ""
    return f"{numbers.mean():.{digits}f}{deviation}"
