"""From files to samples that an estimator takes, for training and for predictions."""

from __future__ import annotations

from dataclasses import replace

from bemkl.files.features import new_features, training_features
from bemkl.files.kernels import new_kernels, training_kernels
from bemkl.files.problems import InputError, listed
from bemkl.files.recipe import Recipe
from bemkl.files.sources import OPTIONS, TARGET, Gathered, Sources
from bemkl.files.targets import Values, read_target


def training_samples(sources: Sources, task: str | None = None) -> Gathered:
    """
    Read samples and their target.

    Parameters
    ----------
    sources : Sources
        The files.
    task : {"classification", "regression"}, optional
        What the target is, if the user said so; else it is inferred.

    Returns
    -------
    Gathered
        Samples with a known target.
    """
    kind = sources.kind
    if sources.target is None:
        raise InputError("There is nothing to learn without a target.", "Pass --target file.csv:column.")
    target = read_target(sources.target, sources.id_column, sources.delimiter(TARGET))
    if not target.known().any():
        raise InputError(f"{target.table.path}: {listed(target.columns)} is empty in all rows.", "Check the column.")
    gathered = (training_kernels if kind == "kernels" else training_features)(sources, target)
    rows = gathered.matched.rows[TARGET]
    if not len(rows):
        raise InputError("No sample is left that has a target and all views.", "Check ids and empty cells.")
    found, reason = target.task(rows) if task is None else (task, "")
    recipe = replace(gathered.recipe, targets=target.columns, ids=gathered.names, prints=gathered.prints)
    recipe = replace(recipe, has_ids=gathered.matched.has_ids, id_column=sources.id_column)
    return replace(gathered, recipe=recipe, y=target.values(rows, found), task=found, reason=reason)


def new_samples(sources: Sources, recipe: Recipe, task: str, classes: Values | None = None) -> Gathered:
    """
    Read samples for a model that was fitted on files.

    Parameters
    ----------
    sources : Sources
        The files, of the same kind as those of training. With a target, only samples where it is known are taken.
    recipe : Recipe
        How the files of training became samples.
    task : {"classification", "regression"}
        What the model predicts.
    classes : ndarray of shape (n_classes,), optional
        The classes of the model, for one label a sample.

    Returns
    -------
    Gathered
        The samples.
    """
    if sources.kind != recipe.kind:
        names = listed(recipe.kernels or [name for name in recipe.columns if name])
        raise InputError(
            f"The model was fitted with {OPTIONS[recipe.kind]}, got {OPTIONS[sources.kind]}.",
            f"Pass {OPTIONS[recipe.kind]} for each of {names}." if names else "Pass --data with the same columns.",
        )
    sources = replace(sources, id_column=sources.id_column or recipe.id_column)
    target = None
    if sources.target is not None:
        target = read_target(sources.target, sources.id_column, sources.delimiter(TARGET)).like(recipe.targets)
    gathered = (new_kernels if recipe.kind == "kernels" else new_features)(sources, recipe, target)
    if not gathered.names:
        raise InputError("No sample is left.", "Check ids, empty cells and the target.")
    if target is None:
        return replace(gathered, task=task)
    return replace(gathered, y=target.values(gathered.matched.rows[TARGET], task, classes), task=task)
