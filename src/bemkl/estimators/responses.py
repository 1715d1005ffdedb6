"""From responses of any unit to numbers that the priors suit."""

from __future__ import annotations

import numpy as np

from bemkl.arrays import Array, refuse_out_of_range, standard_moments


def normalised(responses: Array, *, normalise: bool) -> tuple[Array, Array, Array]:
    """
    Standardise responses.

    Parameters
    ----------
    responses : ndarray of shape (n_samples, n_outputs)
        Responses, finite.
    normalise : bool
        Whether they are standardised; only their range is checked otherwise.

    Returns
    -------
    normalised : ndarray of shape (n_samples, n_outputs)
        Offset and scale taken off the responses.
    offset : ndarray of shape (n_outputs,)
        The means, or 0.
    scale : ndarray of shape (n_outputs,)
        The deviations, or 1; also 1 for a constant response.

    Raises
    ------
    ValueError
        If a response is out of range.

    Examples
    --------
    >>> values, offset, scale = normalised(np.array([[1.0], [3.0]]), normalise=True)
    >>> values.ravel(), offset, scale
    (array([-1.,  1.]), array([2.]), array([1.]))
    """
    refuse_out_of_range("y", responses, "Use another unit, or take logarithms.")
    if not normalise:
        n_outputs = responses.shape[1]
        return responses, np.zeros(n_outputs), np.ones(n_outputs)
    offset, scale = standard_moments(responses)
    return (responses - offset) / scale, offset, scale
