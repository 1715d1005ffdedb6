"""Bayesian efficient multiple kernel learning."""

from importlib.metadata import version

__version__ = version("bemkl")
__all__ = ["__version__"]
