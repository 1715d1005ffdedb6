"""The commands of `bemkl`, and how all of them end."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from bemkl.commands.main import INTERRUPTED
from bemkl.commands.output import end_result, flush_result, say
from bemkl.commands.refusals import refusal

_COMMANDS = {
    "fit": "Fit a model to samples in files, and save it.",
    "predict": "Predict samples in files.",
    "weights": "Show which kernels matter, and how sure that is.",
    "evaluate": "Score a model by cross-validation.",
    "compare": "Compare with single views, all columns together and the mean kernel, on the same folds.",
    "explain": "Show what each kernel contributes to predictions.",
    "report": "Write a page about a model.",
    "completion": "Print a script that completes commands and options in a shell.",
}
_INTERRUPT = "the fit was interrupted"


class _PastClick(Exception):  # noqa: N818 - it carries an error, and is none itself
    """An error of the system on its way past click, which would end a closed pipe as a failure."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


class _Program(click.Group):
    """Commands that are loaded when they are wanted, and whose errors end with two lines instead of a traceback."""

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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the help to those who ask for nothing."""
        return super().parse_args(ctx, args or ["--help"])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without loading any."""
        named = [CompletionItem(name, help=text) for name, text in _COMMANDS.items() if name.startswith(incomplete)]
        return named + click.Command.shell_complete(self, ctx, incomplete)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the options, and print help and version."""
        with _past_click():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _past_click(), _interrupts(), _traceback(ctx.params["debug"]), warnings.catch_warnings():
            # What an interrupt leaves of a fit is no result.
            warnings.filterwarnings("error", message=_INTERRUPT)
            warnings.showwarning = _show
            return super().invoke(ctx)

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the program, and end with an exit code that says how it went."""
        try:
            exit_code = super().main(*arguments, **options | {"standalone_mode": False}) or 0
            flush_result()
        except click.Abort:
            say("Aborted!")
            exit_code = INTERRUPTED
        except Exception as error:
            refused = refusal(error.error if isinstance(error, _PastClick) else error)
            say(*refused.lines)
            exit_code = refused.exit_code
            end_result()
        sys.exit(exit_code)


@contextmanager
def _past_click() -> Iterator[None]:
    """Carry errors of the system past click."""
    try:
        yield
    except OSError as error:
        raise _PastClick(error) from error


@contextmanager
def _interrupts() -> Iterator[None]:
    """End a command that was interrupted, also while it fitted, which only warns."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.Abort from None
    except Warning as warning:
        if not str(warning).startswith(_INTERRUPT):
            raise
        raise click.Abort from None


@contextmanager
def _traceback(wanted: bool) -> Iterator[None]:
    """Print the traceback of an error, if the user asked for it."""
    try:
        yield
    except (click.ClickException, click.Abort, click.exceptions.Exit):
        raise
    except Exception:
        if wanted:
            say(*traceback.format_exc().splitlines())
        raise


def _show(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as a sentence, without the line of code."""
    say(f"Warning: {message}")


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="bemkl", prog_name="bemkl")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def program(debug: bool) -> None:
    """Bayesian efficient multiple kernel learning."""
