"""One replication of an experiment: what is to be done, and what came of it."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bemkl.experiments.tables import Section

PACKAGES = ("bemkl", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, slots=True)
class Job:
    """
    One replication: all that decides its outcome.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    data : str
        Name of the data set.
    method : str
        Name of the method.
    replication : int
        Number of the replication, which is the seed of its split or start.
    settings : dict of str to Any
        Hyper-parameters and other choices, as JSON has them.

    Examples
    --------
    >>> Job("table1", "wdbc", "sparse", 0, {"margin": 1.0}).key
    '{"data": "wdbc", "experiment": "table1", "method": "sparse", "replication": 0, "settings": {"margin": 1.0}}'
    """

    experiment: str
    data: str
    method: str
    replication: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The job as text, the same for equal jobs."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    What a job computed.

    Parameters
    ----------
    scores : dict of str to float
        Scores of the test samples, and other figures of the fit.
    seconds : float
        CPU time of the training.
    checksum : str
        Checksum of the data.
    details : dict of str to Any
        More than single figures, as JSON has it.
    """

    scores: Mapping[str, float]
    seconds: float
    checksum: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """
    A job that was done: one line of a file of results.

    Parameters
    ----------
    job : Job
        What was done.
    outcome : Outcome
        What came of it.
    versions : dict of str to str
        Versions of Python and the packages.

    Examples
    --------
    >>> done = Record(Job("table1", "wdbc", "sparse", 0), Outcome({"accuracy": 0.97}, 1.2, "ab12"), {"numpy": "2.0"})
    >>> Record.from_json(done.to_json()) == done
    True
    """

    job: Job
    outcome: Outcome
    versions: Mapping[str, str]

    def to_json(self) -> str:
        """
        Return the record as one line of JSON.

        Returns
        -------
        str
            The line, without its end.
        """
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Record:
        """
        Read a line.

        Parameters
        ----------
        line : str
            A line of JSON.

        Returns
        -------
        Record
            The record.
        """
        parts = json.loads(line)
        return cls(Job(**parts["job"]), Outcome(**parts["outcome"]), parts["versions"])


@dataclass(frozen=True, slots=True)
class Experiment:
    """
    A table of the paper, or a study of ours.

    Parameters
    ----------
    name : str
        Name at the command line.
    title : str
        What it is, in a line.
    replications : int
        Number of replications where nobody says otherwise.
    jobs : callable
        Maps the number of replications to the list of jobs.
    run : callable
        Maps a job and the folder of the data, or None, to its outcome.
    report : callable
        Maps records to the sections of a page.
    """

    name: str
    title: str
    replications: int
    jobs: Callable[[int], list[Job]]
    run: Callable[[Job, Path | None], Outcome]
    report: Callable[[Sequence[Record]], list[Section]]


def versions() -> dict[str, str]:
    """
    Return the versions of all that a result may depend on.

    Returns
    -------
    dict of str to str
        Package to version.
    """
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
