"""Models from files, and the samples that they are asked about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bemkl.commands.streams import say

if TYPE_CHECKING:
    from bemkl.files import Gathered, Sources

model_argument = click.argument("model_path", metavar="MODEL.skops", type=click.Path(path_type=Path))
"""The argument that names a model."""


def open_model(path: Path) -> Any:
    """Load a model."""
    from bemkl.files import InputError, refuse_missing
    from bemkl.persistence import load_model

    refuse_missing(path, "Fit a model first: bemkl fit ... -o model.skops.")
    model = load_model(path)
    if not hasattr(model, "kernel_names_") or not hasattr(model, "contributions"):
        raise InputError(f"{path}: holds a {type(model).__name__}.", "Expected a classifier or regressor of bemkl.")
    return model


def read_for(model: Any, sources: Sources) -> Gathered:
    """Read samples for a model, and say what did not match."""
    from sklearn.base import is_classifier

    from bemkl.files import InputError, Recipe, new_samples

    recipe = getattr(model, "files_", None)
    if not isinstance(recipe, Recipe):
        raise InputError(
            "The model was not fitted by `bemkl fit`: it does not know which columns of which files it takes.",
            "Load it in Python with bemkl.load_model, and call its predict.",
        )
    classes = model.classes_ if is_classifier(model) and len(recipe.targets) == 1 else None
    gathered = new_samples(sources, recipe, "classification" if is_classifier(model) else "regression", classes)
    say(*gathered.matched.sentences())
    return gathered
