"""The estimators: models with scikit-learn's manners on top of kernels and inference."""

from bemkl.estimators.classification import BEMKLClassifier
from bemkl.estimators.regression import BEMKLRegressor
from bemkl.estimators.sharing import shared_kernels

__all__ = ["BEMKLClassifier", "BEMKLRegressor", "shared_kernels"]
