"""`bemkl bench`: the benchmarks of a checkout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click

from bemkl.commands.output import json_option, print_json

_SCRIPT, _RESULTS = Path("benchmarks", "bench.py"), Path("benchmarks", "results")


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.option("--output", type=click.Path(path_type=Path), help="Folder for the results.")
@json_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(output: Path | None, as_json: bool, arguments: tuple[str, ...]) -> None:
    """
    Measure speed beside other packages.

    Runs benchmarks/bench.py of a checkout with the given arguments; --help lists them. Other packages are installed
    into environments of their own.
    """
    from bemkl.files import InputError

    found = [folder for folder in (Path.cwd(), Path(__file__).parents[3]) if (folder / _SCRIPT).is_file()]
    if not found:
        raise InputError(
            "The benchmarks are not part of the installed package.", "Run the command in a checkout of the project."
        )
    folder = output or found[0] / _RESULTS
    command = [sys.executable, str(found[0] / _SCRIPT), *arguments, "--output", str(folder)]
    # Tables for people are no part of JSON.
    done = subprocess.run(command, check=False, stdout=sys.stderr if as_json else None)
    if as_json and done.returncode == 0:
        lines = (folder / "bench.jsonl").read_text(encoding="utf-8").splitlines()
        print_json([json.loads(line) for line in lines])
    # What a signal ended has a negative code, which shells write as 128 and the signal.
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
