"""Tables, views, matrices and targets on disk, and the samples that they become."""

from bemkl.files.cells import guarded
from bemkl.files.mixed import Mixed, MixedKernels
from bemkl.files.problems import InputError, listed
from bemkl.files.reading import delimiter_of, refuse_missing
from bemkl.files.recipe import Recipe
from bemkl.files.repairs import KernelRepair
from bemkl.files.samples import new_samples, training_samples
from bemkl.files.sources import Gathered, Sources
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
