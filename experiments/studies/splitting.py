"""How the data of each study are split."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import KFold, train_test_split

from bemkl.datasets import DataSet
from experiments.studies.plan import Samples, Split, split_of

PER_CLASS = {"10 a class": 10, "20 a class": 20}
"""Training samples a class of the digits."""
TEST_PER_CLASS = 100
"""Test samples a class of the digits."""
PUBLISHED, COMPLETE, WITHOUT = "published split", "random splits, all views", "random splits, no protein in test"
"""Scenarios of the tumours."""
DRUG_FOLDS = 5
"""Folds of the cell lines."""


def views_of(data: DataSet) -> Samples:
    """Return the views of a data set; of a table, every feature is one. Shapes: returns (n_samples, n_columns)."""
    if isinstance(data.X, dict):
        return data.X
    return {str(name): data.X[:, [column]] for column, name in enumerate(data.feature_names)}


def cut_digits(data: DataSet, scenario: str, replication: int) -> Split:
    """Draw few training samples a class; more of them contain the fewer, and the test samples are the same."""
    rng = np.random.default_rng(replication)
    orders = [rng.permutation(np.flatnonzero(data.y == label)) for label in np.unique(data.y)]
    last = TEST_PER_CLASS + PER_CLASS[scenario]
    train = np.concatenate([order[TEST_PER_CLASS:last] for order in orders])
    return split_of(views_of(data), data.y, train, np.concatenate([order[:TEST_PER_CLASS] for order in orders]))


def cut_tumours(data: DataSet, scenario: str, replication: int) -> Split:
    """Take the published split, or draw one from its training samples, with or without the protein view in the test."""
    assert data.train is not None
    X = views_of(data)
    complete = np.flatnonzero(data.train[0])
    if scenario == PUBLISHED:
        return split_of(X, data.y, complete, np.flatnonzero(~data.train[0]))
    train, test = train_test_split(complete, test_size=1.0 / 3.0, stratify=data.y[complete], random_state=replication)
    split = split_of(X, data.y, train, test)
    if scenario == COMPLETE:
        return split
    lacking = {"protein": np.full_like(split.X_test["protein"], np.nan)}
    return Split(split.X, split.y, split.X_test | lacking, split.y_test)


def cut_cell_lines(data: DataSet, scenario: str, replication: int) -> Split:
    """Take one of five folds of the cell lines; every five replications they are drawn anew."""
    seed, fold = divmod(replication, DRUG_FOLDS)
    folds = list(KFold(DRUG_FOLDS, shuffle=True, random_state=seed).split(data.y))
    X = {view: np.log1p(values) if view == "ms" else values for view, values in views_of(data).items()}
    return split_of(X, data.y, *folds[fold])


def cut_music(data: DataSet, scenario: str, replication: int) -> Split:
    """Draw two thirds for training, with the view "timbre" divided by the kind of its columns."""
    assert isinstance(data.feature_names, dict)
    is_cepstral = np.array(["mfcc" in name for name in data.feature_names["timbre"]])
    views = views_of(data)
    timbre = views["timbre"]
    X = {"spectrum": timbre[:, ~is_cepstral], "cepstrum": timbre[:, is_cepstral], "rhythm": views["rhythm"]}
    order = np.random.default_rng(replication).permutation(len(data.y))
    train, test = np.split(order, [2 * len(order) // 3])
    return split_of(X, data.y, train, test)


def cut_table(data: DataSet, scenario: str, replication: int) -> Split:
    """Draw 70 % of the rows for training."""
    order = np.random.default_rng(replication).permutation(len(data.y))
    train, test = np.split(order, [7 * len(order) // 10])
    return split_of(views_of(data), data.y, train, test)
