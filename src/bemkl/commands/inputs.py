"""Options that name files, the same for all commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bemkl.files import Sources

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
