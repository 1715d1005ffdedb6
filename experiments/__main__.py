"""The paper's tables, our studies and the report on both: `python -m experiments table1`, in a checkout."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from experiments.catalogue import EXPERIMENTS
from experiments.job import Experiment
from experiments.report import write_report
from experiments.running import run_experiment

_RESULTS = Path(__file__).parent / "results"
_WIDE = 200

_results = click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=_RESULTS,
    show_default="experiments/results",
    help="Folder of the results.",
)


class _Program(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it refuses is a sentence and not a traceback."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            raise click.UsageError(str(error), ctx) from error


@click.group(cls=_Program)
def program() -> None:
    """
    Repeat the paper's experiments, and ours.

    Each replication is a line of JSON in the folder of results. What is there already is not done again, so that a run
    that was stopped goes on where it was.
    """


def _add(known: Experiment) -> None:
    """Make a command for an experiment."""

    @program.command(known.name, help=f"{known.title}.")
    @click.option(
        "--replications", type=click.IntRange(min=1), help="How many, instead of the experiment's own number."
    )
    @click.option("--data", multiple=True, help="Only this set; may be repeated.")
    @click.option("--method", "methods", multiple=True, help="Only this method; may be repeated.")
    @click.option("--data-home", type=click.Path(path_type=Path), help="Folder of the data sets; else BEMKL_DATA.")
    @_results
    @click.option("--jobs", "n_jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
    def run(results: Path, **options: Any) -> None:
        failures = run_experiment(known, results, console=Console(stderr=True), **options)
        for reason, count in Counter(failure.reason for failure in failures).items():
            click.echo(f"{count} failed: {reason}", err=True)
        if failures:
            raise click.ClickException(f"{len(failures)} replications failed. Run the command again to retry them.")


for _known in EXPERIMENTS.values():
    _add(_known)


@program.command()
@_results
@click.argument("names", nargs=-1, type=click.Choice(list(EXPERIMENTS)))
def report(results: Path, names: tuple[str, ...]) -> None:
    """Print ours beside the published figures; write report.md and the pictures into the folder of results."""
    console = Console(emoji=False)
    if not console.is_terminal:
        console = Console(emoji=False, width=_WIDE)
    for section in write_report(results, names or tuple(EXPERIMENTS)):
        console.print(Text(f"\n{section.heading}", style="bold"), Markdown(section.text))
        if section.table:
            console.print(section.table.rich())


if __name__ == "__main__":
    program()
