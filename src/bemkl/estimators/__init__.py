"""The estimators: models with scikit-learn's manners on top of kernels and inference."""

from bemkl.estimators.classification import BEMKLClassifier
from bemkl.estimators.leaving_out import LeftOut
from bemkl.estimators.multitask import BEMKLMultiTask
from bemkl.estimators.regression import BEMKLRegressor
from bemkl.estimators.selection import BoundSearch, select_by_bound
from bemkl.estimators.sharing import shared_kernels

__all__ = [
    "BEMKLClassifier",
    "BEMKLMultiTask",
    "BEMKLRegressor",
    "BoundSearch",
    "LeftOut",
    "select_by_bound",
    "shared_kernels",
]
