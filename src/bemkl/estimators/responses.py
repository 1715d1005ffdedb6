"""From responses of any unit to numbers that the priors suit, and how much of them predictions explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array

from bemkl.arrays import Array, explained, refuse_out_of_range, refuse_unread, standard_moments
from bemkl.distributions import Gamma
from bemkl.estimators.labels import weights_of
from bemkl.estimators.multiclass import Fits
from bemkl.inference import Gaussian
from bemkl.marginal.observed import ObservedResponses

_ANOTHER_UNIT = "Use another unit, or take logarithms."


def read_responses(y: Any) -> Array:
    """Read responses. Shapes: returns (n_samples,) or (n_samples, n_outputs)."""
    refuse_unread("y", y)
    with explained("y", "Pass a number for each sample, or a table with a column for each response."):
        responses: Array = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    refuse_out_of_range("y", responses, _ANOTHER_UNIT)
    return responses


def normalised(responses: Array, *, normalise: bool) -> tuple[Array, Array, Array]:
    """
    Standardise responses.

    Shapes: responses (n_samples, n_outputs); returns normalised (n_samples, n_outputs), offset (n_outputs,), scale
    (n_outputs,).
    """
    refuse_out_of_range("y", responses, _ANOTHER_UNIT)
    if not normalise:
        n_outputs = responses.shape[1]
        return responses, np.zeros(n_outputs), np.ones(n_outputs)
    offset, scale = standard_moments(responses)
    return (responses - offset) / scale, offset, scale


def explained_share(y: Any, found: Array, sample_weight: Any = None) -> float:
    """
    Return the share of the variance that predictions explain, averaged over the responses.

    Shapes: y (n_samples,) or (n_samples, n_outputs), found the same, sample_weight (n_samples,).
    """
    if y is None:
        raise ValueError(f"y: expected responses of shape {found.shape}, got None. Pass those of the samples in X.")
    responses = read_responses(y)
    if responses.reshape(len(responses), -1).shape != found.reshape(len(found), -1).shape:
        raise ValueError(
            f"y: expected responses of shape {found.shape}, as the predictions have, got shape {responses.shape}. Pass "
            "a number for each sample of X and each response of training."
        )
    weights = None if sample_weight is None else weights_of(sample_weight, np.ones(len(found), dtype=bool))
    return float(r2_score(responses.reshape(found.shape), found, sample_weight=weights))


@dataclass(frozen=True, slots=True, eq=False)
class ResponseTargets:
    """Responses as targets."""

    values: Array  # (n_samples, n_outputs): standardised, where that was asked for
    noise: Gamma  # prior of their noise's precisions

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.values)

    def fits(self) -> Fits:
        """Return the fit that the mean-field posterior makes."""
        return Fits([Gaussian(self.values, noise=self.noise)], ["fit"])

    def observed(self) -> ObservedResponses:
        """Return what the marginal posterior fits."""
        return ObservedResponses(self.values)
