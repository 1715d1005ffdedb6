"""What is fitted, of one task: samples with their kernels and labels or responses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bemkl._numerics.caching import lazy_property
from bemkl.distributions import Precision
from bemkl.inference.factors.sample_weights import Kernels
from bemkl.inference.protocols import AnyLikelihood, Likelihood, Stack, require_plug_in
from bemkl.inference.rows import InMemory, Part, Rows, observe

ASYMMETRY_TOLERANCE = 1e-6
"""Largest relative difference across the diagonal of a square training kernel."""


@dataclass(frozen=True, eq=False)
class Block:
    """
    Samples with their kernels and labels or responses; a task of multitask learning is a block.

    Parameters
    ----------
    stack : Stack
        Training kernels.
    likelihood : Likelihood
        Labels or responses of the same samples, one or more outputs.
    landmarks : bool
        Set it where the columns of the kernels are chosen basis points and happen to be as many as the samples.
        Otherwise square kernels have to be symmetric, because their columns are the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl.inference import Gaussian
    >>> from bemkl.kernels import DenseStack
    >>> block = Block(DenseStack(np.eye(3)[None]), Gaussian([0.5, 1.0, -1.0]))
    """

    stack: Stack
    likelihood: AnyLikelihood
    landmarks: bool = False

    def __post_init__(self) -> None:
        """Refuse kernels and labels or responses that do not fit each other."""
        require_plug_in("stack", self.stack, Stack, "DenseStack(kernels)")
        require_plug_in("likelihood", self.likelihood, Likelihood, "Probit(y) or Gaussian(y)")
        _, n_samples, n_basis = self.stack.shape
        if n_samples != self.likelihood.n_samples:
            raise ValueError(
                f"likelihood: has {self.likelihood.n_samples} samples, but the stack has kernels of {n_samples}. "
                "Pass the labels or responses of the rows of the kernels, in the same order."
            )
        if n_samples < 2:
            raise ValueError("stack: expected at least 2 samples, got 1. A model cannot be learned from one sample.")
        if n_samples == n_basis and not self.landmarks:
            asymmetry = self.stack.asymmetries().max()
            if asymmetry > ASYMMETRY_TOLERANCE:
                raise ValueError(
                    f"stack: square training kernels have to be symmetric, got a relative asymmetry of "
                    f"{asymmetry:.2g}. Average each kernel with its transpose if that is noise, or pass landmarks=True "
                    "if the columns are chosen basis points rather than the samples."
                )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of kernels, samples and basis points."""
        return self.stack.shape

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.likelihood.n_outputs

    def rows(self) -> Rows:
        """
        Return the samples, of which nothing is known yet.

        Returns
        -------
        Rows
            All samples in one part.
        """
        return InMemory((Part.of(self.stack, self.likelihood),))

    @lazy_property
    def kernels(self) -> Kernels:
        """What the sample weights need of all kernels together."""
        return Kernels(self.rows(), self.shape[0])

    def first_noise(self) -> Precision:
        """
        Return the factor of the noise precisions that goes with a predictor of zero.

        Returns
        -------
        Precision
            The factor.
        """
        nothing = np.zeros(self.n_outputs)
        _, targets = self.rows().run(observe, np.zeros(self.shape[0]), nothing)
        return self.likelihood.noise(targets.fit, nothing)
