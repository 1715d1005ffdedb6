"""The data of the experiments: what users can fetch, what has to be in a folder, and published matrices."""

from experiments.datasets.loading import load
from experiments.datasets.matrices import MatrixSet, MatrixSplit, SplitMatrixSet
from experiments.datasets.published import load_published

__all__ = ["MatrixSet", "MatrixSplit", "SplitMatrixSet", "load", "load_published"]
