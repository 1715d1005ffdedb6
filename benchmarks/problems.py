"""Real problems for the benchmarks: what scikit-learn carries, and the paper's eight sets where BEMKL_DATA is set."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from bemkl.kernels import DenseStack, FactoredStack, paper_bank

PAPER_SETS = ("breast", "bupaliver", "heart", "ionosphere", "pima", "sonar", "wdbc", "wpbc")


@dataclass(frozen=True)
class Split:
    """Training and test kernels of the paper's bank, with labels or responses, samples first."""

    train: FactoredStack
    test: DenseStack
    y_train: np.ndarray
    y_test: np.ndarray


def available() -> list[str]:
    """Return the names of the sets that can be had on this machine."""
    folder = os.environ.get("BEMKL_DATA")
    paper = [name for name in PAPER_SETS if folder and (Path(folder) / name / f"{name}.csv").exists()]
    return [*paper, "wine", "diabetes"] if paper else ["wdbc", "wine", "diabetes"]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and targets: -1 and +1 for classes, a column each where there are three; else numbers."""
    if name == "wine":
        X, y = load_wine(return_X_y=True)
        return X, np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        return X, (y - y.mean()) / y.std()
    folder = os.environ.get("BEMKL_DATA")
    if folder:
        table = np.genfromtxt(Path(folder) / name / f"{name}.csv", delimiter=",", skip_header=1)
        y = table[:, -1]
        return table[:, :-1], (y - y.mean()) / y.std() if name == "yacht" else 2.0 * y - 1.0
    X, y = load_breast_cancer(return_X_y=True)
    return X, np.where(y == 0, 1.0, -1.0)


def split(name: str, seed: int = 0) -> Split:
    """Take 70 % for training and build the paper's kernels, standardised with its moments."""
    X, y = load(name)
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = np.split(order, [int(0.7 * len(X))])
    bank = paper_bank()
    return Split(bank.fit_factored(X[train]), bank.transform(X[test]).dense(), y[train], y[test])
