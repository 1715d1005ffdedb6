"""One replication of an experiment: what is to be done, and what came of it."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiments.tables import Section

PACKAGES = ("bemkl", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, slots=True)
class Job:
    """One replication: all that decides its outcome."""

    experiment: str  # name of the experiment
    data: str  # name of the data set
    method: str  # name of the method
    replication: int  # number of the replication, which is the seed of its split or start
    settings: Mapping[str, Any] = field(default_factory=dict)  # hyper-parameters and other choices, as JSON has them

    @property
    def key(self) -> str:
        """The job as text, the same for equal jobs."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job computed."""

    scores: Mapping[str, float]  # scores of the test samples, and other figures of the fit
    seconds: float  # CPU time of the training
    checksum: str  # checksum of the data
    details: Mapping[str, Any] = field(default_factory=dict)  # more than single figures, as JSON has it


@dataclass(frozen=True, slots=True)
class Record:
    """A job that was done: one line of a file of results."""

    job: Job  # what was done
    outcome: Outcome  # what came of it
    versions: Mapping[str, str]  # versions of Python and the packages

    def to_json(self) -> str:
        """Return the record as one line of JSON."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Read a line."""
        parts = json.loads(line)
        return cls(Job(**parts["job"]), Outcome(**parts["outcome"]), parts["versions"])


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table of the paper, or a study of ours."""

    name: str  # name at the command line
    title: str  # what it is, in a line
    replications: int  # number of replications where nobody says otherwise
    jobs: Callable[[int], list[Job]]  # maps the number of replications to the list of jobs
    run: Callable[[Job, Path | None], Outcome]  # maps a job and the folder of the data, or None, to its outcome
    report: Callable[[Sequence[Record]], list[Section]]  # maps records to the sections of a page


def versions() -> dict[str, str]:
    """Return the versions of all that a result may depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
