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
    """
    How a score is written.

    Parameters
    ----------
    header : str
        Heading of its column.
    factor : float
        What to multiply by, such as 100 for per cent.
    digits : int
        Digits after the point.
    ranked : bool
        Whether more, or less for a loss, is better; a coverage has a right value instead.
    """

    header: str
    factor: float = 1.0
    digits: int = 3
    ranked: bool = True

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
        """
        Write a value in a sentence.

        Parameters
        ----------
        value : float
            The value.

        Returns
        -------
        str
            Name, number and unit.

        Examples
        --------
        >>> Score("accuracy, %", 100.0, 1).written(0.912)
        'accuracy 91.2 %'
        """
        return f"{self.words} {self.factor * value:.{self.digits}f}{self.unit}"


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """
    Training and test samples of one replication.

    Parameters
    ----------
    X : dict of ndarray of shape (n_train, n_columns)
        Training samples.
    y : ndarray of shape (n_train,) or (n_train, n_outputs)
        Their labels or responses.
    X_test : dict of ndarray of shape (n_test, n_columns)
        Test samples; a row of NaN is a sample without the view.
    y_test : ndarray of shape (n_test,) or (n_test, n_outputs)
        Their labels or responses.
    """

    X: Samples = field(repr=False)
    y: npt.NDArray[Any] = field(repr=False)
    X_test: Samples = field(repr=False)
    y_test: npt.NDArray[Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Scenario:
    """
    One way to split the data, and the methods that are compared on it.

    Parameters
    ----------
    name : str
        Its name in tables.
    methods : dict of str to dict
        What each method is, as settings of a job.
    test_share : float or None
        Share of test samples in a split; None for a single split, which no statistics can be had from.
    """

    name: str
    methods: Mapping[str, Mapping[str, Any]]
    test_share: float | None


@dataclass(frozen=True, slots=True)
class Study:
    """
    Data, splits, methods and words.

    Parameters
    ----------
    name : str
        Name of the data set.
    title : str
        Title of its page.
    about : str
        What the data are.
    choices : str
        How settings were chosen.
    views : dict of str to str
        Words for each view whose weight is shown.
    scenarios : tuple of Scenario
        Ways to split the data.
    pictured : tuple of str
        Scenarios whose weights are shown; others have the same training samples.
    scores : dict of str to Score
        Scores in the order of the columns; the first one is the one that methods are compared by.
    cut : callable
        Maps the data, the name of a scenario and the number of a replication to a split.
    run : callable
        Maps a split and the settings of a method to scores, CPU seconds of the training, and details.
    """

    name: str
    title: str
    about: str
    choices: str
    views: Mapping[str, str]
    scenarios: tuple[Scenario, ...]
    pictured: tuple[str, ...]
    scores: Mapping[str, Score]
    cut: Callable[[DataSet, str, int], Split]
    run: Callable[[Split, Mapping[str, Any]], tuple[dict[str, float], float, dict[str, Any]]]

    @property
    def methods(self) -> list[str]:
        """All methods of all scenarios, each once."""
        return list(dict.fromkeys(method for scenario in self.scenarios for method in scenario.methods))


def take(X: Samples, rows: Rows) -> Samples:
    """
    Take some samples.

    Parameters
    ----------
    X : dict of ndarray of shape (n_samples, n_columns)
        Samples.
    rows : ndarray of int
        Which ones.

    Returns
    -------
    dict of ndarray
        These.
    """
    return {view: values[rows] for view, values in X.items()}


def split_of(X: Samples, y: npt.NDArray[Any], train: Rows, test: Rows) -> Split:
    """
    Cut samples and responses.

    Parameters
    ----------
    X : dict of ndarray of shape (n_samples, n_columns)
        Samples.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Labels or responses.
    train : ndarray of int
        Training samples.
    test : ndarray of int
        Test samples.

    Returns
    -------
    Split
        The parts.
    """
    return Split(take(X, train), y[train], take(X, test), y[test])
