"""Saving and loading of fitted models: skops files with versions and checksums, which run no code when loaded."""

from bemkl.persistence.loading import load_model
from bemkl.persistence.saving import save_model

__all__ = ["load_model", "save_model"]
