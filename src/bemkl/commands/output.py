"""What commands print: results on the standard output, and everything else on the standard error."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from bemkl.visible import visible, visible_json

_WIDE = 200

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option that all commands have."""


def write_result(text: str) -> None:
    """Write a result to the standard output, all of it at once."""
    # Python has no stream where a shell closed it, and would drop the result without a word.
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    encoding = sys.stdout.encoding
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def write_data(text: str) -> None:
    """Write a result whose values come from files: as they are, or made visible where a terminal shows them."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    write_result(visible(text, keep="\n\t") if on_terminal else text)


def say(*sentences: str) -> None:
    """Tell the user something that is not the result; what cannot be told is no reason to stop."""
    try:
        if sys.stderr is not None:
            sys.stderr.writelines(f"{visible(sentence)}\n" for sentence in sentences)
            sys.stderr.flush()
    except OSError:
        _give_up(sys.stderr)


def flush_result() -> None:
    """Write what is left of the result, so that an error comes now and not when Python ends."""
    if sys.stdout is not None:
        sys.stdout.flush()


def end_result() -> None:
    """Write what is left of a result after an error; if that fails, let it go, or Python would try again at its end."""
    try:
        flush_result()
    except OSError:
        _give_up(sys.stdout)


def print_json(values: Any) -> None:
    """Print a result for machines."""
    write_result(visible_json(json.dumps(_plain(values), ensure_ascii=not speaks_unicode(), indent=1)) + "\n")


def print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows for people."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Names from files are text, not markup and nothing that a terminal obeys.
    table = Table(title=Text(visible(title), style="bold"), title_justify="left", box=None, pad_edge=False)
    for name, value in rows[0].items() if rows else ():
        numeric = not isinstance(value, str | bool)
        table.add_column(Text(visible(name)), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(_cell(value))) for value in row.values()))
    console = Console(emoji=False)
    if not console.is_terminal:
        console = Console(width=_WIDE, emoji=False)
    # Rich ends the process where a pipe is closed: it only makes the text.
    with console.capture() as captured:
        console.print(table if rows else Text(f"{visible(title)}: none"))
    write_result(captured.get())


def print_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Print rows as CSV."""
    write_data(as_csv(rows, columns))


def save_csv(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Save rows as CSV, or with tabs between cells where the name of the file says so."""
    from bemkl.files import delimiter_of, write_whole

    write_whole(path, as_csv(rows, columns, delimiter_of(path)).encode("utf-8", "backslashreplace"))


def refuse_csv(path: Path, *, force: bool, inputs: Iterable[Path]) -> None:
    """Refuse a place where no CSV can be or should be written."""
    from bemkl.files import InputError, refuse_output

    if path.suffix.lower() in (".parquet", ".npy", ".npz", ".mat", ".json", ".xlsx"):
        raise InputError(f"{path}: the table is written as text.", "Let the name end with .csv or .tsv.")
    refuse_output(path, force=force, inputs=inputs)


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = (), delimiter: str = ",") -> str:
    """Write rows as CSV. Text that a spreadsheet would run as a formula gets a single quote in front."""
    from bemkl.files import guarded

    lines = [list(map(str, rows[0] if rows else columns))]
    lines += [[_csv_text(value) for value in row.values()] for row in rows]
    return "".join(delimiter.join(_quoted(guarded(cell), delimiter) for cell in line) + "\n" for line in lines)


@contextlib.contextmanager
def progress(what: str, steps: int) -> Iterator[Callable[[], None]]:
    """Show how far long work is, on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=steps)
        yield lambda: bar.advance(task)


def weight_table(model: Any, coverage: float = 0.95, *, rounded: bool = False) -> list[dict[str, Any]]:
    """Return the kernel weights, largest first."""
    from bemkl.estimators.summary import WeightTable

    table = model.summary(coverage, rounded=rounded)
    rows = list(table) if isinstance(table, WeightTable) else table.reset_index().to_dict("records")
    chosen = _selected(model)
    return [row | {"selected": (row.get("class"), row["kernel"]) in chosen} for row in rows]


def top_of_each(rows: list[dict[str, Any]], top: int | None) -> list[dict[str, Any]]:
    """Keep the first rows of each class."""
    seen: dict[Any, int] = {}
    kept = []
    for row in rows:
        seen[row.get("class")] = seen.get(row.get("class"), 0) + 1
        if top is None or seen[row.get("class")] <= top:
            kept.append(row)
    return kept


def speaks_unicode() -> bool:
    """Tell whether the standard output takes all characters."""
    return sys.stdout is None or sys.stdout.encoding.lower().startswith("utf")


def _give_up(stream: TextIO) -> None:
    # Streams without a descriptor, as in tests, have nothing that Python writes at its end.
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _selected(model: Any) -> set[tuple[Any, str]]:
    """Name the kernels that are used, by class where each has weights of its own."""
    import numpy as np

    from bemkl.estimators.summary import selected

    if np.ndim(model.kernel_weights_) == 1:
        return {(None, model.kernel_names_[position]) for position in model.selected_kernels_}
    inclusion = getattr(model, "kernel_inclusion_", None)
    masks = [selected(row) for row in model.kernel_weights_] if inclusion is None else inclusion > 0.5
    return {
        (label, name)
        for label, mask in zip(map(str, model.classes_), masks, strict=True)
        for name, there in zip(model.kernel_names_, mask, strict=True)
        if there
    }


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
