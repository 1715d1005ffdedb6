"""The report: all results beside the published figures, as a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.catalogue import EXPERIMENTS
from experiments.job import Experiment, Record
from experiments.pictures import write_pictures
from experiments.records import Records
from experiments.studies import STUDIES
from experiments.studies.pages import write_pages
from experiments.tables import Section

_PAGE = "report.md"
_HEADING = """# Experiments

Written by `python -m experiments report`; each table is filled by `python -m experiments` and the name of the
experiment. Results are in the files beside this page, one line a replication."""


def write_report(folder: Path, names: Sequence[str]) -> list[Section]:
    """Write the sections of all experiments with results to a page, with pictures, and a page a study."""
    records = {name: _current(Records(folder, name).read(), known) for name, known in EXPERIMENTS.items()}
    sections = {name: EXPERIMENTS[name].report(found) for name, found in records.items() if found}
    if not any(name in sections for name in names):
        raise ValueError(
            f"results: {folder} has none of {', '.join(names)} yet. Run `python -m experiments {names[0]}` first."
        )
    pictures = [f"![{name}]({name})" for name in write_pictures(folder, records)]
    write_pages(folder, records.get(STUDIES.name, ()))
    written = [section.markdown() for found in sections.values() for section in found]
    page = "\n\n".join([_HEADING, *pictures, *written])
    (folder / _PAGE).write_text(page + "\n", encoding="utf-8")
    return [section for name in names for section in sections.get(name, ())]


def _current(records: Sequence[Record], experiment: Experiment) -> list[Record]:
    """Leave out results of settings that the experiment has no more."""
    most = max((record.job.replication for record in records), default=0) + 1
    known = {job.key for job in experiment.jobs(max(most, experiment.replications))}
    return [record for record in records if record.job.key in known]
