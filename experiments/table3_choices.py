"""The one choice of Tables 3 to 5, a deviation of the intermediate outputs, on training samples of Flowers17."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments.datasets import MatrixSplit
from experiments.images import MODES, kernel_split
from experiments.job import Experiment, Job, Outcome, Record
from experiments.multiclass import mean_outcome, score_ours
from experiments.pairing import ScoreTable
from experiments.tables import Section, Table, spread

DEVIATIONS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_DATA = "flowers17_rebuilt"
_FOLDS = 3
_SCORES = {"accuracy": (100.0, 1), "log_loss": (1.0, 3)}


def jobs(replications: int) -> list[Job]:
    """Return a job for every deviation and every way to share weights."""
    return [
        Job(
            "table3-choices",
            _DATA,
            _name(mode, deviation),
            index,
            {"intermediate_std": deviation, "margin": 1.0, "multiclass": mode},
        )
        for index, mode, deviation in product(range(replications), MODES, DEVIATIONS)
    ]


def run(job: Job, data_home: Path | None) -> Outcome:
    """Cross-validate one deviation on the training samples of a split."""
    split, checksum = kernel_split(job.data, job.replication, data_home)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(split.y_train, split.y_train)
    found = [score_ours(_inside(split, here, there), job.settings, checksum) for here, there in folds]
    return mean_outcome(found, list(_SCORES))


def _inside(split: MatrixSplit, here: np.ndarray, there: np.ndarray) -> MatrixSplit:
    """Split the training samples once more."""
    train = {view: kernel[np.ix_(here, here)] for view, kernel in split.train.items()}
    test = {view: kernel[np.ix_(there, here)] for view, kernel in split.train.items()}
    return MatrixSplit(train, test, split.y_train[here], split.y_train[there])


def report(records: Sequence[Record]) -> list[Section]:
    """List the deviations."""
    scores = ScoreTable(records)
    rows = [
        [
            f"{deviation:g}",
            *(
                spread(scores.values(_DATA, _name(mode, deviation), name), digits, factor)
                for mode, (name, (factor, digits)) in product(MODES, _SCORES.items())
            ),
        ]
        for deviation in DEVIATIONS
    ]
    text = (
        "Accuracy in per cent and log loss over three folds of the training samples of Flowers17 (rebuilt), one split. "
        "The deviation with the best accuracy is used for Tables 3 to 5."
    )
    header = ["σ_g", *(f"{name.replace('_', ' ')}, {mode}" for mode, name in product(MODES, _SCORES))]
    return [Section("Tables 3 to 5: deviation of the intermediate outputs", text, Table(header, rows))]


def _name(mode: str, deviation: float) -> str:
    return f"{mode}, {deviation:g}"


TABLE3_CHOICES = Experiment(
    "table3-choices", "The one choice of Tables 3 to 5, on training samples", 1, jobs, run, report
)
