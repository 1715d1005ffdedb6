"""From files to samples that an estimator takes, for training and for predictions."""

from __future__ import annotations

from dataclasses import replace

from bemkl.files.features import new_features, training_features
from bemkl.files.kernels import new_kernels, training_kernels
from bemkl.files.problems import InputError, listed
from bemkl.files.recipe import Recipe
from bemkl.files.sources import OPTIONS, TARGET, Gathered, Sources
from bemkl.files.targets import FileTarget, read_target


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
    target = read_target(sources.target, sources.id_column, sources.delimiter)
    X, matched, recipe = (training_kernels if kind == "kernels" else training_features)(sources, target)
    gathered = _with_target(Gathered(X, matched, recipe), target, task)
    known = replace(recipe, targets=target.columns, ids=gathered.names, has_ids=matched.has_ids)
    return replace(gathered, recipe=replace(known, id_column=sources.id_column))


def new_samples(sources: Sources, recipe: Recipe, task: str) -> Gathered:
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

    Returns
    -------
    Gathered
        The samples.
    """
    if sources.kind != recipe.kind:
        names = listed(recipe.kernels or [name for name in recipe.columns if name])
        raise InputError(
            f"The model was fitted with {OPTIONS[recipe.kind]}, got {OPTIONS[sources.kind]}.",
            f"Pass {OPTIONS[recipe.kind]}"
            + (f" for each of {names}." if names else " with a table of the same columns."),
        )
    sources = replace(sources, id_column=sources.id_column or recipe.id_column)
    target = read_target(sources.target, sources.id_column, sources.delimiter) if sources.target else None
    X, matched = (new_kernels if recipe.kind == "kernels" else new_features)(sources, recipe, target)
    gathered = Gathered(X, matched, recipe, task=task)
    return gathered if target is None else _with_target(gathered, target, task)


def _with_target(gathered: Gathered, target: FileTarget, task: str | None) -> Gathered:
    """Keep the samples whose target is known, and add it."""
    known = target.known()[gathered.matched.rows[TARGET]]
    if not known.any():
        raise InputError(
            f"{target.table.path}: {listed(target.columns)} is empty for all samples.",
            "Check the column of the target.",
        )
    kept = gathered.take(known)
    rows = kept.matched.rows[TARGET]
    found, reason = target.task(rows) if task is None else (task, "as you said")
    return replace(kept, y=target.values(rows, found), task=found, reason=reason)
