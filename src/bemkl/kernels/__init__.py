"""Kernel functions, their scaling, and the stacks of kernel matrices that the inference works on."""

from bemkl.kernels.bank import paper_kernels
from bemkl.kernels.functions import gaussian, polynomial
from bemkl.kernels.scaling import spherical
from bemkl.kernels.stack import DenseStack

__all__ = ["DenseStack", "gaussian", "paper_kernels", "polynomial", "spherical"]
