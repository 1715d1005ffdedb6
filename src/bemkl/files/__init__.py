"""Tables, views, matrices and targets on disk, and the samples that they become."""

from bemkl.files.problems import InputError, listed
from bemkl.files.repairs import KernelRepair, Mixed, MixedKernels
from bemkl.files.samples import new_samples, training_samples
from bemkl.files.sources import Gathered, Recipe, Sources
from bemkl.files.tables import delimiter_of, guarded, refuse_missing
from bemkl.files.writing import refuse_output, write_whole

__all__ = [
    "Gathered",
    "InputError",
    "KernelRepair",
    "Mixed",
    "MixedKernels",
    "Recipe",
    "Sources",
    "delimiter_of",
    "guarded",
    "listed",
    "new_samples",
    "refuse_missing",
    "refuse_output",
    "training_samples",
    "write_whole",
]
