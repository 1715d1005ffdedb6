"""`bemkl completion`: commands and options at the press of a key."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from bemkl.commands.output import write_result


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """
    Print a script that completes commands and options in a shell.

    For bash, put this into ~/.bashrc: eval "$(bemkl completion bash)"
    """
    found = get_completion_class(shell)
    assert found is not None
    program = ctx.find_root().command
    write_result(found(program, {}, "bemkl", "_BEMKL_COMPLETE").source() + "\n")
