"""The names of all data sets, and a table of them."""

from __future__ import annotations

from bemkl.datasets.catalogue import CATALOGUE, Entry
from bemkl.datasets.openml import RECIPES
from bemkl.datasets.packages import carrier


def names() -> list[str]:
    """
    Return the names of all data sets.

    Returns
    -------
    list of str
        The names, those of the paper's first experiment first.

    Examples
    --------
    >>> names()[:4]
    ['breast', 'bupaliver', 'heart', 'ionosphere']
    """
    return list(CATALOGUE)


def describe() -> str:
    r"""
    Describe all data sets in a table: size, response, where it can be had, and licence.

    Returns
    -------
    str
        The table, one line a data set.

    Examples
    --------
    >>> print("\n".join(line[:70].rstrip() for line in describe().splitlines()[:3]))
    name        rows  features        target                    where
    breast      683   9               malignant                 directory,
    bupaliver   345   6               selector 2                directory,
    """
    header = ("name", "rows", "features", "target", "where", "licence")
    rows = [header, *(_row(entry) for entry in CATALOGUE.values())]
    widths = [max(len(row[j]) for row in rows) for j in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def _row(entry: Entry) -> tuple[str, ...]:
    if isinstance(entry.columns, int):
        features = str(entry.columns)
    else:
        features = f"{sum(entry.columns.values())} in {len(entry.columns)} views"
    package, recipe = carrier(entry), RECIPES.get(entry.name)
    where = ["directory", *([package] if package else [])]
    if recipe is not None:
        where.append("OpenML " + "+".join(str(number) for number in recipe.identifiers))
    return entry.name, str(entry.rows), features, entry.target, ", ".join(where), entry.licence
