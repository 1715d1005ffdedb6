"""`bemkl experiment`: the paper's tables and our studies, and the report on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bemkl.commands.inputs import with_options
from bemkl.commands.output import json_option, print_json, print_rich
from bemkl.commands.streams import say
from bemkl.experiments.catalogue import EXPERIMENTS
from bemkl.experiments.job import Experiment
from bemkl.experiments.report import write_report
from bemkl.experiments.running import run_experiment

if TYPE_CHECKING:
    from rich.console import RenderableType

_RESULTS = Path("experiments") / "results"

_OPTIONS = [
    click.option(
        "--replications", type=click.IntRange(min=1), help="How many, instead of the experiment's own number."
    ),
    click.option("--data", "sets", multiple=True, help="Only this set; may be repeated."),
    click.option("--method", "methods", multiple=True, help="Only this method; may be repeated."),
    click.option("--data-home", type=click.Path(path_type=Path), help="Folder of the data sets; else BEMKL_DATA."),
    click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, show_default=True, help="Results."),
    click.option("--jobs", "n_jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes."),
]


@click.group(no_args_is_help=False)
def experiment() -> None:
    """
    Repeat the paper's experiments, and ours.

    Each replication is a line of JSON in the folder of results. What is there already is not done again, so that a run
    that was stopped goes on where it was.
    """


def _add(known: Experiment) -> None:
    """Make a command for an experiment."""

    def run(as_json: bool, **options: Any) -> None:
        from rich.console import Console

        failures = run_experiment(
            known,
            options["results"],
            replications=options["replications"],
            data=options["sets"],
            methods=options["methods"],
            data_home=options["data_home"],
            n_jobs=options["n_jobs"],
            console=Console(stderr=True),
        )
        reasons = Counter(failure.reason for failure in failures)
        for reason, count in reasons.items():
            say(f"{count} failed: {reason}")
        if as_json:
            print_json({"experiment": known.name, "results": str(options["results"]), "failed": reasons})
        if failures:
            raise click.ClickException(f"{len(failures)} replications failed. Run the command again to retry them.")

    experiment.command(known.name, help=f"{known.title}.")(with_options(*_OPTIONS, json_option)(run))


for _known in EXPERIMENTS.values():
    _add(_known)


@experiment.command()
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, show_default=True, help="Results.")
@click.argument("names", nargs=-1, type=click.Choice(list(EXPERIMENTS)))
@json_option
def report(results: Path, names: tuple[str, ...], as_json: bool) -> None:
    """Print ours beside the published figures; write report.md and the pictures into the folder of results."""
    from rich.markdown import Markdown
    from rich.text import Text

    sections = write_report(results, names or tuple(EXPERIMENTS))
    if as_json:
        print_json([asdict(section) for section in sections])
        return
    for section in sections:
        parts: list[RenderableType] = [Text(f"\n{section.heading}", style="bold"), Markdown(section.text)]
        print_rich(*parts, *([section.table.rich()] if section.table else []))
