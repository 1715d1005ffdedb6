"""`bemkl report`: a page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bemkl.commands.evaluate import folds_option
from bemkl.commands.inputs import FILE_OPTIONS, model_argument, open_model, read_for, take_sources, with_options
from bemkl.commands.output import json_option, print_json, progress, say

if TYPE_CHECKING:
    from bemkl.evaluation import HeldOut
    from bemkl.files import Gathered, Sources


@click.command()
@model_argument
@with_options(*FILE_OPTIONS, folds_option)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Draws of folds.")
@click.option("--title", help="Heading of the page.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="PAGE.html", help="Where to write it."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def report(
    model_path: Path,
    folds: int,
    seed: int,
    title: str | None,
    output: Path,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """
    Write a page about a model: one file that needs nothing but a browser.

    With a target, the page has scores. Samples that the model was fitted on, told by their values, are predicted by
    cross-validation, others by the model itself.
    """
    from bemkl.files import refuse_output, write_whole
    from bemkl.report import report_page

    sources = take_sources(options)
    refuse_output(output, force=force, inputs=[*sources.paths, model_path])
    model = open_model(model_path)
    gathered = read_for(model, sources)
    held_out, origin = (None, "") if gathered.y is None else _held_out(model, gathered, sources, folds, seed)
    page = report_page(
        model,
        gathered.X,
        held_out=held_out,
        origin=origin,
        names=gathered.names,
        title=title or f"{', '.join(gathered.recipe.targets)}: report on a multiple kernel model",
        settings=gathered.recipe.settings | {"model": str(model_path), "samples of this page": sources.checksums()},
    )
    write_whole(output, page.encode("utf-8", "backslashreplace"))
    scores = None if held_out is None else held_out.scores()
    if as_json:
        print_json({"output": str(output), "origin": origin, "scores": scores})
    else:
        say(f"Written to {output}." + (f" Scores: {origin}." if origin else " Without scores."))


def _held_out(model: Any, gathered: Gathered, sources: Sources, folds: int, seed: int) -> tuple[HeldOut, str]:
    """Predict samples with known targets, honestly."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    from bemkl.evaluation import cross_predict, predict_held_out
    from bemkl.files import training_samples

    known = np.isin(gathered.prints, gathered.recipe.prints)
    same = np.isin(gathered.names, gathered.recipe.ids) & ~known
    if gathered.recipe.has_ids and gathered.matched.has_ids and same.any():
        say(f"{int(same.sum())} samples have ids of training samples, but other values: they are taken as new ones.")
    if not known.all():
        new = gathered.take(~known)
        if known.any():
            say(f"{int(known.sum())} samples were in training and are left out of the scores.")
        return predict_held_out(model, new.X, new.y), f"{len(new.names)} samples that were not in training"
    with progress("folds", folds) as advance:
        if gathered.recipe.prepare is None:
            held_out = cross_predict(model, gathered.X, gathered.y, n_folds=folds, seed=seed, advance=advance)
        else:
            # Folds repair and scale matrices each for itself, so they need these as they are in the files.
            raw = training_samples(sources, gathered.task)
            pipeline = make_pipeline(clone(gathered.recipe.prepare), clone(model))
            held_out = cross_predict(pipeline, raw.X, raw.y, n_folds=folds, seed=seed, advance=advance)
    return held_out, f"{folds}-fold cross-validation of the training samples"
