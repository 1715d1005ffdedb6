"""Kernel functions, their scaling, and the stacks of kernel matrices that the inference works on."""

from bemkl.kernels.bank import KernelBank
from bemkl.kernels.counts import additive_chi2, chi2, hamming, intersection, tanimoto
from bemkl.kernels.distances import from_distances, mean_distance
from bemkl.kernels.functions import cosine, gaussian, laplacian, linear, matern, periodic, polynomial
from bemkl.kernels.kernel_stack import KernelStack, stack_kernels
from bemkl.kernels.landmarks import choose_landmarks
from bemkl.kernels.presets import default_bank, named_bank, paper_bank
from bemkl.kernels.scaling import spherical
from bemkl.kernels.sequences import spectrum
from bemkl.kernels.specs import KernelSpec
from bemkl.kernels.stack import DenseStack, FactoredStack
from bemkl.registry import BANKS

__all__ = [
    "BANKS",
    "DenseStack",
    "FactoredStack",
    "KernelBank",
    "KernelSpec",
    "KernelStack",
    "additive_chi2",
    "chi2",
    "choose_landmarks",
    "cosine",
    "default_bank",
    "from_distances",
    "gaussian",
    "hamming",
    "intersection",
    "laplacian",
    "linear",
    "matern",
    "mean_distance",
    "named_bank",
    "paper_bank",
    "periodic",
    "polynomial",
    "spectrum",
    "spherical",
    "stack_kernels",
    "tanimoto",
]
