"""Names that users choose by are entered once, and are everywhere the same."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from bemkl import BEMKLClassifier, BEMKLMultiTask, BEMKLRegressor, kernels, load_model, save_model
from bemkl.commands.settings import MODEL_OPTIONS, Settings
from bemkl.exceptions import ModelFileError
from bemkl.registry import (
    BANKS,
    FUNCTION_PRIORS,
    LIKELIHOODS,
    MULTICLASS,
    POOLED_WEIGHTS,
    POSTERIORS,
    WEIGHTS,
    find,
)

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("known", [BANKS, WEIGHTS, POOLED_WEIGHTS, LIKELIHOODS, MULTICLASS])
def test_every_name_stands_for_something(known):
    for name in known:
        assert callable(find("x", name, known))


@pytest.mark.parametrize("estimator", [BEMKLClassifier, BEMKLRegressor, BEMKLMultiTask])
def test_estimators_name_them(estimator):
    choices = {"weights": WEIGHTS, "multiclass": MULTICLASS, "posterior": POSTERIORS}
    for parameter, known in (choices | {"function_prior": {**FUNCTION_PRIORS, "evidence": ""}}).items():
        if parameter in inspect.signature(estimator).parameters:
            line = re.search(rf"^    {parameter} : (.*)$", estimator.__doc__, re.MULTILINE)[1]
            assert re.findall(r'"(\w+)"', line) == list(known)


def test_the_command_line_offers_them():
    choices = {option.name: list(option.type.choices) for option in options() if hasattr(option.type, "choices")}
    assert choices["bank"] == list(BANKS)
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


@pytest.fixture
def toys(monkeypatch):
    """Register plug-ins that are no part of the package."""
    monkeypatch.setitem(BANKS, "toy", "toy_plug_ins:bank")
    monkeypatch.setitem(WEIGHTS, "toy", "toy_plug_ins:family")
    monkeypatch.setitem(MULTICLASS, "toy", "toy_plug_ins:way")


def test_a_registered_bank_has_a_name(toys):
    assert "toy" in kernels.BANKS
    assert kernels.named_bank("toy", np.eye(2)).fit_transform(np.eye(2)).shape == (2, 2, 1)
    assert Settings("toy", None, {}, {}, {}).estimator("regression", np.eye(2)).kernels.specs[0].kernel == "linear"


@pytest.fixture
def toy_file(toys, tmp_path):
    """Return the file of a model with registered plug-ins, and the model."""
    X, y = load_iris(return_X_y=True)
    model = BEMKLClassifier(weights="toy", multiclass="toy", tol=1e-2).fit(X[::3], y[::3])
    save_model(model, tmp_path / "toy.skops")
    return tmp_path / "toy.skops", model, X


def test_a_registered_family_and_likelihood_are_fitted_saved_and_loaded(toy_file):
    path, model, X = toy_file
    assert type(model.posterior_.weights).__name__ == "ToyWeights"
    again = load_model(path)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.posterior_.weights.notes, 1.0)


def test_what_is_not_registered_is_refused(toy_file, monkeypatch):
    path, model, _ = toy_file
    monkeypatch.delitem(MULTICLASS, "toy")
    monkeypatch.delitem(WEIGHTS, "toy")
    with pytest.raises(ModelFileError, match=r"refers to toy_plug_ins.ToyLikelihood, toy_plug_ins.ToyWeights, which"):
        load_model(path)
    with pytest.raises(ValueError, match="expected a Likelihood, got a ToyLikelihood"):
        save_model(model, path)


def test_registered_classes_are_held_to_their_shapes(toy_file):
    path, model, _ = toy_file
    object.__setattr__(model.posterior_.weights, "notes", np.ones(len(model.kernel_names_) + 1))
    with pytest.raises(ValueError, match=r"weights \(ToyWeights\).notes: expected shape"):
        save_model(model, path)


def test_registered_classes_stand_where_they_belong(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = BEMKLClassifier(weights="spike_slab", max_iter=1, tol=None).fit(X[::3], y[::3])
    object.__setattr__(model._fitted[0], "likelihood", model.posterior_.weights)
    with pytest.raises(ValueError, match="expected a Likelihood, got a SpikeSlabWeights"):
        save_model(model, tmp_path / "model.skops")
