"""How sure a share of samples is."""

from __future__ import annotations

from statistics import NormalDist

_NORMAL = NormalDist().inv_cdf(0.975)


def wilson(share: float, count: int) -> tuple[float, float]:
    """
    Return Wilson's 95 % interval of a share.

    It has a width also where the share is 0 or 1, where resampling has none.
    """
    squared = _NORMAL**2
    middle = (share + squared / (2.0 * count)) / (1.0 + squared / count)
    spread = share * (1.0 - share) / count + squared / (4.0 * count**2)
    half = _NORMAL / (1.0 + squared / count) * spread**0.5
    return max(0.0, middle - half), min(1.0, middle + half)
