"""What commands take in: options that name files, samples for training and for a model, and models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bemkl.commands.output import say

if TYPE_CHECKING:
    from bemkl.files import Gathered, Sources

_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}

Option = Callable[[Any], Any]
_NAMES = ("data", "views", "kernels", "target", "id_column", "delimiters", "distances", "repair", "keep_incomplete")


FILE_OPTIONS = [
    click.option("--data", type=click.Path(path_type=Path), help="One table; its columns are features."),
    click.option("--view", "views", multiple=True, metavar="NAME=FILE", help="A table that is a view; repeatable."),
    click.option(
        "--kernel", "kernels", multiple=True, metavar="[NAME=]FILE[:VARIABLE]", help="A kernel matrix; repeatable."
    ),
    click.option("--target", metavar="FILE[:COLUMN]", help="What is to be predicted."),
    click.option("--id", "id_column", metavar="COLUMN", help="Column to match rows by, instead of the first one."),
    click.option(
        "--delimiter",
        "delimiters",
        multiple=True,
        metavar="[NAME=]SIGN",
        help="What is between cells of text files: of all, or of a view, a kernel or the target; repeatable.",
    ),
    click.option("--distances", is_flag=True, help="Matrices are distances d; kernels are exp(-d / mean d)."),
    click.option("--repair", is_flag=True, help="Make matrices symmetric, and set negative eigenvalues to zero."),
    click.option("--keep-incomplete", is_flag=True, help="Keep samples that lack some of the views."),
]
"""The options, for `with_options`."""

model_argument = click.argument("model_path", metavar="MODEL.skops", type=click.Path(path_type=Path))
"""The argument that names a model."""


def with_options(*options: Option) -> Option:
    """Add several options to a command."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def take_sources(options: dict[str, Any]) -> Sources:
    """Take the options that name files out of those of a command."""
    from bemkl.files import Sources

    given = {name: options.pop(name) for name in _NAMES}
    given["views"] = _named_paths(given["views"])
    given["kernels"] = tuple(map(_kernel, given["kernels"]))
    given["delimiters"] = dict(map(_delimiter, given["delimiters"]))
    return Sources(**given)


def _delimiter(text: str) -> tuple[str, str]:
    """Divide what says a delimiter into the name of a file and the sign."""
    name, equals, sign = text.rpartition("=")
    name, sign = (name, sign) if equals and sign else ("", text)
    return name, _DELIMITERS.get(sign, sign)


def _named_paths(views: tuple[str, ...]) -> dict[str, Path]:
    from bemkl.files import InputError

    named: dict[str, Path] = {}
    for view in views:
        name, equals, path = view.partition("=")
        if not (name and equals and path):
            raise InputError(f"--view {view}: a view needs a name.", "Write --view genes=genes.csv.")
        if name in named:
            raise InputError(f"--view {view}: there is another view {name!r}.", "Give each view its own name.")
        named[name] = Path(path)
    return named


def _kernel(text: str) -> tuple[str | None, Path, str | None]:
    """Divide what names a matrix into name, file and variable; a file may have = and : in its name."""
    if Path(text).is_file():
        return None, Path(text), None
    name, equals, rest = text.partition("=")
    name, rest = (name, rest) if equals else ("", text)
    if not Path(rest).is_file() and ":" in rest:
        path, _, variable = rest.rpartition(":")
        return name or None, Path(path), variable
    return name or None, Path(rest), None


def read_training(sources: Sources, task: str | None) -> Gathered:
    """Read training samples, and say what did not match and what the task is."""
    from bemkl.files import training_samples

    gathered = training_samples(sources, task)
    say(*gathered.matched.sentences())
    say(f"{gathered.task.capitalize()}, {f'because {gathered.reason}' if gathered.reason else 'as you said'}.")
    return gathered


def preparation(sources: Sources, bank: str, X: Any) -> list[Any]:
    """Return what has to be done to samples from files before an estimator takes them."""
    from bemkl.files import KernelRepair, Mixed, MixedKernels
    from bemkl.kernels import KernelStack, named_bank

    if not isinstance(X, Mixed | KernelStack):
        return []
    repair = KernelRepair(distances=sources.distances, repair=sources.repair)
    return [MixedKernels(named_bank(bank, X.tables), repair) if isinstance(X, Mixed) else repair]


def open_model(path: Path) -> Any:
    """Load a model."""
    from bemkl.files import InputError, refuse_missing
    from bemkl.persistence import load_model

    refuse_missing(path, "Fit a model first: bemkl fit ... -o model.skops.")
    model = load_model(path)
    if not hasattr(model, "kernel_names_") or not hasattr(model, "contributions"):
        raise InputError(f"{path}: holds a {type(model).__name__}.", "Expected a classifier or regressor of bemkl.")
    return model


def read_for(model: Any, sources: Sources) -> Gathered:
    """Read samples for a model, and say what did not match."""
    from sklearn.base import is_classifier

    from bemkl.files import InputError, Recipe, new_samples

    recipe = getattr(model, "files_", None)
    if not isinstance(recipe, Recipe):
        raise InputError(
            "The model was not fitted by `bemkl fit`: it does not know which columns of which files it takes.",
            "Load it in Python with bemkl.load_model, and call its predict.",
        )
    classes = model.classes_ if is_classifier(model) and len(recipe.targets) == 1 else None
    gathered = new_samples(sources, recipe, "classification" if is_classifier(model) else "regression", classes)
    say(*gathered.matched.sentences())
    return gathered
