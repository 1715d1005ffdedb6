"""Loading of a data set from the first source that has its values, and what there is to load."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path

from bemkl.datasets.catalogue import CATALOGUE, Entry
from bemkl.datasets.directory import read_directory
from bemkl.datasets.openml import RECIPES, read_openml
from bemkl.datasets.packages import carrier, read_package
from bemkl.datasets.sets import DataSet, DatasetNotFound, SourceUnavailable

_VARIABLE = "BEMKL_DATA"
_LENGTH = 12


def load(name: str, data_home: str | os.PathLike[str] | None = None, check: bool = True) -> DataSet:
    """
    Load a data set by its name.

    Sources are tried in this order: a folder, an installed package that carries the set, OpenML, which needs a network
    and pandas. Values that differ from those of the catalogue are refused, and the next source is tried.

    Parameters
    ----------
    name : str
        Name of the set, one of `names()`.
    data_home : str or path, optional
        Folder with `<name>/<name>.csv` or `<name>/<name>.npz`. If None, the environment variable BEMKL_DATA names it,
        or there is none.
    check : bool
        Whether to refuse values with another checksum than the catalogue's.

    Returns
    -------
    DataSet
        The set.

    Raises
    ------
    DatasetNotFound
        If no source has it; the message says what happened to each.
    ValueError
        If there is no such name or folder, or a file in the folder is not what it should be.

    Examples
    --------
    >>> from bemkl import datasets
    >>> data = datasets.load("wdbc")
    >>> data.X.shape, data.kind, data.target_names
    ((569, 30), 'binary', ('benign', 'malignant'))
    >>> int(data.y.sum())
    212
    """
    return load_entry(_find_entry(name), data_folder(data_home), check)


def load_entry(entry: Entry, folder: Path | None, check: bool) -> DataSet:
    """Load a data set of any catalogue from the first source that has its values."""
    failures = []
    sources: dict[str, Callable[[], DataSet]] = {
        "directory": lambda: _from_folder(entry, folder),
        "installed package": lambda: read_package(entry),
        "OpenML": lambda: read_openml(entry),
    }
    for source, read in sources.items():
        try:
            found = read()
        except SourceUnavailable as reason:
            failures.append(f"{source}: {reason}")
            continue
        if not check or found.checksum == entry.checksum:
            return found
        failures.append(
            f"{source}: its values have the checksum {found.checksum[:_LENGTH]}… instead of "
            f"{entry.checksum[:_LENGTH]}…, and are refused; check=False takes them"
        )
    lines = "\n".join(f"  - {failure}" for failure in failures)
    raise DatasetNotFound(
        f"The data set {entry.name!r} could not be had:\n{lines}\n"
        f"Put {entry.name}.csv or {entry.name}.npz into a folder {entry.name!r}, and name the folder above it by "
        f"data_home or {_VARIABLE}."
    )


def _find_entry(name: str) -> Entry:
    """Look a name up in the catalogue."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    close = difflib.get_close_matches(str(name), CATALOGUE, n=3, cutoff=0.5)
    advice = f"Did you mean {' or '.join(repr(other) for other in close)}?" if close else "See datasets.names()."
    raise ValueError(f"name: there is no data set {name!r}. {advice}")


def _from_folder(entry: Entry, folder: Path | None) -> DataSet:
    if folder is None:
        raise SourceUnavailable(f"neither data_home nor {_VARIABLE} names a folder")
    found = read_directory(entry, folder)
    if found is None:
        raise SourceUnavailable(f"{folder} has no {entry.name}/{entry.name}.csv or .npz")
    return found


def data_folder(data_home: str | os.PathLike[str] | None) -> Path | None:
    """Give the folder of the data sets, or None if none was named."""
    named, argument = (data_home, "data_home") if data_home is not None else (os.environ.get(_VARIABLE), _VARIABLE)
    if not named:
        return None
    if not Path(named).is_dir():
        raise ValueError(
            f"{argument}: expected a folder that has a folder for each data set, got {os.fspath(named)!r}, which is "
            "not there or is no folder."
        )
    return Path(named)


def names() -> list[str]:
    """
    Return the names of all data sets.

    Returns
    -------
    list of str
        The names, those of the paper's first experiment first.

    Examples
    --------
    >>> names()[:4]
    ['breast', 'bupaliver', 'heart', 'ionosphere']
    """
    return list(CATALOGUE)


def describe() -> str:
    r"""
    Describe all data sets in a table: size, response, where it can be had, and licence.

    Returns
    -------
    str
        The table, one line a data set.

    Examples
    --------
    >>> print("\n".join(line[:70].rstrip() for line in describe().splitlines()[:3]))
    name        rows  features        target                    where
    breast      683   9               malignant                 directory,
    bupaliver   345   6               selector 2                directory,
    """
    header = ("name", "rows", "features", "target", "where", "licence")
    rows = [header, *(_row(entry) for entry in CATALOGUE.values())]
    widths = [max(len(row[j]) for row in rows) for j in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def _row(entry: Entry) -> tuple[str, ...]:
    if isinstance(entry.columns, int):
        features = str(entry.columns)
    else:
        features = f"{sum(entry.columns.values())} in {len(entry.columns)} views"
    package, recipe = carrier(entry), RECIPES.get(entry.name)
    where = ["directory", *([package] if package else [])]
    if recipe is not None:
        where.append("OpenML " + "+".join(str(number) for number in recipe.identifiers))
    return entry.name, str(entry.rows), features, entry.target, ", ".join(where), entry.licence
