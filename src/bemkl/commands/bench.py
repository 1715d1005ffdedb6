"""`bemkl bench`: the benchmarks of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from bemkl.files import InputError


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """
    Measure speed beside other packages.

    Runs benchmarks/bench.py of a checkout with the given arguments; --help lists them. Other packages are installed
    into environments of their own.
    """
    places = [folder / "benchmarks" / "bench.py" for folder in (Path.cwd(), Path(__file__).parents[3])]
    found = [place for place in places if place.is_file()]
    if not found:
        raise InputError(
            "The benchmarks are not part of the installed package.", "Run the command in a checkout of the project."
        )
    sys.exit(subprocess.run([sys.executable, str(found[0]), *arguments], check=False).returncode)
