"""Samples from tables: one with features, or several with views."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bemkl.arrays import Array
from bemkl.files.matching import Matched, Part, match
from bemkl.files.problems import InputError, listed
from bemkl.files.reading import read_table
from bemkl.files.recipe import Recipe
from bemkl.files.sources import TARGET, Gathered, Sources, fingerprints
from bemkl.files.tables import FileTable
from bemkl.files.targets import FileTarget


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
        return rows_of(self.label, self.table, self.id_column)


def rows_of(label: str, table: FileTable, id_column: str | None) -> Part:
    """Return the rows of a table for matching."""
    return Part(label, table.n_rows, None if id_column is None else table.ids(id_column))


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
    parts = [] if target is None else [rows_of(TARGET, target.table, target.id_column)]
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
