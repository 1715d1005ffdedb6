"""The regression likelihood: responses with Gaussian noise of unknown precision."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, outputs_first
from bemkl.distributions import Gamma, Precision
from bemkl.inference.moments import OutputPrediction, Profile
from bemkl.inference.protocols import Rule


@dataclass(frozen=True, slots=True, eq=False)
class GaussianTargets:
    """Observed responses."""

    target: Array  # (n_outputs, n_samples): responses

    @property
    def location(self) -> None:
        """None: responses are observed."""
        return None


class Gaussian:
    r"""
    Responses with Gaussian noise.

    .. math:: y_i \mid \eta_i \sim \mathcal{N}(\eta_i, 1/\varepsilon), \qquad
              \varepsilon \sim \mathcal{G}(\alpha_\varepsilon, \beta_\varepsilon)

    Several columns are several outputs with the same kernel weights, each with noise of its own.

    Parameters
    ----------
    y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        Responses.
    noise : Gamma
        Prior of the noise precision.

    Examples
    --------
    >>> Gaussian([0.3, 1.2, -0.7]).n_outputs
    1
    """

    _target: Array  # (n_outputs, n_samples): responses
    _prior: Gamma  # prior of the noise precision

    def __init__(self, y: npt.ArrayLike, *, noise: Gamma | None = None) -> None:
        self._target = outputs_first("y", y)
        self._prior = Gamma(1.0, 1.0) if noise is None else noise
        if not isinstance(self._prior, Gamma) or np.ndim(self._prior.mean):
            raise ValueError(f"noise: expected one Gamma prior, got {noise!r}. Write Gamma(shape, scale).")

    @property
    def n_samples(self) -> int:
        """Number of training samples."""
        return int(self._target.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self._target)

    @property
    def rehearsal(self) -> None:
        """None: there is nothing easier to start from."""
        return None

    def some(self, samples: slice) -> Gaussian:
        """Return the same link for some of the samples."""
        part = copy(self)
        part._target = self._target[:, samples].copy()  # not a view of all samples
        return part

    def start(self) -> GaussianTargets:
        """Return the responses."""
        return GaussianTargets(self._target)

    def restored(self, location: Array | None) -> GaussianTargets:
        """Return the responses."""
        return self.start()

    def update(self, targets: GaussianTargets, mean: Array) -> GaussianTargets:
        """Return the targets unchanged: the responses are observed. Shapes: mean (n_outputs, n_samples)."""
        return targets

    def profile(self, targets: GaussianTargets, precision: Array, mean: Array) -> Profile:
        """
        Derivatives of the log density of the responses.

        Shapes: precision (n_outputs,), mean (n_outputs, n_samples).
        """
        own = precision[:, None]
        return Profile(own * (targets.target - mean), np.broadcast_to(own, mean.shape))

    def fit(self, targets: GaussianTargets, mean: Array) -> Array:
        """
        Sum squared distances of the responses from the means of the predictor.

        Shapes: mean (n_outputs, n_samples); returns (n_outputs,).
        """
        squares: Array = np.square(targets.target - mean).sum(axis=1)
        return squares

    def noise(self, fit: Array, variance: Array) -> Gamma:
        r"""Find :math:`q(\varepsilon)` (derivation, section 3). Shapes: fit (n_outputs,), variance (n_outputs,)."""
        return self._prior.posterior(self.n_samples, fit + variance)

    def bound_terms(self, noise: Precision, fit: Array, variance: Array) -> dict[str, float]:
        """
        Return the expected log density of the responses and the divergence of the noise (derivation, section 4).

        Shapes: fit (n_outputs,), variance (n_outputs,).
        """
        log_density = self.n_samples * (noise.log_mean - np.log(2.0 * np.pi)) - noise.mean * (fit + variance)
        return {"output": 0.5 * float(log_density.sum()), "noise_precision": -noise.divergence(self._prior)}

    def predict(self, noise: Precision, mean: Array, variance: Array, rule: Rule) -> OutputPrediction:
        r"""
        Add the noise to the moments of the predictor.

        The exact noise variance under q is :math:`E[1/\varepsilon]`; the paper's rule takes :math:`1/E[\varepsilon]`.

        Shapes: mean (n_outputs, n_samples), variance (n_outputs, n_samples).
        """
        added = noise.inverse_mean if rule == "exact" else 1.0 / noise.mean
        return OutputPrediction(mean, variance + added[:, None], None)


PARTS = {Gaussian: {"_target": "L n"}}
