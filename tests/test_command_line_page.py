"""Every command of docs/command_line.md gives what the page says."""

import re
import runpy
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bemkl.commands.main import program

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "command_line.md"


def commands():
    """Yield each command with the lines that should follow it."""
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, expected = part.partition("\n")
            yield line, [text.rstrip() for text in expected.splitlines()]


def agree(expected, found):
    """Compare lines; three dots alone stand for any lines."""
    pattern = "\n".join(".*?" if line == "..." else re.escape(line) for line in expected)
    return re.fullmatch(pattern, "\n".join(found), re.S) is not None


def test_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(commands())
    assert len(found) >= 9
    for line, expected in found:
        name, *arguments = line.split()
        if name == "python":
            monkeypatch.setattr(sys, "argv", arguments)
            runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
            continue
        result = CliRunner().invoke(program, arguments, prog_name="bemkl")
        assert result.exit_code == (2 if expected[0].startswith("Error") else 0)
        shown = [text.rstrip() for text in result.output.splitlines()]
        if not agree(expected, shown):
            pytest.fail(f"$ {line}\n" + "\n".join(shown))
