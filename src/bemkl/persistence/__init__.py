"""Saving and loading of fitted models: skops files with versions and checksums, which run no code when loaded."""

from bemkl.persistence.model_file import load_model, save_model

__all__ = ["load_model", "save_model"]
