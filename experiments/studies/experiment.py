"""The experiment that runs all studies, and its part of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments import datasets
from experiments.job import Experiment, Job, Outcome, Record
from experiments.studies.catalogue import ALL
from experiments.studies.findings import Findings
from experiments.tables import Section

REPLICATIONS = 10
"""Splits of each scenario."""


def jobs(replications: int) -> list[Job]:
    """Return a job for every study, scenario, method and split."""
    return [
        Job("studies", study.name, method, replication, {"scenario": scenario.name} | dict(settings))
        for study in ALL.values()
        for scenario in study.scenarios
        for replication in range(replications if scenario.test_share else 1)
        for method, settings in scenario.methods.items()
    ]


def run(job: Job, data_home: Path | None) -> Outcome:
    """Fit and score one method on one split."""
    study, data = ALL[job.data], datasets.load(job.data, data_home)
    split = study.cut(data, job.settings["scenario"], job.replication)
    scores, seconds, details = study.run(split, job.settings)
    return Outcome(scores, seconds, data.checksum, details)


def report(records: Sequence[Record]) -> list[Section]:
    """Say for each study what its views are worth and how ours compares."""
    sections = []
    for name, study in ALL.items():
        findings = Findings(study, [record for record in records if record.job.data == name])
        if findings:
            text = " ".join([study.about, *findings.about_weights(), *findings.about_scores(most=1)])
            sections.append(Section(f"Study: {study.title}", text, findings.score_table()))
    return sections


STUDIES = Experiment(
    "studies", "Studies beyond the paper: other data with several views", REPLICATIONS, jobs, run, report
)
