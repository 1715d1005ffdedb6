"""Loading of a table, or of views."""

from __future__ import annotations

from pathlib import Path

from bemkl.datasets import DataSet
from bemkl.datasets.loading import data_folder, load_entry
from experiments.datasets.catalogue import ENTRIES


def load(name: str, data_home: Path | None = None) -> DataSet:
    """Load a data set that the package can fetch, or one that has to be in the folder."""
    return load_entry(ENTRIES[name], data_folder(data_home), check=True)
