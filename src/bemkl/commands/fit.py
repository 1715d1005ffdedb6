"""`bemkl fit`: from files to a model."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bemkl.commands.inputs import FILE_OPTIONS, preparation, read_training, take_sources, with_options
from bemkl.commands.output import json_option, print_json, print_table, say, weight_table
from bemkl.commands.settings import MODEL_OPTIONS, Settings, take_settings

if TYPE_CHECKING:
    from bemkl.files import Gathered, Sources

_SHOWN = 10


@click.command()
@with_options(*FILE_OPTIONS, *MODEL_OPTIONS)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="MODEL.skops", help="Where to save it."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def fit(output: Path, force: bool, as_json: bool, **options: Any) -> None:
    """
    Fit a model to samples in files, and save it.

    Samples are one table (--data), several tables (--view, repeated) or kernel matrices (--kernel, repeated). Rows are
    matched by ids, where files have them.
    """
    from bemkl.files import refuse_output
    from bemkl.persistence import save_model

    sources, settings = take_sources(options), take_settings(options)
    refuse_output(output, force=force, inputs=sources.paths)
    gathered = read_training(sources, settings.task)
    X, recipe = gathered.X, gathered.recipe
    for step in preparation(sources, settings.bank, X):
        X, recipe = step.fit_transform(X), replace(recipe, prepare=step)
    # The bar is drawn on the standard output, which is for results where it is no terminal.
    model = settings.estimator(gathered.task, X).set_params(verbose=int(sys.stdout.isatty() and not as_json))
    model.fit(X, gathered.y).set_params(verbose=0)
    model.files_ = replace(recipe, settings=_record(sources, settings))
    save_model(model, output)
    facts = _facts(model, gathered, output)
    if as_json:
        print_json(facts | {"kernels": weight_table(model)})
        return
    counts = f"{facts['n_samples']} samples, {facts['n_kernels']} kernels"
    say(f"{counts}, bound {facts['lower_bound']:.6g} after {facts['n_iter']} iterations.")
    rows = sorted(weight_table(model, rounded=True), key=lambda row: -abs(row["weight"]))
    print_table(f"Largest kernel weights of {len(rows)}", rows[:_SHOWN])
    say(f"Saved to {output}.")


def _facts(model: Any, gathered: Gathered, output: Path) -> dict[str, Any]:
    return {
        "task": gathered.task,
        "reason": gathered.reason,
        "n_samples": len(gathered.names),
        "n_kernels": len(model.kernel_names_),
        "lower_bound": model.lower_bound_,
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "selected": [model.kernel_names_[position] for position in model.selected_kernels_],
        "left_out": gathered.matched.everything_left_out(),
        "output": str(output),
    }


def _record(sources: Sources, settings: Settings) -> dict[str, Any]:
    """Return files with their checksums, and options: what it takes to do it again."""
    flags = {name: getattr(sources, name) for name in ("distances", "repair", "keep_incomplete")}
    return {"files": sources.checksums(), "target": sources.target} | flags | settings.as_json()
