"""`bemkl predict`: predictions with their probabilities or intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bemkl.commands.inputs import FILE_OPTIONS, take_sources, with_options
from bemkl.commands.models import model_argument, open_model, read_for
from bemkl.commands.output import json_option, print_csv, print_json, save_csv
from bemkl.commands.streams import say


@click.command()
@model_argument
@with_options(*FILE_OPTIONS)
@click.option("--coverage", type=click.FloatRange(0.0, 1.0, max_open=True), default=0.95, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE.csv", help="Instead of printing.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def predict(model_path: Path, coverage: float, output: Path | None, force: bool, as_json: bool, **options: Any) -> None:
    """
    Predict samples in files.

    Prints CSV: id, prediction, and the probability of each class or the standard deviation and an interval.
    """
    from sklearn.base import is_classifier

    from bemkl.files import refuse_output

    sources = take_sources(options)
    if output is not None:
        refuse_output(output, force=force, inputs=[*sources.paths, model_path])
    model = open_model(model_path)
    gathered = read_for(model, sources)
    targets = gathered.recipe.targets
    rows = (
        _classes(model, gathered.X, targets) if is_classifier(model) else _numbers(model, gathered.X, targets, coverage)
    )
    table = [{"id": name} | row for name, row in zip(gathered.names, rows, strict=True)]
    if output is not None:
        save_csv(output, table)
        say(f"{len(table)} predictions in {output}.")
    if as_json:
        print_json(table)
    elif output is None:
        print_csv(table)


def _classes(model: Any, X: Any, targets: list[str]) -> list[dict[str, Any]]:
    """Return labels and probabilities."""
    predicted, probability = model.predict(X), model.predict_proba(X)
    if predicted.ndim == 2:
        named = [(targets[k], f"probability_{targets[k]}") for k in range(len(targets))]
        return [
            {key: value for k, names in enumerate(named) for key, value in zip(names, (labels[k], p[k]), strict=True)}
            for labels, p in zip(predicted.tolist(), probability.tolist(), strict=True)
        ]
    names = [f"probability_{label}" for label in model.classes_]
    return [
        {targets[0]: label} | dict(zip(names, p, strict=True))
        for label, p in zip(predicted.tolist(), probability.tolist(), strict=True)
    ]


def _numbers(model: Any, X: Any, targets: list[str], coverage: float) -> list[dict[str, Any]]:
    """Return means, deviations and intervals."""
    import numpy as np

    from bemkl.files import InputError

    mean, deviation = model.predict(X, return_std=True)
    low, high = model.predict_interval(X, coverage=coverage)
    columns = [np.reshape(values, (len(mean), -1)) for values in (mean, deviation, low, high)]
    endings = ("", "_std", "_low", "_high")
    names = [f"{target}{ending}" for target in targets for ending in endings]
    if len(set(names)) < len(names):
        raise InputError(
            f"The targets {', '.join(targets)} give two columns of one name.", "Rename a target, and fit again."
        )
    rows: list[dict[str, Any]] = [{} for _ in mean]
    for place, target in enumerate(targets):
        for ending, values in zip(endings, columns, strict=True):
            for row, value in zip(rows, values[:, place].tolist(), strict=True):
                row[f"{target}{ending}"] = value
    return rows
