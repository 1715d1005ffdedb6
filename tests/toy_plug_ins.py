"""Plug-ins of somebody else's: a bank, kernel weights and a likelihood that the package does not know."""

from dataclasses import dataclass, fields

import numpy as np

from bemkl.arrays import Array
from bemkl.estimators.multiclass import Fits
from bemkl.inference import Free, Probit
from bemkl.inference.weights.free import FreeWeights
from bemkl.kernels import KernelBank, KernelSpec


@dataclass(frozen=True, slots=True, eq=False)
class ToyWeights(FreeWeights):
    """The paper's weights, and a note about each kernel."""

    notes: Array  # (n_kernels,)


class ToyFamily(Free):
    """The paper's steps."""

    def start(self, n_kernels, n_outputs, priors, rng):
        """Return the paper's weights with notes."""
        free = super().start(n_kernels, n_outputs, priors, rng)
        return ToyWeights(**{field.name: getattr(free, field.name) for field in fields(free)}, notes=np.ones(n_kernels))


class ToyLikelihood:
    """A probit likelihood that is no class of the package, and says by annotations what it holds."""

    inner: Probit

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        if name == "inner":  # not there yet while a model is built
            raise AttributeError(name)
        return getattr(self.inner, name)

    def some(self, samples):
        """Return the same link for some of the samples."""
        return ToyLikelihood(self.inner.some(samples))

    @property
    def rehearsal(self):
        """None: there is nothing easier to start from."""
        return None


def bank(X):
    """Return one linear kernel, whatever the samples."""
    return KernelBank([KernelSpec("linear")])


def family(*, bold):
    """Return the family, whatever the acceleration."""
    return ToyFamily()


def way(labels):
    """Fit one likelihood for all classes."""
    return Fits([ToyLikelihood(Probit(labels.signs, margin=labels.margin))], ["fit"])


PARTS = {ToyWeights: {"notes": "P >= 0"}, ToyLikelihood: {}}
