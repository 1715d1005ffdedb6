"""What commands print: tables for people, JSON for machines, and progress that keeps out of pipes."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
import numpy as np
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

_WIDE = 200

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option that all commands have."""


def say(*sentences: str) -> None:
    """
    Tell the user something that is not the result.

    Parameters
    ----------
    *sentences : str
        Lines for the standard error.
    """
    for sentence in sentences:
        click.echo(sentence, err=True)


def print_json(values: Any) -> None:
    """
    Print a result for machines.

    Parameters
    ----------
    values : Any
        Dicts, lists, text, numbers and arrays; what is not finite becomes null.
    """
    click.echo(json.dumps(_plain(values), ensure_ascii=False, indent=1))


def print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """
    Print rows for people.

    Parameters
    ----------
    title : str
        What they are.
    rows : sequence of mappings
        The rows, all with the same keys, which become the header.
    """
    console = Console(emoji=False)
    if not console.is_terminal:
        console = Console(width=_WIDE, emoji=False)
    # Names from files are text, not markup.
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, pad_edge=False)
    for name, value in rows[0].items() if rows else ():
        justify: JustifyMethod = "left" if isinstance(value, str | bool) else "right"
        table.add_column(Text(name), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    console.print(table if rows else f"{title}: none", markup=False)


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    r"""
    Write rows as CSV.

    Parameters
    ----------
    rows : sequence of mappings
        The rows, all with the same keys, which become the header.
    columns : sequence of str
        The header, if there are no rows.

    Returns
    -------
    str
        The text, with a line end after each row.

    Examples
    --------
    >>> as_csv([{"id": "a,b", "value": 0.5}])
    'id,value\n"a,b",0.5\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0] if rows else columns)
    writer.writerows([_yes_or_no(value) for value in row.values()] for row in rows)
    return text.getvalue()


@contextmanager
def progress(what: str, steps: int) -> Iterator[Callable[[], None]]:
    """
    Show how far long work is, on a terminal only.

    Parameters
    ----------
    what : str
        What is being done.
    steps : int
        Number of steps.

    Yields
    ------
    callable
        To be called after each step.
    """
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=steps)
        yield lambda: bar.advance(task)


def _yes_or_no(value: Any) -> Any:
    return ("no", "yes")[value] if isinstance(value, bool) else value


def _cell(value: Any) -> str:
    value = _yes_or_no(value)
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def _plain(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {str(name): _plain(value) for name, value in values.items()}
    if isinstance(values, np.ndarray | np.generic):
        return _plain(values.tolist())
    if isinstance(values, list | tuple):
        return [_plain(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values
