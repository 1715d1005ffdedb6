"""`bemkl predict`: predictions with their probabilities or intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bemkl.commands.inputs import FILE_OPTIONS, model_argument, open_model, read_for, take_sources, with_options
from bemkl.commands.output import json_option, print_csv, print_json, refuse_csv, save_csv, say

_Column = tuple[str, Any]


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

    sources = take_sources(options)
    if output is not None:
        refuse_csv(output, force=force, inputs=[*sources.paths, model_path])
    model = open_model(model_path)
    gathered = read_for(model, sources)
    targets = gathered.recipe.targets
    found = (
        _classes(model, gathered.X, targets) if is_classifier(model) else _numbers(model, gathered.X, targets, coverage)
    )
    columns = {"id": gathered.names} | _refuse_same(found)
    table = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if output is not None:
        save_csv(output, table)
        say(f"{len(table)} predictions in {output}.")
    if as_json:
        print_json(table)
    elif output is None:
        print_csv(table)


def _classes(model: Any, X: Any, targets: list[str]) -> list[_Column]:
    """Return labels and probabilities."""
    predicted, probability = model.predict(X), model.predict_proba(X)
    if predicted.ndim == 1:
        columns = [(targets[0], predicted)]
        return columns + [(f"probability_{label}", p) for label, p in zip(model.classes_, probability.T, strict=True)]
    pairs = zip(targets, predicted.T, probability.T, strict=True)
    return [column for name, labels, p in pairs for column in ((name, labels), (f"probability_{name}", p))]


def _numbers(model: Any, X: Any, targets: list[str], coverage: float) -> list[_Column]:
    """Return means, deviations and intervals."""
    mean, deviation = model.predict(X, return_std=True)
    low, high = model.predict_interval(X, coverage=coverage)
    found = {"": mean, "_std": deviation, "_low": low, "_high": high}
    return [
        (f"{target}{ending}", values.reshape(len(mean), -1)[:, place])
        for place, target in enumerate(targets)
        for ending, values in found.items()
    ]


def _refuse_same(found: list[_Column]) -> dict[str, list[Any]]:
    """Return columns by their names, which have to be different."""
    from bemkl.files import InputError

    columns = {name: values.tolist() for name, values in found}
    if len(columns) < len(found) or "id" in columns:
        names = ", ".join(name for name, _ in found)
        raise InputError(
            f"Two columns of predictions would have one name: id, {names}.", "Rename a target, and fit again."
        )
    return columns
