"""Bayesian efficient multiple kernel learning."""

from importlib.metadata import version

from bemkl.estimators import BEMKLClassifier, BEMKLMultiTask, BEMKLRegressor, select_by_bound, shared_kernels
from bemkl.kernels import KernelBank, KernelSpec, KernelStack, paper_bank, stack_kernels
from bemkl.persistence import load_model, save_model

__version__ = version("bemkl")
__all__ = [
    "BEMKLClassifier",
    "BEMKLMultiTask",
    "BEMKLRegressor",
    "KernelBank",
    "KernelSpec",
    "KernelStack",
    "__version__",
    "load_model",
    "paper_bank",
    "save_model",
    "select_by_bound",
    "shared_kernels",
    "stack_kernels",
]
