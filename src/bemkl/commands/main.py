"""The command `bemkl`, and what all its commands have in common."""

from __future__ import annotations

import sys
from typing import Any

import click

from bemkl import __version__
from bemkl.commands.experiment import experiment
from bemkl.datasets import DatasetNotFound


class _Program(click.Group):
    """A group of commands whose mistakes end with a message instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and explain what it refuses."""
        try:
            return super().invoke(ctx)
        except (ValueError, DatasetNotFound, OSError) as error:
            if ctx.params.get("debug"):
                raise
            raise _Refused(str(error)) from error


class _Refused(click.ClickException):
    """Something in the input that a sentence can explain; scripts see the exit code 2."""

    exit_code = 2


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="bemkl")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def program(debug: bool) -> None:
    """Bayesian efficient multiple kernel learning."""


program.add_command(experiment)


def main() -> None:
    """Run the command line, and end the process."""
    sys.exit(program.main(prog_name="bemkl"))
