"""Likelihoods: one file each. Adding one touches nothing else in the inference."""

from bemkl.inference.likelihoods.gaussian import Gaussian
from bemkl.inference.likelihoods.probit import Probit

__all__ = ["Gaussian", "Probit"]
