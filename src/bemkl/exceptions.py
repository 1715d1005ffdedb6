"""Warnings of a fit, and the error of a file that is no model."""

from __future__ import annotations

# The engine warns with scikit-learn's own class, so that the filters its users already have apply.
from sklearn.exceptions import ConvergenceWarning

__all__ = ["BoundDecreasedWarning", "ConvergenceWarning", "ModelFileError"]


class BoundDecreasedWarning(RuntimeWarning):
    """The exact lower bound fell by more than rounding: a plug-in's update is not an ascent step."""


class ModelFileError(ValueError):
    """A file is not a model that can be loaded: truncated, altered, foreign, or not to be trusted."""
