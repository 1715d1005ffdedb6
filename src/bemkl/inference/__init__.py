"""
The inference engine: coordinate ascent over blocks that share kernel weights.

A `Problem` is a list of `Block` objects (kernels and a likelihood), priors and strategies. `run` fits it, `predict`
applies it, `lower_bound_terms` takes the bound apart.
"""

from bemkl.distributions import DENSE, SPARSE, Priors
from bemkl.inference.block import Block, BlockPosterior
from bemkl.inference.bound import lower_bound_terms
from bemkl.inference.engine import FitResult, ascend, initialise, iterate, run, sweep
from bemkl.inference.fitted import FittedBlock, Prediction
from bemkl.inference.likelihoods import Gaussian, Multinomial, Probit, SemiSupervisedProbit
from bemkl.inference.newton.joint_means import JointMeans, NewtonMeans
from bemkl.inference.plain import Plain
from bemkl.inference.predict import fitted_block, fitted_blocks, integrated_weights, predict
from bemkl.inference.problem import Problem
from bemkl.inference.state import Posterior, State
from bemkl.inference.weights.factorized import Factorized
from bemkl.inference.weights.free import Free
from bemkl.inference.weights.newton import NewtonWeights
from bemkl.inference.weights.nonnegative import Nonnegative
from bemkl.inference.weights.pooled import Pooled
from bemkl.inference.weights.spike_slab import SpikeSlab

__all__ = [
    "DENSE",
    "SPARSE",
    "Block",
    "BlockPosterior",
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
    "Posterior",
    "Prediction",
    "Priors",
    "Probit",
    "Problem",
    "SemiSupervisedProbit",
    "SpikeSlab",
    "State",
    "ascend",
    "fitted_block",
    "fitted_blocks",
    "initialise",
    "integrated_weights",
    "iterate",
    "lower_bound_terms",
    "predict",
    "run",
    "sweep",
]
