"""`bemkl weights`: which kernels matter, and how sure that is."""

from __future__ import annotations

from pathlib import Path

import click

from bemkl.commands.inputs import model_argument, open_model
from bemkl.commands.output import (
    json_option,
    print_csv,
    print_json,
    print_table,
    refuse_csv,
    save_csv,
    say,
    top_of_each,
    weight_table,
)


@click.command()
@model_argument
@click.option("--coverage", type=click.FloatRange(0.0, 1.0, max_open=True), default=0.95, show_default=True)
@click.option("--top", type=click.IntRange(min=1), help="Only the largest ones, of each class.")
@click.option("--selected", is_flag=True, help="Only kernels that the combination uses.")
@click.option("--csv", "as_text", is_flag=True, help="Print CSV.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE.csv", help="Instead of printing.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def weights(
    model_path: Path,
    coverage: float,
    top: int | None,
    selected: bool,
    as_text: bool,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """
    Show which kernels matter, and how sure that is.

    Weight and standard deviation under the posterior, an interval, and the share of the kernel in how the decisions on
    the training samples vary.
    """
    if output is not None:
        refuse_csv(output, force=force, inputs=[model_path])
    model = open_model(model_path)
    people = not (as_json or as_text or output)
    every = weight_table(model, coverage, rounded=people)
    rows = top_of_each([row for row in every if row["selected"] or not selected], top)
    if output is not None:
        save_csv(output, rows, list(every[0]))
        say(f"{len(rows)} weights in {output}.")
    if as_json:
        print_json(rows)
    elif as_text:
        print_csv(rows, list(every[0]))
    elif output is None:
        classes = len(every) // len(model.kernel_names_)
        of = f"{len(model.kernel_names_)} kernels" + (f" for each of {classes} classes" if classes > 1 else "")
        print_table(f"{len(rows)} weights of {of}", rows)
