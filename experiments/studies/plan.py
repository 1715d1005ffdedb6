"""What a study consists of: data, ways to split them, methods and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.datasets import DataSet

Rows = npt.NDArray[np.intp]
Samples = dict[str, Array]
"""Views by name; of a table, every feature is one."""


@dataclass(frozen=True, slots=True)
class Score:
    """How a score is written."""

    header: str  # heading of its column
    factor: float = 1.0  # what to multiply by, such as 100 for per cent
    digits: int = 3  # digits after the point
    ranked: bool = True  # whether more, or less for a loss, is better; a coverage has a right value instead

    @property
    def words(self) -> str:
        """The heading without its unit."""
        return self.header.partition(", ")[0]

    @property
    def unit(self) -> str:
        """The unit in the heading with a space before it, or nothing."""
        unit = self.header.partition(", ")[2]
        return f" {unit}" if unit else ""

    def written(self, value: float) -> str:
        """Write a value in a sentence."""
        return f"{self.words} {self.factor * value:.{self.digits}f}{self.unit}"


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Training and test samples of one replication."""

    X: Samples = field(repr=False)  # (n_train, n_columns): training samples
    y: npt.NDArray[Any] = field(repr=False)  # (n_train,) or (n_train, n_outputs): their labels or responses
    X_test: Samples = field(repr=False)  # (n_test, n_columns): test samples; a row of NaN is a sample without the view
    y_test: npt.NDArray[Any] = field(repr=False)  # (n_test,) or (n_test, n_outputs): their labels or responses


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to split the data, and the methods that are compared on it."""

    name: str  # its name in tables
    methods: Mapping[str, Mapping[str, Any]]  # what each method is, as settings of a job
    # share of test samples in a split; None for a single split, which no statistics can be had from
    test_share: float | None


@dataclass(frozen=True, slots=True)
class Study:
    """Data, splits, methods and words."""

    name: str  # name of the data set
    title: str  # title of its page
    about: str  # what the data are
    choices: str  # how settings were chosen
    views: Mapping[str, str]  # words for each view whose weight is shown
    scenarios: tuple[Scenario, ...]  # ways to split the data
    pictured: tuple[str, ...]  # scenarios whose weights are shown; others have the same training samples
    # scores in the order of the columns; the first one is the one that methods are compared by
    scores: Mapping[str, Score]
    # maps the data, the name of a scenario and the number of a replication to a split
    cut: Callable[[DataSet, str, int], Split]
    # maps a split and the settings of a method to scores, CPU seconds of the training, and details
    run: Callable[[Split, Mapping[str, Any]], tuple[dict[str, float], float, dict[str, Any]]]

    @property
    def methods(self) -> list[str]:
        """All methods of all scenarios, each once."""
        return list(dict.fromkeys(method for scenario in self.scenarios for method in scenario.methods))


def take(X: Samples, rows: Rows) -> Samples:
    """Take some samples. Shapes: X (n_samples, n_columns)."""
    return {view: values[rows] for view, values in X.items()}


def split_of(X: Samples, y: npt.NDArray[Any], train: Rows, test: Rows) -> Split:
    """Cut samples and responses. Shapes: X (n_samples, n_columns), y (n_samples,) or (n_samples, n_outputs)."""
    return Split(take(X, train), y[train], take(X, test), y[test])
