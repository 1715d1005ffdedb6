"""Names that users choose by are entered once, and are everywhere the same."""

import inspect
import re
from pathlib import Path

import pytest

from bemkl import BEMKLClassifier, BEMKLMultiTask, BEMKLRegressor
from bemkl.commands.settings import MODEL_OPTIONS
from bemkl.registry import MULTICLASS, WEIGHTS, find

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("known", [WEIGHTS, MULTICLASS])
def test_every_name_stands_for_something(known):
    for name in known:
        assert callable(find("x", name, known))


@pytest.mark.parametrize("estimator", [BEMKLClassifier, BEMKLRegressor, BEMKLMultiTask])
def test_estimators_name_them(estimator):
    for parameter, known in (("weights", WEIGHTS), ("multiclass", MULTICLASS)):
        if parameter in inspect.signature(estimator).parameters:
            line = re.search(rf"^    {parameter} : (.*)$", estimator.__doc__, re.MULTILINE)[1]
            assert re.findall(r'"(\w+)"', line) == list(known)


def test_the_command_line_offers_them():
    choices = {option.name: list(option.type.choices) for option in options() if hasattr(option.type, "choices")}
    assert choices["weights"] == list(WEIGHTS)
    assert choices["multiclass"] == list(MULTICLASS)


def options():
    """Return the options of the model as click makes them."""

    def command():
        pass

    for option in MODEL_OPTIONS:
        option(command)
    return command.__click_params__


@pytest.mark.parametrize("name", [*WEIGHTS, *MULTICLASS])
def test_the_documentation_speaks_of_them(name):
    assert any(f'"{name}"' in page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize("value", ["other", 3, None])
def test_other_names_are_refused(value):
    with pytest.raises(ValueError, match=r"weights: expected one of free, nonnegative, .*; got"):
        find("weights", value, WEIGHTS)
