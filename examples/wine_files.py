"""
Write scikit-learn's wine data as files of views, for the examples of docs/command_line.md.

    python examples/wine_files.py [FOLDER]

Three tables with an id column, four wines fewer in one of them, and the kinds of 150 of the 178 wines.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

VIEWS = {
    "acids": ["malic_acid", "ash", "alcalinity_of_ash"],
    "phenols": ["total_phenols", "flavanoids", "nonflavanoid_phenols", "proanthocyanins"],
    "looks": ["color_intensity", "hue"],
}


def main() -> None:
    """Write the files."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    wine = load_wine()
    ids = [f"wine{number:03d}" for number in range(1, len(wine.target) + 1)]
    order = np.random.default_rng(0).permutation(len(ids))
    for view, columns in VIEWS.items():
        places = [wine.feature_names.index(column) for column in columns]
        rows = order[4:] if view == "looks" else order
        write(folder / f"{view}.csv", ["id", *columns], [[ids[i], *wine.data[i, places]] for i in sorted(rows)])
    kinds = [[ids[i], wine.target_names[wine.target[i]].replace("class_", "kind ")] for i in sorted(order[:150])]
    write(folder / "kinds.csv", ["id", "kind"], kinds)


def write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    main()
