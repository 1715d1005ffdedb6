"""What a release says of itself agrees: versions, and the Pythons that it is tested with."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_one_version_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.M)[1] == PROJECT["version"]
    assert re.search(r"^## (\S+)", changelog, re.M)[1] == PROJECT["version"]


def test_every_python_that_is_promised_is_tested():
    promised = [version for line in PROJECT["classifiers"] if (version := line.rpartition(":: ")[2]).startswith("3.")]
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    tested = re.search(r"python: \[(.+)\]", text)[1]
    assert re.findall(r"3\.\d+", tested) == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / ".pre-commit-config.yaml"], ids=lambda path: path.name)
def test_files_of_services_can_be_read(path):
    assert yaml.safe_load(path.read_text(encoding="utf-8")).keys() >= ({"jobs"} if path in WORKFLOWS else {"repos"})


def test_publishing_needs_no_secret():
    texts = {path.stem: path.read_text(encoding="utf-8") for path in WORKFLOWS}
    assert sorted(texts) == ["docs", "release", "tests"]
    assert not any(re.search(r"secrets\.\w|password", text) for text in texts.values())
    assert [name for name, text in texts.items() if "id-token: write" in text] == ["release"]
    for action in re.findall(r"uses: (\S+)", "".join(texts.values())):
        assert re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", action)
