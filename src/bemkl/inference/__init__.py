"""
The inference engine: coordinate ascent over blocks that share kernel weights.

A `Problem` is a list of `Block` objects (kernels and a likelihood), priors and strategies. `run` fits it, `predict`
applies it, `lower_bound_terms` takes the bound apart.
"""

from bemkl.inference.bound import lower_bound_terms
from bemkl.inference.engine import FitResult, ascend, initialise, iterate, run, sweep
from bemkl.inference.factorized import Factorized
from bemkl.inference.likelihoods import Gaussian, Multinomial, Probit, SemiSupervisedProbit
from bemkl.inference.newton_weights import NewtonWeights
from bemkl.inference.nonnegative import Nonnegative
from bemkl.inference.pair import JointMeans, NewtonMeans, Plain
from bemkl.inference.pooled import Pooled
from bemkl.inference.predict import FittedBlock, Prediction, fitted_block, predict
from bemkl.inference.priors import DENSE, SPARSE, Priors
from bemkl.inference.problem import Block, Problem
from bemkl.inference.spike_slab import SpikeSlab
from bemkl.inference.state import BlockState, State
from bemkl.inference.weights import Free

__all__ = [
    "DENSE",
    "SPARSE",
    "Block",
    "BlockState",
    "Factorized",
    "FitResult",
    "FittedBlock",
    "Free",
    "Gaussian",
    "JointMeans",
    "Multinomial",
    "NewtonMeans",
    "NewtonWeights",
    "Nonnegative",
    "Plain",
    "Pooled",
    "Prediction",
    "Priors",
    "Probit",
    "Problem",
    "SemiSupervisedProbit",
    "SpikeSlab",
    "State",
    "ascend",
    "fitted_block",
    "initialise",
    "iterate",
    "lower_bound_terms",
    "predict",
    "run",
    "sweep",
]
