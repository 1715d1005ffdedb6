"""The regression likelihood: responses with Gaussian noise of unknown precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.distributions import Gamma, Precision
from bemkl.inference.likelihoods.targets import outputs_first, part_of
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
        """
        Return the same link for some of the samples.

        Parameters
        ----------
        samples : slice
            Which samples.

        Returns
        -------
        Gaussian
            The link.
        """
        return part_of(self, samples, "_target")

    def start(self) -> GaussianTargets:
        """
        Return the responses.

        Returns
        -------
        GaussianTargets
            The responses.
        """
        return GaussianTargets(self._target)

    def restored(self, location: Array | None) -> GaussianTargets:
        """
        Return the responses.

        Parameters
        ----------
        location : None
            Not needed here.

        Returns
        -------
        GaussianTargets
            The responses.
        """
        return self.start()

    def update(self, targets: GaussianTargets, mean: Array) -> GaussianTargets:
        """
        Return the targets unchanged: the responses are observed.

        Parameters
        ----------
        targets : GaussianTargets
            The responses.
        mean : ndarray of shape (n_outputs, n_samples)
            Means of the predictor.

        Returns
        -------
        GaussianTargets
            The same responses.
        """
        return targets

    def profile(self, targets: GaussianTargets, precision: Array, mean: Array) -> Profile:
        """
        Derivatives of the log density of the responses.

        Parameters
        ----------
        targets : GaussianTargets
            The responses.
        precision : ndarray of shape (n_outputs,)
            Expected noise precisions.
        mean : ndarray of shape (n_outputs, n_samples)
            Means of the predictor.

        Returns
        -------
        Profile
            Residuals times precision, and the precision.
        """
        own = precision[:, None]
        return Profile(own * (targets.target - mean), np.broadcast_to(own, mean.shape))

    def fit(self, targets: GaussianTargets, mean: Array) -> Array:
        """
        Sum squared distances of the responses from the means of the predictor.

        Parameters
        ----------
        targets : GaussianTargets
            The responses.
        mean : ndarray of shape (n_outputs, n_samples)
            Means of the predictor.

        Returns
        -------
        ndarray of shape (n_outputs,)
            The sums.
        """
        squares: Array = np.square(targets.target - mean).sum(axis=1)
        return squares

    def noise(self, fit: Array, variance: Array) -> Gamma:
        r"""
        Find :math:`q(\varepsilon)` (derivation, section 3).

        Parameters
        ----------
        fit : ndarray of shape (n_outputs,)
            Sums of `fit` over all samples.
        variance : ndarray of shape (n_outputs,)
            Variances of the predictor, summed over all samples.

        Returns
        -------
        Gamma
            The factor of the noise precisions.
        """
        return self._prior.posterior(self.n_samples, fit + variance)

    def bound_terms(self, noise: Precision, fit: Array, variance: Array) -> dict[str, float]:
        """
        Return the expected log density of the responses and the divergence of the noise (derivation, section 4).

        Parameters
        ----------
        noise : Precision
            Factor of the noise precisions.
        fit : ndarray of shape (n_outputs,)
            Sums of `fit` over all samples.
        variance : ndarray of shape (n_outputs,)
            Variances of the predictor, summed over all samples.

        Returns
        -------
        dict of str to float
            The terms in nats.
        """
        log_density = self.n_samples * (noise.log_mean - np.log(2.0 * np.pi)) - noise.mean * (fit + variance)
        return {"output": 0.5 * float(log_density.sum()), "noise_precision": -noise.divergence(self._prior)}

    def predict(self, noise: Precision, mean: Array, variance: Array, rule: Rule) -> OutputPrediction:
        r"""
        Add the noise to the moments of the predictor.

        The exact noise variance under q is :math:`E[1/\varepsilon]`; the paper's rule takes :math:`1/E[\varepsilon]`.

        Parameters
        ----------
        noise : Precision
            Factor of the noise precisions.
        mean : ndarray of shape (n_outputs, n_samples)
            Means of the predictor.
        variance : ndarray of shape (n_outputs, n_samples)
            Variances of the predictor.
        rule : {"exact", "paper"}
            Which rule.

        Returns
        -------
        OutputPrediction
            Mean and variance of the response.
        """
        added = noise.inverse_mean if rule == "exact" else 1.0 / noise.mean
        return OutputPrediction(mean, variance + added[:, None], None)
