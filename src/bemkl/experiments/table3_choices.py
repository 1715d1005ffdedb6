"""The one choice of Tables 3 to 5: the deviation of the intermediate outputs, on training samples of Flowers17."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from bemkl.datasets import MatrixSplit
from bemkl.experiments.images import kernel_split
from bemkl.experiments.job import Experiment, Job, Outcome, Record
from bemkl.experiments.multiclass import score_ours
from bemkl.experiments.pairing import ScoreTable
from bemkl.experiments.tables import Section, Table, spread

DEVIATIONS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_FOLDS = 3
_SCORES = {"accuracy": (100.0, 1), "log_loss": (1.0, 3)}


def jobs(replications: int) -> list[Job]:
    """
    Return a job for every deviation.

    Parameters
    ----------
    replications : int
        Number of splits whose training samples are used.

    Returns
    -------
    list of Job
        The jobs.
    """
    return [
        Job(
            "table3-choices",
            "flowers17_rebuilt",
            f"{deviation:g}",
            index,
            {"intermediate_std": deviation, "margin": 1.0, "multiclass": "shared"},
        )
        for index in range(replications)
        for deviation in DEVIATIONS
    ]


def run(job: Job, data_home: Path | None) -> Outcome:
    """
    Cross-validate one deviation on the training samples of a split.

    Parameters
    ----------
    job : Job
        The deviation and the number of the split.
    data_home : Path or None
        Folder of the data.

    Returns
    -------
    Outcome
        Scores, means over folds.
    """
    split, checksum = kernel_split(job.data, job.replication, data_home)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(split.y_train, split.y_train)
    found = [score_ours(_inside(split, here, there), job.settings, checksum) for here, there in folds]
    scores = {name: float(np.mean([one.scores[name] for one in found])) for name in _SCORES}
    return Outcome(scores, sum(one.seconds for one in found), checksum)


def _inside(split: MatrixSplit, here: np.ndarray, there: np.ndarray) -> MatrixSplit:
    """Split the training samples once more."""
    train = {view: kernel[np.ix_(here, here)] for view, kernel in split.train.items()}
    test = {view: kernel[np.ix_(there, here)] for view, kernel in split.train.items()}
    return MatrixSplit(train, test, split.y_train[here], split.y_train[there])


def report(records: Sequence[Record]) -> list[Section]:
    """
    List the deviations.

    Parameters
    ----------
    records : sequence of Record
        What was done.

    Returns
    -------
    list of Section
        The table.
    """
    scores = ScoreTable(records)
    rows = [
        [
            f"{deviation:g}",
            *(
                spread(scores.values("flowers17_rebuilt", f"{deviation:g}", name), digits, factor)
                for name, (factor, digits) in _SCORES.items()
            ),
        ]
        for deviation in DEVIATIONS
    ]
    text = (
        "Accuracy in per cent and log loss over three folds of the training samples of Flowers17 (rebuilt), shared "
        "weights. The one with the best accuracy is used for Tables 3 to 5."
    )
    return [
        Section(
            "Tables 3 to 5: deviation of the intermediate outputs", text, Table(["σ_g", "accuracy", "log loss"], rows)
        )
    ]


TABLE3_CHOICES = Experiment(
    "table3-choices", "The one choice of Tables 3 to 5, on training samples", 1, jobs, run, report
)
