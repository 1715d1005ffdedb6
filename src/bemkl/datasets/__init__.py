"""Data sets for multiple kernel learning that can be fetched, each checked against a digest of its values."""

from bemkl.datasets.errors import DatasetNotFound
from bemkl.datasets.loading import load
from bemkl.datasets.overview import describe, names
from bemkl.datasets.sets import DataSet

__all__ = ["DataSet", "DatasetNotFound", "describe", "load", "names"]
