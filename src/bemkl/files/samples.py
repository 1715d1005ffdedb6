"""From files to samples that an estimator takes, for training and for predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bemkl.files.features import new_features, training_features
from bemkl.files.kernels import new_kernels, training_kernels
from bemkl.files.mixed import Mixed
from bemkl.files.problems import InputError, listed
from bemkl.files.recipe import Recipe
from bemkl.files.sources import OPTIONS, TARGET, Gathered, Sources
from bemkl.files.targets import Values, read_target


def training_samples(sources: Sources, task: str | None = None) -> Gathered:
    """Read samples and their target."""
    kind = sources.kind
    if sources.target is None:
        raise InputError("There is nothing to learn without a target.", "Pass --target file.csv:column.")
    target = read_target(sources.target, sources.id_column, sources.delimiter(TARGET))
    if not target.known().any():
        raise InputError(f"{target.table.path}: {listed(target.columns)} is empty in all rows.", "Check the column.")
    if kind == "mixed":
        gathered = _together(training_features(sources, target), training_kernels(sources, target), training=True)
    else:
        gathered = (training_kernels if kind == "kernels" else training_features)(sources, target)
    rows = gathered.matched.rows[TARGET]
    if not len(rows):
        raise InputError(
            "No sample is left that has a target and all views.",
            f"Check ids and empty cells of {listed(list(gathered.matched.rows))}.",
        )
    found, reason = target.task(rows) if task is None else (task, "")
    recipe = replace(gathered.recipe, targets=target.columns, ids=gathered.names, prints=gathered.prints)
    recipe = replace(recipe, has_ids=gathered.matched.has_ids, id_column=sources.id_column)
    return replace(gathered, recipe=recipe, y=target.values(rows, found), task=found, reason=reason)


def new_samples(sources: Sources, recipe: Recipe, task: str, classes: Values | None = None) -> Gathered:
    """Read samples for a model that was fitted on files. Shapes: classes (n_classes,)."""
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
    if recipe.kind == "mixed":
        gathered = _together(new_features(sources, recipe, target), new_kernels(sources, recipe, target))
    else:
        gathered = (new_kernels if recipe.kind == "kernels" else new_features)(sources, recipe, target)
    if not gathered.names:
        raise InputError(
            "No sample is left.", f"Check ids, empty cells and the target of {listed(list(gathered.matched.rows))}."
        )
    if recipe.prepare is not None:
        gathered = replace(gathered, X=recipe.prepare.transform(gathered.X))
    if target is None:
        return replace(gathered, task=task)
    return replace(gathered, y=target.values(gathered.matched.rows[TARGET], task, classes), task=task)


def _together(tables: Gathered, matrices: Gathered, *, training: bool = False) -> Gathered:
    """Keep the samples that are in tables and matrices; in training, matrices lose columns with their rows."""
    if tables.matched.has_ids != matrices.matched.has_ids:
        if len(tables.names) != len(matrices.names):
            raise InputError(
                f"Tables have {len(tables.names)} samples and matrices {len(matrices.names)}, and not all have ids: "
                f"{listed(list(matrices.matched.rows if tables.matched.has_ids else tables.matched.rows))} without.",
                "Give matrices ids (CSV with a header), or the same samples in the same order.",
            )
        named = tables if tables.matched.has_ids else matrices
        tables, matrices = (
            replace(part, matched=replace(part.matched, names=named.names, has_ids=True)) for part in (tables, matrices)
        )
    inside = set(matrices.names)
    tables = tables.take(np.array([name in inside for name in tables.names], dtype=bool), "without matrices")
    places = {name: place for place, name in enumerate(matrices.names)}
    rows = np.array([places[name] for name in tables.names], dtype=np.intp)
    gone = [name for name in matrices.names if name not in set(tables.names)]
    columns, recipe = np.arange(matrices.X.shape[1]), tables.recipe
    if training:
        places_kept = {name: (width, every[rows]) for name, (width, every) in matrices.recipe.places.items()}
        columns, recipe = rows, replace(recipe, kernels=matrices.recipe.kernels, places=places_kept)
    left_out = matrices.matched.left_out | tables.matched.left_out | ({"without tables": gone} if gone else {})
    matched = replace(
        tables.matched, unmatched=tables.matched.unmatched | matrices.matched.unmatched, left_out=left_out
    )
    return Gathered(Mixed(tables.X, matrices.X[rows][:, columns]), matched, recipe, tables.prints)
