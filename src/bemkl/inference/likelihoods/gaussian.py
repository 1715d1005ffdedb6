"""The regression likelihood: responses with Gaussian noise of unknown precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.distributions import Gamma
from bemkl.inference.likelihoods.targets import outputs_first
from bemkl.inference.moments import OutputPrediction, Profile
from bemkl.inference.protocols import Rule
from bemkl.inference.summaries import Predictor


@dataclass(frozen=True, slots=True, eq=False)
class GaussianOutput:
    """Observed responses with a gamma factor of their noise precision."""

    target: Array  # (n_outputs, n_samples): responses
    noise_precision: Gamma  # factor of the noise precision, one entry an output

    @property
    def precision(self) -> Array:
        """Expected noise precisions."""
        return self.noise_precision.mean


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
        self.noise = Gamma(1.0, 1.0) if noise is None else noise
        if not isinstance(self.noise, Gamma) or np.ndim(self.noise.mean):
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

    def _square(self, predictor: Predictor) -> Array:
        """Expected squared distance of the responses from the predictor, summed over samples."""
        square: Array = np.square(self._target - predictor.mean).sum(axis=1) + predictor.variance
        return square

    def start(self) -> GaussianOutput:
        """
        Return the responses with the noise that goes with a predictor of zero.

        Returns
        -------
        GaussianOutput
            The factor.
        """
        square = np.square(self._target).sum(axis=1)
        return GaussianOutput(self._target, self.noise.posterior(self.n_samples, square))

    def update_precision(self, output: GaussianOutput, predictor: Predictor) -> GaussianOutput:
        r"""
        Update :math:`q(\varepsilon)` (derivation, section 3).

        Parameters
        ----------
        output : GaussianOutput
            Current factor.
        predictor : Predictor
            Moments of the predictor.

        Returns
        -------
        GaussianOutput
            The factor with new noise precisions.
        """
        return GaussianOutput(self._target, self.noise.posterior(self.n_samples, self._square(predictor)))

    def update_target(self, output: GaussianOutput, predictor: Predictor) -> GaussianOutput:
        """
        Return the output unchanged: the responses are observed.

        Parameters
        ----------
        output : GaussianOutput
            Current factor.
        predictor : Predictor
            Moments of the predictor.

        Returns
        -------
        GaussianOutput
            The same factor.
        """
        return output

    def profile(self, output: GaussianOutput, mean: Array) -> Profile:
        """
        Derivatives of the log density of the responses.

        Parameters
        ----------
        output : GaussianOutput
            Current factor.
        mean : ndarray of shape (n_outputs, n_samples)
            Means of the predictor.

        Returns
        -------
        Profile
            Residuals times precision, and the precision.
        """
        precision = output.precision[:, None]
        return Profile(precision * (self._target - mean), np.broadcast_to(precision, mean.shape))

    def bound_terms(self, output: GaussianOutput, predictor: Predictor) -> dict[str, float]:
        """
        Return the expected log density of the responses and the divergence of the noise (derivation, section 4).

        Parameters
        ----------
        output : GaussianOutput
            Current factor.
        predictor : Predictor
            Moments of the predictor.

        Returns
        -------
        dict of str to float
            The terms in nats.
        """
        log_density = self.n_samples * (
            output.noise_precision.log_mean - np.log(2.0 * np.pi)
        ) - output.precision * self._square(predictor)
        return {
            "output": 0.5 * float(log_density.sum()),
            "noise_precision": -output.noise_precision.divergence(self.noise),
        }

    def predict(self, output: GaussianOutput, mean: Array, variance: Array, rule: Rule) -> OutputPrediction:
        r"""
        Add the noise to the moments of the predictor.

        The exact noise variance under q is :math:`E[1/\varepsilon]`; the paper's rule takes :math:`1/E[\varepsilon]`.

        Parameters
        ----------
        output : GaussianOutput
            Fitted factor.
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
        noise = output.noise_precision.inverse_mean if rule == "exact" else 1.0 / output.precision
        return OutputPrediction(mean, variance + noise[:, None], None)
