"""Samples from matrices: kernels or distances that another tool computed."""

from __future__ import annotations

import numpy as np

from bemkl.alignment import Rows
from bemkl.files.matching import Matched, Part, match, rows_of_table
from bemkl.files.matrices import FileMatrix, read_matrices
from bemkl.files.problems import InputError, listed
from bemkl.files.sources import TARGET, Gathered, Recipe, Sources, fingerprints
from bemkl.files.targets import FileTarget
from bemkl.kernels import stack_kernels


def training_kernels(sources: Sources, target: FileTarget) -> Gathered:
    """Read square matrices, and bring rows and columns into the order of the samples."""
    matrices = _read(sources)
    _refuse_sizes(matrices)
    matched = _match({name: (matrix, matrix.rows) for name, matrix in matrices.items()}, target)
    matched = matched.take(target.known()[matched.rows[TARGET]], "without a target")
    squares, places = {}, {}
    for name, matrix in matrices.items():
        rows = matched.rows[_label(name, matrix)]
        columns = _columns_like_rows(name, matrix)[rows]
        squares[name], places[name] = matrix.values[np.ix_(rows, columns)], (matrix.values.shape[1], columns)
    recipe = Recipe(sources.kind, kernels=list(squares), places=places)
    return Gathered(stack_kernels(squares), matched, recipe, fingerprints(list(squares.values())))


def new_kernels(sources: Sources, recipe: Recipe, target: FileTarget | None) -> Gathered:
    """Read matrices between new samples, in rows, and training samples, in columns."""
    matrices = _read(sources)
    if sorted(matrices) != sorted(recipe.kernels):
        raise InputError(
            f"Expected the kernels {listed(recipe.kernels)}, got {listed(list(matrices))}.",
            "Name kernels as in training: --kernel name=file.",
        )
    # Ids of columns are those of training samples, and say nothing about the rows.
    matched = _match({name: (m, m.rows if m.labelled else None) for name, m in matrices.items()}, target)
    if target is not None:
        matched = matched.take(target.known()[matched.rows[TARGET]], "without a target")
    raw = {}
    for name in recipe.kernels:
        matrix = matrices[name]
        raw[name] = matrix.values[matched.rows[_label(name, matrix)]][:, _columns_of_training(name, matrix, recipe)]
    return Gathered(stack_kernels(raw), matched, recipe, fingerprints(list(raw.values())))


def _read(sources: Sources) -> dict[str, FileMatrix]:
    """Read the matrices by the names that the user gave, or by their own."""
    found: dict[str, FileMatrix] = {}
    for name, path, variable in sources.kernels:
        matrices = read_matrices(path, variable, sources.delimiter(name or path.stem))
        if name is not None and len(matrices) > 1:
            raise InputError(
                f"{path}: there are several matrices in it, {listed(list(matrices))}, for the one name {name!r}.",
                f"Write --kernel {name}={path}:{next(iter(matrices))}, or leave the name out to take all of them.",
            )
        for own, matrix in matrices.items():
            label = own if name is None else name
            if label in found:
                raise InputError(f"{path}: there is another kernel {label!r}.", "Give each a name: --kernel name=file.")
            found[label] = matrix
    return found


def _label(name: str, matrix: FileMatrix) -> str:
    return f"{name} ({matrix.path})"


def _match(matrices: dict[str, tuple[FileMatrix, list[str] | None]], target: FileTarget | None) -> Matched:
    parts = [] if target is None else [rows_of_table(TARGET, target.table, target.id_column)]
    named = [Part(_label(name, matrix), len(matrix.values), rows) for name, (matrix, rows) in matrices.items()]
    return match([*parts, *named])


def _refuse_sizes(matrices: dict[str, FileMatrix]) -> None:
    sizes = {name: matrix.values.shape for name, matrix in matrices.items()}
    for name, shape in sizes.items():
        if shape[0] != shape[1]:
            raise InputError(
                f"{matrices[name].path}, kernel {name!r}: expected a square matrix, got shape {shape}.",
                "Training needs the kernels between all training samples; the table of a view is given with --view.",
            )
    bare = {name: shape for name, shape in sizes.items() if matrices[name].rows is None}
    if len(set(bare.values())) > 1:
        shown = ", ".join(f"{name!r} has {shape[0]}" for name, shape in bare.items())
        raise InputError(
            f"Kernels have different numbers of samples: {shown}.",
            "Pass the same samples in the same order, or matrices with ids (CSV with a header).",
        )


def _columns_like_rows(name: str, matrix: FileMatrix) -> Rows:
    """Return the columns of a square matrix in the order of its rows."""
    if matrix.rows is None or matrix.columns is None:
        return np.arange(matrix.values.shape[1])
    return _places(name, matrix, matrix.rows, "A training kernel has the same samples in rows and columns.")


def _columns_of_training(name: str, matrix: FileMatrix, recipe: Recipe) -> Rows:
    """Return the columns of the training samples, in the order of training."""
    if recipe.has_ids and matrix.columns is not None:
        return _places(name, matrix, recipe.ids, "Columns are the training samples, rows the new ones.")
    # Without ids, columns are those of the file of training, or the training samples alone.
    width, columns = recipe.places[name]
    if matrix.values.shape[1] == width:
        return columns
    if matrix.values.shape[1] != len(recipe.ids):
        raise InputError(
            f"{matrix.path}, kernel {name!r}: expected a column for each of the {len(recipe.ids)} training samples, "
            f"got {matrix.values.shape[1]}.",
            "Columns are the training samples in the order of training, rows the new ones.",
        )
    return np.arange(len(recipe.ids))


def _places(name: str, matrix: FileMatrix, wanted: list[str], advice: str) -> Rows:
    places = {column: place for place, column in enumerate(matrix.columns or [])}
    missing = [one for one in wanted if one not in places]
    if missing:
        raise InputError(f"{matrix.path}, kernel {name!r}: there is no column for {listed(missing)}.", advice)
    return np.array([places[one] for one in wanted], dtype=np.intp)
