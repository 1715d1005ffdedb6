"""Data sets for multiple kernel learning that can be fetched, each checked against a digest of its values."""

from bemkl.datasets.loading import describe, load, names
from bemkl.datasets.sets import DataSet, DatasetNotFound

__all__ = ["DataSet", "DatasetNotFound", "describe", "load", "names"]
