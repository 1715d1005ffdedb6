"""Running experiments: jobs, lines of results, resuming, and the report on them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.__main__ import program
from experiments.catalogue import EXPERIMENTS
from experiments.job import Experiment, Job, Outcome, Record
from experiments.pairing import ScoreTable
from experiments.records import Records
from experiments.report import write_report
from experiments.running import run_experiment
from experiments.tables import Section, Table, spread

ROOT = Path(__file__).parents[2]


def toy_jobs(replications):
    return [
        Job("toy", name, method, k) for k in range(replications) for name in ("a", "b") for method in ("one", "two")
    ]


def toy_run(job, data_home):
    if job.settings.get("fails"):
        raise RuntimeError("no luck")
    return Outcome({"accuracy": len(job.method) + 0.1 * job.replication}, 0.5, "checksum")


def toy_report(records):
    return [Section("Toy", "Some text.", Table(["n"], [[str(len(records))]]))]


TOY = Experiment("toy", "A toy", 2, toy_jobs, toy_run, toy_report)


def test_every_job_is_done_once(tmp_path):
    assert run_experiment(TOY, tmp_path) == []
    lines = (tmp_path / "toy.jsonl").read_text().splitlines()
    assert len(lines) == 8
    assert run_experiment(TOY, tmp_path) == []
    assert (tmp_path / "toy.jsonl").read_text().splitlines() == lines
    run_experiment(TOY, tmp_path, replications=3)
    assert len(Records(tmp_path, "toy").read()) == 12


def test_a_line_says_what_was_done_and_with_what(tmp_path):
    run_experiment(TOY, tmp_path, replications=1, data=["a"], methods=["two"])
    line = json.loads((tmp_path / "toy.jsonl").read_text())
    assert line["job"] == {"experiment": "toy", "data": "a", "method": "two", "replication": 0, "settings": {}}
    assert line["outcome"]["checksum"] == "checksum"
    assert line["outcome"]["seconds"] == 0.5
    assert line["versions"].keys() >= {"python", "bemkl", "numpy", "scipy", "scikit-learn"}


def test_two_processes_do_the_same_as_one(tmp_path):
    for n_jobs in (1, 2):
        run_experiment(TOY, tmp_path / str(n_jobs), n_jobs=n_jobs)
    one, two = ({r.job.key: r.outcome for r in Records(tmp_path / k, "toy").read()} for k in ("1", "2"))
    assert one == two


def test_a_run_that_was_killed_in_the_middle_of_a_line_is_resumed(tmp_path):
    run_experiment(TOY, tmp_path)
    path = tmp_path / "toy.jsonl"
    whole = path.read_text().splitlines(keepends=True)
    path.write_bytes("".join(whole[:5]).encode() + "…".encode()[:2])  # in the middle of a character, even
    assert len(Records(tmp_path, "toy").read()) == 5
    run_experiment(TOY, tmp_path)
    assert sorted(path.read_text().splitlines(keepends=True)) == sorted(whole)


def test_a_failure_is_reported_and_the_others_are_kept(tmp_path):
    bad = Job("toy", "a", "bad", 0, {"fails": True})
    experiment = Experiment("toy", "A toy", 1, lambda n: [bad, *toy_jobs(n)], toy_run, toy_report)
    (failure,) = run_experiment(experiment, tmp_path)
    assert failure.job == bad
    assert failure.reason == "RuntimeError: no luck"
    assert len(Records(tmp_path, "toy").read()) == 4


def test_unknown_names_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match=r"data: unknown c\. This experiment has a; b\."):
        run_experiment(TOY, tmp_path, data=["c"])
    with pytest.raises(ValueError, match=r"methods: unknown three"):
        run_experiment(TOY, tmp_path, methods=["three"])
    assert not list(tmp_path.iterdir())


def test_a_damaged_line_is_named(tmp_path):
    (tmp_path / "toy.jsonl").write_text('{"job": 1}\n')
    with pytest.raises(ValueError, match=r"toy\.jsonl, line 1: not a result"):
        Records(tmp_path, "toy").read()


def test_one_process_at_a_time_writes_results(tmp_path):
    with Records(tmp_path, "toy").claimed(), pytest.raises(ValueError, match=r"another process is writing toy\.jsonl"):
        run_experiment(TOY, tmp_path)


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="results: cannot write"):
        run_experiment(TOY, tmp_path / "file")


def test_results_of_other_settings_are_left_out(tmp_path):
    run_experiment(EXPERIMENTS["table1"], tmp_path, replications=1, data=["wdbc"], methods=["SVC, mean kernel"])
    path = tmp_path / "table1.jsonl"
    old = json.loads(path.read_text())
    old["job"]["settings"]["widths"] = "exp(-wd²)"
    old["job"]["method"] = "EasyMKL"
    path.write_text(path.read_text() + json.dumps(old) + "\n")
    write_report(tmp_path, ["table1"])
    (row,) = [line for line in (tmp_path / "report.md").read_text().splitlines() if line.startswith("| wdbc |")][:1]
    assert row.split("|")[7].strip() == "–"


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda known: known.name)
def test_jobs_of_every_experiment_are_different_and_survive_json(experiment):
    jobs = experiment.jobs(2)
    assert len({job.key for job in jobs}) == len(jobs)
    for job in jobs[:50]:
        record = Record(job, Outcome({}, 0.0, ""), {})
        assert Record.from_json(record.to_json()).job.key == job.key
        assert job.experiment == experiment.name


def score_table(**methods):
    return ScoreTable(
        [
            Record(Job("toy", "a", method, k), Outcome({"accuracy": value, "log_loss": value}, 0.0, ""), {})
            for method, values in methods.items()
            for k, value in enumerate(values)
        ]
    )


def test_bold_is_for_the_best_and_for_those_not_surely_worse():
    rng = np.random.default_rng(0)
    base = rng.normal(0.8, 0.01, size=20)
    scores = score_table(good=base, same=base + rng.normal(0.0, 0.02, size=20), bad=base - 0.1)
    bold = [cell.startswith("**") for cell in scores.cells("a", ["good", "same", "bad"], "accuracy", test_share=0.3)]
    assert bold == [True, True, False]
    assert score_table(one=[0.9], other=[0.8]).cells("a", ["one", "other"], "accuracy", test_share=0.3) == [
        "0.900",
        "0.800",
    ]
    bold = [cell.startswith("**") for cell in scores.cells("a", ["good", "bad"], "log_loss", test_share=0.3)]
    assert bold == [False, True]  # less is better


def test_methods_are_compared_on_common_splits_only():
    scores = score_table(long=[0.9, 0.8, 0.1], short=[0.8, 0.7])
    assert scores.probability_better("a", "long", "short", "accuracy", 0.3) == 1.0
    assert np.isnan(score_table(one=[0.9], other=[0.8]).probability_better("a", "one", "other", "accuracy", 0.3))


def test_a_method_without_results_has_a_dash():
    assert score_table(one=[0.9, 0.8]).cells("a", ["one", "none"], "accuracy", test_share=0.3)[1] == "–"
    assert spread([0.5]) == "0.50"
    assert spread([np.nan, 1.0]) == "–"


def test_the_command_line_runs_and_reports(tmp_path):
    results = ["--results", str(tmp_path)]
    arguments = ["table1", "--data", "wdbc", "--method", "SVC, mean kernel", "--replications", "1", *results]
    done = CliRunner().invoke(program, arguments)
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(program, ["report", "table1", *results])
    assert done.exit_code == 0, done.output
    assert "Table 1: training time" in done.output
    assert "## Table 1: training time" in (tmp_path / "report.md").read_text()


def test_mistakes_at_the_command_line_have_a_sentence_and_exit_code_two(tmp_path):
    for arguments, said in (
        (["table1", "--data", "moons", "--results", str(tmp_path)], "data: unknown moons"),
        (["table1", "--jobs", "many"], "is not a valid integer"),
        (["report", "--results", str(tmp_path / "none")], "has none of"),
        (["report", "table9"], "table9"),
    ):
        done = CliRunner().invoke(program, arguments)
        assert done.exit_code == 2
        assert said in done.output
        assert "Traceback" not in done.output
    assert not list(tmp_path.iterdir())


def test_data_that_cannot_be_had_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("BEMKL_DATA", raising=False)
    arguments = ["table5", "--replications", "2", "--method", "shared", "--results", str(tmp_path)]
    done = CliRunner().invoke(program, arguments)
    assert done.exit_code == 1
    assert done.output.count("DatasetNotFound") == 1
    assert not list(tmp_path.iterdir())


def test_every_experiment_can_be_made_and_those_of_the_documentation_exist():
    names = {*EXPERIMENTS, "report"}
    (made,) = re.findall(r"^EXPERIMENTS := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert sorted(made.split()) == sorted(names)
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    documented = re.findall(r"^make ([\w-]+)|^python -m experiments ([\w-]+)", text, re.M)
    assert len(documented) >= 6
    assert {one or other for one, other in documented} <= names
