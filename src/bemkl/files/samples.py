"""From files to samples that an estimator takes, for training and for predictions; those of tables here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bemkl.arrays import Array
from bemkl.files.kernels import new_kernels, training_kernels
from bemkl.files.matching import Matched, Part, match, rows_of_table
from bemkl.files.problems import InputError, listed
from bemkl.files.repairs import Mixed
from bemkl.files.sources import OPTIONS, TARGET, Gathered, Recipe, Sources, fingerprints
from bemkl.files.tables import FileTable, read_table
from bemkl.files.targets import FileTarget, Values, read_target


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


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """A table of features."""

    name: str  # name of the view; nothing for the only table
    table: FileTable  # the table
    columns: list[str]  # the columns that are features
    id_column: str | None  # the column with ids of rows

    @property
    def label(self) -> str:
        """What to call it in messages."""
        return f"{self.name} ({self.table.path})" if self.name else str(self.table.path)

    @property
    def part(self) -> Part:
        """Its rows."""
        return rows_of_table(self.label, self.table, self.id_column)


def training_features(sources: Sources, target: FileTarget) -> Gathered:
    """Read the features of training samples."""
    found = _read(sources, target, target.columns)
    columns = {features.name: features.columns for features in found}
    recipe = Recipe(sources.kind, columns, {features.name: features.table.named for features in found})
    return _gathered(sources, found, recipe, target)


def new_features(sources: Sources, recipe: Recipe, target: FileTarget | None) -> Gathered:
    """Read the features of samples for a fitted model."""
    unknown = [name for name in sources.views if name not in recipe.columns]
    missing = [name for name in recipe.columns if name and name not in sources.views]
    if unknown or (missing and not sources.keep_incomplete):
        raise InputError(
            f"Expected the views {listed(list(recipe.columns))}, got {listed(list(sources.views))}.",
            "Name views as in training. With --keep-incomplete, a view that is not given counts as missing.",
        )
    found = [
        replace(features, columns=_columns_of_training(features, recipe))
        for features in _read(sources, target, recipe.targets)
    ]
    return _gathered(sources, found, recipe, target)


def _read(sources: Sources, target: FileTarget | None, names: list[str]) -> list[Features]:
    """Read the tables, and find the columns of each that are features."""
    paths: dict[str, Path] = {"": sources.data} if sources.data is not None else dict(sources.views)
    found = []
    for name, path in paths.items():
        table = read_table(path, sources.delimiter(name))
        # A column that is called like the target is the answer, not a feature.
        hidden = [*names, *(target.columns if target is not None else [])]
        id_column = table.id_column(sources.id_column, exclude=hidden)
        columns = [column for column in table.columns if column != id_column and column not in hidden]
        if not columns:
            raise InputError(f"{path}: there are no columns but ids and target.", "Check the file and --id.")
        found.append(Features(name, table, columns, id_column))
    return found


def _gathered(sources: Sources, found: list[Features], recipe: Recipe, target: FileTarget | None) -> Gathered:
    """Match rows, put them into the order of the samples, and leave out samples that lack something."""
    parts = [] if target is None else [rows_of_table(TARGET, target.table, target.id_column)]
    labels = [features.label for features in found]
    incomplete = labels if sources.keep_incomplete and recipe.has_views else []
    matched = match([*parts, *(features.part for features in found)], incomplete)
    if target is not None:
        matched = matched.take(target.known()[matched.rows[TARGET]], "without a target")
    views = {name: np.full((len(matched.names), len(columns)), np.nan) for name, columns in recipe.columns.items()}
    for features in found:
        rows = matched.rows[features.label]
        views[features.name][rows >= 0] = features.table.numbers(features.columns)[rows[rows >= 0]]
        _refuse_gaps(features, views[features.name], matched, whole_rows=recipe.has_views)
    X = views if recipe.has_views else dict(zip(recipe.columns[""], views[""].T, strict=True))
    gathered = Gathered(X, matched, recipe, fingerprints(list(views.values())))
    if not recipe.has_views:
        return gathered
    lacking = np.column_stack([np.isnan(view).all(axis=1) for view in views.values()])
    if sources.keep_incomplete:
        return gathered.take(np.array([not gone.all() for gone in lacking]), "that no view has")
    left = np.ones(len(lacking), dtype=bool)
    for name, gone in zip(views, lacking.T, strict=True):
        gathered = gathered.take(~gone[left], f"whose rows in {name} are empty")
        left &= ~gone
    return gathered


def _refuse_gaps(features: Features, values: Array, matched: Matched, *, whole_rows: bool) -> None:
    """Refuse cells without a value; a sample may lack a view, but not a part of it."""
    gaps = ~np.isfinite(values)
    if whole_rows:
        gaps &= ~np.isnan(values).all(axis=1, keepdims=True)
    if gaps.any():
        row, column = np.argwhere(gaps)[0]
        raise InputError(
            f"{features.table.path}, sample {matched.names[row]}, column {features.columns[column]!r}: the value is "
            f"missing or infinite ({int(gaps.sum())} such cells).",
            "Impute it or drop the column; a sample may lack a view, if its whole row is empty."
            if whole_rows
            else "Impute it, drop the column, or leave the row out.",
        )


def _columns_of_training(features: Features, recipe: Recipe) -> list[str]:
    """Return the columns of training in a table, in their order."""
    wanted, path = recipe.columns[features.name], features.table.path
    if features.table.named and recipe.named[features.name]:
        missing = [column for column in wanted if column not in features.columns]
        if missing:
            raise InputError(
                f"{path}: there is no column {listed(missing)}, which the model was fitted on.",
                "Pass the same columns as in training; others are left out.",
            )
        return wanted
    if len(features.columns) != len(wanted):
        raise InputError(
            f"{path}: expected the {len(wanted)} columns of training, got {len(features.columns)}.",
            "Pass the same columns in the same order.",
        )
    return features.columns
