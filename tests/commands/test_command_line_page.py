"""Every command of the documentation runs, and gives what the page says."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from command_line import write

from bemkl.commands.program import program

ROOT = Path(__file__).parents[2]


def commands(page):
    """Yield each command of a page with the lines that should follow it."""
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, expected = part.partition("\n")
            yield line, [text.rstrip() for text in expected.splitlines()]


def agree(expected, found):
    """Compare lines; three dots alone stand for any lines."""
    pattern = "\n".join(".*?" if line == "..." else re.escape(line) for line in expected)
    return re.fullmatch(pattern, "\n".join(found), re.S) is not None


def run(line):
    return CliRunner().invoke(program, shlex.split(line, comments=True)[1:], prog_name="bemkl")


def test_the_pages_on_the_command_line_and_the_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(commands(ROOT / "docs" / "command_line.md"))
    assert len(found) >= 9
    for line, expected in found:
        if line.startswith("python"):
            monkeypatch.setattr(sys, "argv", line.split()[1:])
            runpy.run_path(str(ROOT / line.split()[1]), run_name="__main__")
            continue
        result = run(line)
        assert result.exit_code == (2 if expected[0].startswith("Error") else 0)
        shown = [text.rstrip() for text in result.output.splitlines()]
        if not agree(expected, shown):
            pytest.fail(f"$ {line}\n" + "\n".join(shown))
    ((line, _),) = commands(ROOT / "docs" / "report.md")
    assert run(f"{line} --force").exit_code == 0


def test_the_commands_of_the_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    tables = {"genes": rng.normal(size=(30, 3)), "clinic": rng.normal(size=(30, 2))}
    for name, values in tables.items():
        rows = [[f"p{i}", *row] for i, row in enumerate(values)]
        write(Path(f"{name}.csv"), ["id", *(f"{name}{j}" for j in range(values.shape[1]))], rows)
    status = np.where(tables["genes"][:, 0] > 0.0, "ill", "well")
    write(Path("labels.csv"), ["id", "status"], [[f"p{i}", label] for i, label in enumerate(status)])
    lines = re.findall(r"^bemkl .*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert len(lines) == 3
    for line in lines:
        result = run(line)
        assert result.exit_code == 0, result.output
    assert Path("model.skops").exists()
    assert Path("report.html").exists()
