"""What commands print: tables for people, JSON for machines, and progress that keeps out of pipes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bemkl.commands.streams import speaks_unicode, write_data, write_result
from bemkl.visible import visible, visible_json

if TYPE_CHECKING:
    from rich.console import RenderableType

_WIDE = 200

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option that all commands have."""


def print_json(values: Any) -> None:
    """Print a result for machines."""
    write_result(visible_json(json.dumps(_plain(values), ensure_ascii=not speaks_unicode(), indent=1)) + "\n")


def print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows for people."""
    from rich.table import Table
    from rich.text import Text

    # Names from files are text, not markup and nothing that a terminal obeys.
    table = Table(title=Text(visible(title), style="bold"), title_justify="left", box=None, pad_edge=False)
    for name, value in rows[0].items() if rows else ():
        numeric = not isinstance(value, str | bool)
        table.add_column(Text(visible(name)), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(_cell(value))) for value in row.values()))
    print_rich(table if rows else Text(f"{visible(title)}: none"))


def print_rich(*parts: RenderableType) -> None:
    """Print a result that has a layout."""
    from rich.console import Console

    console = Console(emoji=False)
    if not console.is_terminal:
        console = Console(width=_WIDE, emoji=False)
    # Rich ends the process where a pipe is closed: it only makes the text.
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    write_result(captured.get())


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = (), delimiter: str = ",") -> str:
    """Write rows as CSV. Text that a spreadsheet would run as a formula gets a single quote in front."""
    from bemkl.files import guarded

    lines = [list(map(str, rows[0] if rows else columns))]
    lines += [[_csv_text(value) for value in row.values()] for row in rows]
    return "".join(delimiter.join(_quoted(guarded(cell), delimiter) for cell in line) + "\n" for line in lines)


def print_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Print rows as CSV."""
    write_data(as_csv(rows, columns))


def refuse_csv(path: Path, *, force: bool, inputs: Iterable[Path]) -> None:
    """Refuse a place where no CSV can be or should be written."""
    from bemkl.files import InputError, refuse_output

    if path.suffix.lower() in (".parquet", ".npy", ".npz", ".mat", ".json", ".xlsx"):
        raise InputError(f"{path}: the table is written as text.", "Let the name end with .csv or .tsv.")
    refuse_output(path, force=force, inputs=inputs)


def save_csv(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Save rows as CSV, or with tabs between cells where the name of the file says so."""
    from bemkl.files import delimiter_of, write_whole

    write_whole(path, as_csv(rows, columns, delimiter_of(path)).encode("utf-8", "backslashreplace"))


@contextmanager
def progress(what: str, steps: int) -> Iterator[Callable[[], None]]:
    """Show how far long work is, on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=steps)
        yield lambda: bar.advance(task)


def _csv_text(value: Any) -> str:
    return "" if value is None else str(_yes_or_no(value))


def _quoted(cell: str, delimiter: str) -> str:
    """Quote a cell where it has to be; the writer of Python does not for all ends of lines."""
    marks = (delimiter, '"', "\r", "\n")
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in marks) else cell


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
    if hasattr(values, "tolist"):  # an array or a number of NumPy
        return _plain(values.tolist())
    if isinstance(values, list | tuple):
        return [_plain(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values
