"""Loading of a data set from the first source that has its values."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from bemkl.datasets.catalogue import CATALOGUE, Entry
from bemkl.datasets.checksums import value_checksum
from bemkl.datasets.directory import read_directory
from bemkl.datasets.errors import DatasetNotFound, SourceUnavailable
from bemkl.datasets.openml import read_openml
from bemkl.datasets.packages import read_package
from bemkl.datasets.sets import DataSet
from bemkl.datasets.values import Values

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
    for source, read in _sources(entry, folder):
        try:
            values = read()
        except SourceUnavailable as reason:
            failures.append(f"{source}: {reason}")
            continue
        checksum = value_checksum(values.X, values.y)
        if not check or checksum == entry.checksum:
            return _data_set(entry, values, checksum)
        failures.append(
            f"{source}: its values have the checksum {checksum[:_LENGTH]}… instead of {entry.checksum[:_LENGTH]}…, and "
            "are refused; check=False takes them"
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


def _sources(entry: Entry, folder: Path | None) -> Iterator[tuple[str, Callable[[], Values]]]:
    yield "directory", lambda: _from_folder(entry, folder)
    yield "installed package", lambda: read_package(entry)
    yield "OpenML", lambda: read_openml(entry)


def _from_folder(entry: Entry, folder: Path | None) -> Values:
    if folder is None:
        raise SourceUnavailable(f"neither data_home nor {_VARIABLE} names a folder")
    values = read_directory(entry, folder)
    if values is None:
        raise SourceUnavailable(f"{folder} has no {entry.name}/{entry.name}.csv or .npz")
    return values


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


def _data_set(entry: Entry, values: Values, checksum: str) -> DataSet:
    return DataSet(
        name=entry.name,
        X=values.X,
        y=values.y,
        feature_names=values.feature_names,
        target_names=values.target_names,
        train=values.train,
        kind=entry.kind,
        checksum=checksum,
        source=values.source,
        licence=entry.licence,
        citation=entry.citation,
    )
