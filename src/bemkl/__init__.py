"""Bayesian efficient multiple kernel learning."""

from importlib.metadata import version

from bemkl.estimators import BEMKLClassifier, BEMKLRegressor
from bemkl.kernels import KernelBank, KernelSpec, KernelStack, paper_bank, stack_kernels

__version__ = version("bemkl")
__all__ = [
    "BEMKLClassifier",
    "BEMKLRegressor",
    "KernelBank",
    "KernelSpec",
    "KernelStack",
    "__version__",
    "paper_bank",
    "stack_kernels",
]
