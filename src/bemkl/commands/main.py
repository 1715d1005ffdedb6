"""The command `bemkl`, and what all its commands have in common."""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any

import click

from bemkl import __version__
from bemkl.datasets import DatasetNotFound
from bemkl.exceptions import ConvergenceWarning, ModelFileError

_COMMANDS = {
    "fit": "Fit a model to samples in files, and save it.",
    "predict": "Predict samples in files.",
    "weights": "Show which kernels matter, and how sure that is.",
    "evaluate": "Score a model by cross-validation.",
    "compare": "Compare with single views, all columns together and the mean kernel, on the same folds.",
    "explain": "Show what each kernel contributes to predictions.",
    "report": "Write a page about a model.",
    "experiment": "Repeat the paper's experiments, and ours.",
    "bench": "Measure speed beside other packages.",
    "completion": "Print a script that completes commands and options in a shell.",
}


_PATHS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


class _Program(click.Group):
    """Commands that are loaded when they are wanted, and whose mistakes end with a message instead of a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Load a command."""
        if name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"bemkl.commands.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and explain what it refuses."""
        try:
            with warnings.catch_warnings():
                # What an interrupt leaves of a fit is no result.
                warnings.filterwarnings("error", message="the fit was interrupted", category=ConvergenceWarning)
                warnings.showwarning = _show
                return super().invoke(ctx)
        except ConvergenceWarning as error:
            raise click.Abort from error
        except (ValueError, DatasetNotFound, ModelFileError, *_PATHS) as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            raise _Refused(_in_two_lines(str(error))) from error


class _Refused(click.ClickException):
    """Something in the input that a sentence can explain; scripts see the exit code 2."""

    exit_code = 2


def _in_two_lines(message: str) -> str:
    """Put what is wrong on the first line, and what to do on the second."""
    if "\n" in message:
        return message
    what, *advice = re.split(r"(?<=[.?]) (?=[A-Z\"'])", message, maxsplit=1)
    return "\n".join([what, *(advice or ["See docs/command_line.md, or bemkl --debug for the traceback."])])


def _show(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as a sentence, without the line of code."""
    click.echo(f"Warning: {message}", err=True)


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bemkl")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def program(debug: bool) -> None:
    """Bayesian efficient multiple kernel learning."""


def main() -> None:
    """Run the command line, and end the process."""
    sys.exit(program.main(prog_name="bemkl"))
