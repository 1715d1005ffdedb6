"""The fuzzer finds nothing in 300 cases, and would find what it should."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest

from bemkl.kernels.specs import NAMED
from fuzz import api, arguments, commands, files, kernels, options, problems, records, refusals, session, shrink
from fuzz.judge import FaultError, judge_answers, judge_fit
from fuzz.outcomes import Outcome
from fuzz.running import Plan, Worker, run

PLAIN = {
    "seed": 0,
    "hostility": "moderate",
    "odd": [],
    "estimator": "BEMKLClassifier",
    "options": {"max_iter": "5", "tol": "None"},
    "bank": None,
    "source": "table",
    "parts": [{"name": None, "values": [[float(row), float(row % 3)] for row in range(12)], "form": "V"}],
    "queries": [{"parts": [{"name": None, "values": [[0.0, 0.0], [1.0, 1.0]], "form": "V"}], "first": True}],
    "target": {"values": [0, 1] * 6, "form": "V"},
    "extras": [],
}


def changed(case, **changes):
    return json.loads(json.dumps(case)) | changes


@pytest.mark.parametrize("first", range(0, 220, 20))
def test_estimators_give_a_sound_result_or_refuse(first):
    found = [api.judge(api.draw(seed)) for seed in range(first, first + 20)]
    assert not [outcome.as_dict() for outcome in found if not outcome.fine]


@pytest.mark.parametrize("first", range(0, 80, 10))
def test_commands_keep_what_they_promise_or_refuse(first):
    found = [commands.judge(commands.draw(seed)) for seed in range(first, first + 10)]
    assert not [outcome.as_dict() for outcome in found if not outcome.fine]


@pytest.mark.parametrize("draw", [problems.problem, files.command])
def test_a_seed_is_a_case_and_a_case_is_plain_data(draw):
    for seed in range(20):
        text = json.dumps(draw(seed))
        assert text == json.dumps(draw(seed))
        assert json.dumps(json.loads(text)) == text


def test_a_case_from_its_text_has_the_same_outcome():
    for seed in range(3):
        case = problems.problem(seed)
        assert api.judge(json.loads(json.dumps(case))).sort == api.judge(case).sort


def test_every_parameter_of_every_estimator_is_drawn():
    drawn = {name: set() for name in options.ESTIMATORS}
    for seed in range(300):
        case = problems.problem(seed)
        drawn[case["estimator"]] |= set(case["options"])
    for name, found in drawn.items():
        assert set(options.parameters(name)) == found - {"kernels"}, name
        assert not set(options.parameters(name)) - set(options.VALUES), name


def test_every_parameter_of_every_kernel_has_values():
    assert {name for kernel in NAMED for name in kernels.own_parameters(kernel)} <= set(kernels.PARAMETERS)


@pytest.mark.parametrize("name", ["fit", "predict", "evaluate", "compare", "weights", "explain", "report"])
def test_every_option_of_every_command_is_known(name):
    command = getattr(importlib.import_module(f"bemkl.commands.{name}"), name)
    known = {*arguments.MODEL, *arguments.OTHERS, *arguments.FILES, *arguments.FLAGS}
    assert {max(option.opts, key=len) for option in command.params if option.opts[0].startswith("-")} <= known


def judge_model(here):
    judge_fit(here)
    judge_answers(here)


@pytest.fixture
def fitted():
    """A sound model of a plain case, to be tampered with."""
    here = session.Session.of(PLAIN)
    here.ask(session.model_expression(PLAIN), "model")
    here.ask("model.fit(X, y)")
    judge_model(here)
    return here


def other_bounds(model):
    model.lower_bounds_[-1] = model.lower_bounds_[0] - 1.0
    model.lower_bound_ = model.lower_bounds_[-1]


def no_weight(model):
    model.kernel_weights_[0] = np.nan


def other_intercept(model):
    model.intercept_ = model.intercept_ + 1e-3


def larger_probabilities(model):
    true = model.predict_proba
    model.predict_proba = lambda X: np.clip(true(X) + 1e-6, 0.0, 1.0)


def other_labels(model):
    model.predict = lambda X: 1 - (model.decision_function(X) > 0.0)


def ranks(model):
    true = model.predict_proba
    model.predict_proba = lambda X: true(X)[:, ::-1] if len(X) > 2 else true(X)


@pytest.mark.parametrize(
    ("tamper", "what"),
    [
        (other_bounds, "the bound fell"),
        (no_weight, "kernel_weights_ not finite"),
        (other_intercept, "contributions and intercept_ do not sum"),
        (larger_probabilities, "probabilities do not sum to one"),
        (other_labels, "predict is not the largest decision"),
        (ranks, "depends on others"),
    ],
)
def test_the_judge_sees_what_is_wrong_with_a_model(fitted, tamper, what):
    tamper(fitted.names["model"])
    with pytest.raises(FaultError, match=what):
        judge_model(fitted)


def test_an_error_that_is_not_ours_is_a_finding():
    def kind(error):
        try:
            raise error
        except Exception as raised:
            return refusals.of_error(raised).kind

    assert kind(KeyError("X")) == "other error"
    assert kind(ValueError("X: expected a whole number of samples, got none.")) == "bare error"  # raised here
    assert api.judge(changed(PLAIN, options={"max_iter": "0"})).kind == "refusal"
    assert not refusals.is_sentence("X: operands could not be broadcast together with shapes (3,) (4,)")
    assert not refusals.is_sentence("X is wrong.")
    assert not refusals.is_sentence("could not convert string to float: 'a'. Pass y as numbers, please.")
    assert refusals.is_sentence("y: could not convert string to float: 'a'. Pass a number for each sample.")
    assert refusals.is_sentence("y: expected numbers, got text (could not convert string to float). Pass numbers.")


def test_a_warning_that_is_not_documented_is_a_finding():
    with refusals.recorded_warnings(lambda: "model.fit(X, y)") as found:
        np.array([1e300]) * np.array([1e300])
    ((finding, question),) = found
    assert finding.what == "RuntimeWarning: overflow encountered in multiply"
    assert question == "model.fit(X, y)"


def test_commands_are_judged_by_what_they_leave_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = {"files": {"a.csv": {}}, "runs": [["fit"]]}
    good = commands.Ended(2, "", "Error: a.csv: there are no rows.\nCheck the file.\n")
    commands._judge_refusal(case, good)
    for code, errors in [
        (1, good.errors),
        (2, ""),
        (2, "Error: a.csv: there are no rows.\n"),
        (2, good.errors + "\n".join("more")),
        (2, "Error: something is wrong.\nDo it in another way.\n"),
    ]:
        with pytest.raises(FaultError):
            commands._judge_refusal(case, commands.Ended(code, "", errors))
    with pytest.raises(FaultError, match="traceback"):
        commands._judge_words(commands.Ended(0, "", "Traceback (most recent call last):"))
    with pytest.raises(FaultError, match="not documented"):
        commands._judge_words(commands.Ended(0, "", "Warning: overflow encountered in matmul"))
    commands._judge_predictions("id,label,probability_a,probability_b\n1,a,0.6,0.4\n")
    with pytest.raises(FaultError, match="not finite"):
        commands._judge_predictions("id,y,y_std\n1,0.5,nan\n")


def test_a_case_becomes_small_and_shows_the_same():
    case = changed(PLAIN, options=PLAIN["options"] | {"kernel_prior": "'sparse'"}, extras=["twice"])

    def still(one):
        return "kernel_prior" in one["options"] and len(one["target"]["values"]) >= 3

    small = shrink.shrink(case, still, shrink.OF_PROBLEMS, seconds=20.0)
    assert small["options"] == {"kernel_prior": "'sparse'"}
    assert np.shape(small["parts"][0]["values"]) == (3, 1)
    assert not small["extras"]
    first = small["queries"][0]["parts"][0]["values"]
    assert first == small["parts"][0]["values"][: len(first)]
    assert api.judge(small).kind == "result"


def test_a_case_is_a_script_of_its_own():
    text = api.script(PLAIN, Outcome("api", 0, "result", question="model.predict_proba(new0)"))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 2
    assert "fuzz" not in text


def test_a_run_goes_on_where_it_was(tmp_path):
    plan = Plan("api", first=0, last=3, minutes=5.0, jobs=1, out=tmp_path / "record.jsonl")
    said = []
    run(plan, said.append)
    with plan.out.open("a") as file:
        file.write('{"harness": "api", "seed": 9, "ki')  # as a run leaves it that was killed
    run(Plan("api", first=2, last=5, minutes=5.0, jobs=1, out=plan.out), said.append)
    assert sorted(record["seed"] for record in records.read([plan.out])) == [0, 1, 2, 3, 4, 5]
    assert "4 cases" in said[0]
    assert "2 cases" in said[1]
    assert "6 cases" in records.summary(list(records.read([plan.out])))


def test_a_process_that_dies_is_recorded():
    worker = Worker("api")
    worker.give(7)
    worker.process.kill()
    assert json.loads(worker.take()) | {"what": ""} == {"harness": "api", "seed": 7, "kind": "died", "what": ""}
    worker.stop()
