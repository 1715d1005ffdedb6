"""The report: all results beside the published figures, on the terminal and as a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from bemkl.experiments.catalogue import EXPERIMENTS
from bemkl.experiments.pictures import write_pictures
from bemkl.experiments.records import Records
from bemkl.experiments.studies import STUDIES
from bemkl.experiments.studies.pages import write_pages
from bemkl.experiments.tables import Section

_PAGE = "report.md"
_HEADING = """# Experiments

Written by `bemkl experiment report`; each table is filled by `bemkl experiment` and the name of the experiment. Results
are in the files beside this page, one line a replication."""


def write_report(folder: Path, names: Sequence[str], console: Console) -> None:
    """
    Print the sections of experiments with results; write them to a page, and one page for each study.

    Parameters
    ----------
    folder : Path
        Folder of results.
    names : sequence of str
        Names of experiments.
    console : rich.console.Console
        Where to print.
    """
    records = {name: Records(folder, name).read() for name in names}
    sections = [section for name in names if records[name] for section in EXPERIMENTS[name].report(records[name])]
    if not sections:
        raise LookupError(f"{folder}: no results yet. Run `bemkl experiment table1` and others first.")
    for section in sections:
        _print(section, console)
    pictures = [f"![{name}]({name})" for name in write_pictures(folder, records)]
    write_pages(folder, records.get(STUDIES.name, ()))
    page = "\n\n".join([_HEADING, *pictures, *(section.markdown() for section in sections)])
    (folder / _PAGE).write_text(page + "\n", encoding="utf-8")


def _print(section: Section, console: Console) -> None:
    console.print(f"\n[bold]{section.heading}[/bold]")
    console.print(Markdown(section.text))
    if section.table:
        console.print(section.table.rich())
