"""What is to be predicted: columns of a table, and whether they are classes or numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.files.problems import InputError, listed
from bemkl.files.tables import FileTable, read_number, read_table

_MOST_CLASSES = 20

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class FileTarget:
    """Columns of a table that are to be predicted."""

    table: FileTable  # the table
    columns: list[str]  # the columns
    id_column: str | None  # the column with ids of rows

    def known(self) -> npt.NDArray[np.bool_]:
        """Tell which rows have a value in all columns. Shapes: returns (n_rows,)."""
        there = zip(*(self.table.texts(column) for column in self.columns), strict=True)
        return np.array([None not in texts for texts in there])

    def task(self, rows: npt.NDArray[np.intp]) -> tuple[str, str]:
        """Infer whether the target is of classes or of numbers."""
        if not all(map(self.table.is_numeric, self.columns)):
            return "classification", "the target is text"
        numbers = self.table.numbers(self.columns)[rows]
        different = len(np.unique(numbers))
        if not np.array_equal(numbers, np.round(numbers)):
            return "regression", "the target has fractions"
        if different <= max(2, min(_MOST_CLASSES, len(rows) // 5)):
            return "classification", f"the target has {different} different whole numbers"
        return "regression", f"the target has {different} different numbers"

    def like(self, names: list[str]) -> FileTarget:
        """Return the target that a model was fitted on."""
        if set(self.columns) != set(names) and not len(self.columns) == len(names) == 1:
            raise InputError(
                f"{self.table.path}: the model predicts {listed(names)}, got the target {listed(self.columns)}.",
                f"Write --target {self.table.path}:{','.join(names)}",
            )
        return self if len(names) == 1 else replace(self, columns=names)

    def values(self, rows: npt.NDArray[np.intp], task: str, classes: Values | None = None) -> Values:
        """Return the target. Shapes: returns (n_rows,) or (n_rows, n_columns)."""
        if task == "regression":
            numbers = self.table.numbers(self.columns)[rows]
            return numbers[:, 0] if len(self.columns) == 1 else numbers
        if len(self.columns) > 1:
            numbers = self.table.numbers(self.columns)[rows]
            if not np.isin(numbers, (0.0, 1.0)).all():
                raise InputError(
                    f"{self.table.path}: several columns of classes have to hold 0 and 1, one a label.",
                    "Name one column after the colon, or pass --task regression.",
                )
            return numbers.astype(int)
        texts = self.table.texts(self.columns[0])
        labels = np.array([texts[row] for row in rows], dtype=str)
        if classes is not None:
            return self._as_classes(labels, classes)
        try:
            return labels.astype(int) if (labels.astype(int).astype(str) == labels).all() else labels
        except (ValueError, OverflowError):
            return labels

    def _as_classes(self, labels: Values, classes: Values) -> Values:
        """Find the class of each label: the same text, or the same number."""
        known = {str(label): place for place, label in enumerate(classes)}
        numbers = {read_number(text): place for text, place in known.items() if read_number(text) is not None}
        places = [known.get(text, numbers.get(read_number(text), -1)) for text in labels]
        strangers = sorted({str(text) for text, place in zip(labels, places, strict=True) if place < 0})
        if strangers:
            raise InputError(
                f"{self.table.path}: the model does not know the class {listed(strangers)}.",
                f"Its classes are {listed(list(known))}; leave the others out.",
            )
        return classes[places]


def read_target(text: str, id_column: str | None, delimiter: str | None) -> FileTarget:
    """Read the table of a target."""
    path, wanted = Path(text), None
    if not path.is_file() and ":" in text:
        before, _, wanted = text.rpartition(":")
        path = Path(before)
    table = read_table(path, delimiter)
    columns = None
    if wanted is not None:
        columns = [wanted] if wanted in table.columns else [name.strip() for name in wanted.split(",")]
    found = table.id_column(id_column, exclude=columns or ())
    rest = [name for name in table.columns if name != found]
    if columns is None:
        if len(rest) > 1:
            raise InputError(
                f"{path}: which column is the target? There are {listed(rest)}.", f"Write --target {path}:{rest[-1]}"
            )
        columns = rest
    for column in columns:
        table.texts(column)  # refuses a column that is not there
    return FileTarget(table, columns, found)
