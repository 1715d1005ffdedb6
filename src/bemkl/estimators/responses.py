"""From responses of any unit to numbers that the priors suit."""

from __future__ import annotations

import numpy as np

from bemkl.arrays import Array, refuse_out_of_range, standard_moments


def normalised(responses: Array, *, normalise: bool) -> tuple[Array, Array, Array]:
    """
    Standardise responses.

    Shapes: responses (n_samples, n_outputs); returns normalised (n_samples, n_outputs), offset (n_outputs,), scale
    (n_outputs,).
    """
    refuse_out_of_range("y", responses, "Use another unit, or take logarithms.")
    if not normalise:
        n_outputs = responses.shape[1]
        return responses, np.zeros(n_outputs), np.ones(n_outputs)
    offset, scale = standard_moments(responses)
    return (responses - offset) / scale, offset, scale
