"""`bemkl evaluate`: all scores by cross-validation."""

from __future__ import annotations

from typing import Any

import click

from bemkl.commands.inputs import FILE_OPTIONS, preparation, read_training, take_sources, with_options
from bemkl.commands.output import json_option, print_json, print_table, progress
from bemkl.commands.settings import MODEL_OPTIONS, take_settings

folds_option = click.option(
    "--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Number of folds."
)
"""The number of folds."""


@click.command()
@with_options(*FILE_OPTIONS, *MODEL_OPTIONS, folds_option)
@json_option
def evaluate(folds: int, as_json: bool, **options: Any) -> None:
    """
    Score a model by cross-validation.

    Each sample is predicted by a model that was fitted on the other folds. Prints the scores of all samples, and their
    mean and standard deviation over folds.
    """
    from sklearn.pipeline import make_pipeline

    from bemkl.evaluation import cross_predict

    sources, settings = take_sources(options), take_settings(options)
    gathered = read_training(sources, settings.task)
    steps = [*preparation(sources, settings.bank, gathered.X), settings.estimator(gathered.task, gathered.X)]
    model = make_pipeline(*steps)
    with progress("folds", folds) as advance:
        seed = settings.parameters["random_state"]
        held_out = cross_predict(model, gathered.X, gathered.y, n_folds=folds, seed=seed, advance=advance)
    overall, by_fold = held_out.scores(), held_out.scores_by_fold()
    rows = [
        {"score": name, "all samples": value} | spread([one[name] for one in by_fold])
        for name, value in overall.items()
    ]
    if as_json:
        facts = {"task": gathered.task, "n_samples": len(gathered.names), "scores": overall, "folds": by_fold}
        print_json(facts | {"left_out": gathered.matched.everything_left_out()})
    else:
        print_table(f"{len(gathered.names)} samples, {folds} folds", rows)


def spread(values: list[float]) -> dict[str, float]:
    """Return mean and standard deviation over folds."""
    import numpy as np

    return {"mean of folds": float(np.mean(values)), "deviation": float(np.std(values, ddof=1))}
