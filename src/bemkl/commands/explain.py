"""`bemkl explain`: what each kernel contributes to predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bemkl.commands.inputs import FILE_OPTIONS, model_argument, open_model, read_for, take_sources, with_options
from bemkl.commands.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from bemkl.arrays import Array


@click.command()
@model_argument
@with_options(*FILE_OPTIONS)
@click.option(
    "--row", "rows", multiple=True, metavar="ID", help="Explain this sample; repeatable. The first without it."
)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Kernels to show by name.")
@json_option
def explain(model_path: Path, rows: tuple[str, ...], top: int, as_json: bool, **options: Any) -> None:
    """
    Show what each kernel contributes to predictions.

    Contributions and the intercept sum to the decision of a classifier, or to the prediction of a regression.
    """
    import numpy as np

    from bemkl.files import InputError, listed

    model = open_model(model_path)
    gathered = read_for(model, take_sources(options))
    wanted = list(rows) or gathered.names[:1]
    unknown = [name for name in wanted if name not in gathered.names]
    if unknown:
        raise InputError(f"There is no sample {listed(unknown)}.", f"The samples are {listed(gathered.names)}.")
    places = np.isin(gathered.names, wanted)
    chosen = gathered.take(places)
    contributions = model.contributions(chosen.X)
    contributions = contributions[..., None] if contributions.ndim == 2 else contributions
    outputs = _outputs(model, chosen.recipe.targets, contributions.shape[2])
    explained = [
        _explained(model, name, output, parts[:, k], float(model.intercept_[k]), top)
        for name, parts in zip(chosen.names, contributions, strict=True)
        for k, output in enumerate(outputs)
    ]
    explained.sort(key=lambda one: wanted.index(one["id"]))
    if as_json:
        print_json(explained)
        return
    for one in explained:
        title = f"{one['id']}, {one['output']}: {one['total']:.4g}"
        print_table(title, one["contributions"])


def _outputs(model: Any, targets: list[str], n_outputs: int) -> list[str]:
    """Name the decisions or predictions."""
    from sklearn.base import is_classifier

    if not is_classifier(model) or len(targets) > 1:
        return targets
    if n_outputs == 1:
        return [f"{targets[0]} = {model.classes_[1]}"]
    return [f"{targets[0]} = {label}" for label in model.classes_]


def _explained(model: Any, name: str, output: str, parts: Array, intercept: float, top: int) -> dict[str, Any]:
    """Name the largest contributions, and sum up the rest."""
    import numpy as np

    order = np.argsort(-np.abs(parts), kind="stable")
    named = [(model.kernel_names_[m], float(parts[m])) for m in order[:top]]
    rest = order[top:]
    if len(rest):
        named.append((f"the other {len(rest)} kernels", float(parts[rest].sum())))
    named.append(("intercept", intercept))
    contributions = [{"kernel": kernel, "contribution": value} for kernel, value in named]
    return {"id": name, "output": output, "total": float(parts.sum() + intercept), "contributions": contributions}
