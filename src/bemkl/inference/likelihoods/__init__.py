"""Likelihoods: one file each. Adding one touches nothing else in the inference."""

from bemkl.inference.likelihoods.gaussian import Gaussian
from bemkl.inference.likelihoods.multinomial import Multinomial
from bemkl.inference.likelihoods.probit import Probit
from bemkl.inference.likelihoods.semi_supervised import SemiSupervisedProbit

__all__ = ["Gaussian", "Multinomial", "Probit", "SemiSupervisedProbit"]
