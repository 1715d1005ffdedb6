"""
Data sets from OpenML, prepared to the values of this catalogue.

The numbers 12, 14, 16, 18, 20, 22 (mfeat), 15 (breast), 37 (pima), 40 (sonar), 53 (heart), 59 (ionosphere), 196
(autompg), 1472 (energy), 1510 (wdbc), 4353 (concrete) and 40589 (emotions), and the form of the tables, were read in
public code; no download was tried. A table of other values is refused, because its checksum differs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import sklearn.datasets

from bemkl.arrays import Array
from bemkl.datasets.catalogue import Entry
from bemkl.datasets.sets import DataSet, SourceUnavailable

_Columns = tuple[Array, list[str]]

# The levels of the columns of heart that are no quantities, each of which becomes a column of 0 and 1.
_HEART_LEVELS = {
    "sex": (0, 1),
    "chest_pain": (1, 2, 3, 4),
    "fasting_blood_sugar": (0, 1),
    "rest_ecg": (0, 1, 2),
    "exercise_angina": (0, 1),
    "slope": (1, 2, 3),
    "n_vessels": (0, 1, 2, 3),
    "thal": (3, 6, 7),
}
_HEART_COLUMNS = (
    *("age", "sex", "chest_pain", "resting_bp", "cholesterol", "fasting_blood_sugar", "rest_ecg"),
    *("max_heart_rate", "exercise_angina", "oldpeak", "slope", "n_vessels", "thal"),
)


def _as_they_are(X: Array, names: list[str]) -> _Columns:
    return X, names


def _without_second(X: Array, names: list[str]) -> _Columns:
    """Leave out the second column of ionosphere, which is 0 in every row."""
    return np.delete(X, 1, axis=1), names[:1] + names[2:]


def _six_decimals(X: Array, names: list[str]) -> _Columns:
    """Leave out the digits of binary rounding that the published spreadsheet of concrete has."""
    return np.round(X, 6), names


def _single_precision(X: Array, names: list[str]) -> _Columns:
    """Take the values that mfeat has in single precision."""
    return X.astype(np.float32).astype(np.float64), names


def _one_hot(X: Array, names: list[str]) -> _Columns:
    """Give every level of heart's eight categories a column, also where there are only two."""
    columns, expanded = [], []
    for name, column in zip(_HEART_COLUMNS, X.T, strict=True):
        levels = _HEART_LEVELS.get(name)
        columns.extend([column] if levels is None else [(column == level).astype(np.float64) for level in levels])
        expanded.extend([name] if levels is None else [f"{name}_{level}" for level in levels])
    return np.column_stack(columns), expanded


class Recipe(NamedTuple):
    """Where OpenML has a data set, and what has to be done to it."""

    identifiers: tuple[int, ...]  # numbers of its tables, the features of which stand side by side
    classes: tuple[str, ...] = ()  # the labels there, in the order of the labels here; empty for a regression
    # from features and their names to those of this catalogue
    prepare: Callable[[Array, list[str]], _Columns] = _as_they_are
    n_outputs: int = 1  # number of responses


RECIPES = {
    "breast": Recipe((15,), ("benign", "malignant")),
    "heart": Recipe((53,), ("absent", "present"), _one_hot),
    "ionosphere": Recipe((59,), ("b", "g"), _without_second),
    "pima": Recipe((37,), ("tested_negative", "tested_positive")),
    "sonar": Recipe((40,), ("Rock", "Mine")),
    "wdbc": Recipe((1510,), ("1", "2")),
    "mfeat": Recipe((14, 12, 16, 20, 22, 18), tuple(str(number) for number in range(1, 11)), _single_precision),
    "emotions": Recipe((40589,), ("FALSE", "TRUE"), n_outputs=6),
    "autompg": Recipe((196,)),
    "concrete": Recipe((4353,), prepare=_six_decimals),
    "energy": Recipe((1472,), n_outputs=2),
}
"""The data sets that OpenML has."""


def read_openml(entry: Entry) -> DataSet:
    """
    Download a data set from OpenML with scikit-learn, which keeps a copy, and prepare it.

    Rows with a missing feature are left out, as those of breast and autompg are.
    """
    recipe = RECIPES.get(entry.name)
    if recipe is None:
        raise SourceUnavailable("there under no known number")
    numbers = ", ".join(str(number) for number in recipe.identifiers)
    try:
        tables = [_fetch(number, recipe) for number in recipe.identifiers]
        return _combined(entry, recipe, tables, f"OpenML {numbers}")
    except Exception as error:
        # A network fails in many ways, and so does a table of another form.
        raise SourceUnavailable(
            f"number {numbers} failed with {type(error).__name__}: {str(error) or 'no message':.200}"
        ) from None


def _fetch(number: int, recipe: Recipe) -> tuple[Array, list[str], Array]:
    """Download one table; features, their names, and responses, which some tables do not mark."""
    with warnings.catch_warnings():
        # Warnings of repeated attempts, and of versions: the checksum tells whether the values are right.
        warnings.simplefilter("ignore")
        table = sklearn.datasets.fetch_openml(data_id=number, as_frame=True, parser="auto", n_retries=1)
    features, responses, k = table.data, table.target, recipe.n_outputs
    if responses is None or responses.size != k * len(features):
        features, responses = table.frame.iloc[:, :-k], table.frame.iloc[:, -k:]
    responses = responses.to_frame() if responses.ndim == 1 else responses
    Y = [
        _codes(responses.iloc[:, j], recipe.classes) if recipe.classes else _numbers(responses.iloc[:, j])
        for j in range(k)
    ]
    X = [_numbers(features.iloc[:, j]) for j in range(features.shape[1])]
    return np.column_stack(X), [str(name) for name in features.columns], np.column_stack(Y)


def _numbers(column: Any) -> Array:
    """Convert a column of numbers, or of categories that are written as numbers."""
    return np.array([float(cell) for cell in column.tolist()])


def _codes(column: Any, classes: Sequence[str]) -> Array:
    """Convert a column of labels to their positions among the classes."""
    return np.array([float(classes.index(str(label))) for label in column.tolist()])


def _combined(entry: Entry, recipe: Recipe, tables: Sequence[tuple[Array, list[str], Array]], source: str) -> DataSet:
    """Put the features of all tables side by side, and prepare them."""
    Y: npt.NDArray[np.float64] = tables[0][2]
    if not all(np.array_equal(other, Y) for _, _, other in tables):
        raise ValueError("its tables have their rows in different orders")
    X = np.column_stack([features for features, _, _ in tables])
    complete = ~np.isnan(X).any(axis=1)
    X, names = recipe.prepare(X[complete], [name for _, names, _ in tables for name in names])
    Y = Y[complete] if recipe.classes else np.round(Y[complete], 6)
    return entry.of_table(X, names, Y, [f"target_{j}" for j in range(recipe.n_outputs)], source)
