"""Data sets of the paper and others for multiple kernel learning, each checked against a digest of its values."""

from bemkl.datasets.errors import DatasetNotFound
from bemkl.datasets.loading import load
from bemkl.datasets.overview import describe, names
from bemkl.datasets.sets import DataSet, MatrixSet, MatrixSplit, SplitMatrixSet

__all__ = [
    "DataSet",
    "DatasetNotFound",
    "MatrixSet",
    "MatrixSplit",
    "SplitMatrixSet",
    "describe",
    "load",
    "names",
]
