"""The command line in a test: a command that runs, one that is refused, and a table to give it."""

import csv

from click.testing import CliRunner

from bemkl.commands.program import program

# How lines begin that a command says about its samples before it fails.
NOTES = ("Left out", "Classification, because", "Regression, because")


def run(*arguments, code=0):
    """Run a command in this process, and expect an exit code."""
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(program, words, prog_name="bemkl", catch_exceptions=False)
    assert result.exit_code == code, result.stderr
    return result


def refused(*arguments, code=2):
    """Run a command that is refused: it says two short lines and nothing else, but for notes on samples."""
    result = run(*arguments, code=code)
    lines = [line for line in result.stderr.splitlines() if not line.startswith(NOTES)]
    what, advice = [line for line in lines if ": no ids, rows are taken in the order" not in line]
    assert what.startswith("Error: ")
    assert advice
    assert max(len(what), len(advice)) <= 1000
    return result.stderr


def write(path, header, rows, delimiter=","):
    """Write a table, and return its path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    return path
