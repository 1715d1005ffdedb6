"""Warnings that a fit can raise."""

from __future__ import annotations

# The engine warns with scikit-learn's own class, so that the filters its users already have apply.
from sklearn.exceptions import ConvergenceWarning

__all__ = ["BoundDecreasedWarning", "ConvergenceWarning"]


class BoundDecreasedWarning(RuntimeWarning):
    """The exact lower bound fell by more than rounding: a plug-in's update is not an ascent step."""
