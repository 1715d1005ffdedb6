"""The studies beyond the paper: jobs, splits and runs on small stand-ins, and pages from made-up results."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.kernel_ridge import KernelRidge

from bemkl import BEMKLRegressor
from bemkl.datasets import DataSet
from bemkl.evaluation.scores import label_scores
from experiments import datasets
from experiments.datasets.catalogue import ENTRIES
from experiments.job import Job, Outcome, Record
from experiments.studies import STUDIES, learning, splitting, write_pages
from experiments.studies.banks import TOGETHER, chosen_views, feature_bank
from experiments.studies.catalogue import ALL
from experiments.studies.findings import Findings
from experiments.studies.learning import choose_deviation, describe_views
from experiments.studies.plan import Split
from experiments.studies.ridge import RidgeByFolds
from experiments.studies.splitting import COMPLETE, PUBLISHED, WITHOUT
from experiments.studies.weights import ViewWeights


def stand_in(name, X, y, feature_names=(), train=None):
    """Return a small data set in the form of a real one."""
    return DataSet(name, X, y, feature_names, (), train, ENTRIES[name].kind, "checksum", "made up", "", "")


def digits(rng):
    y = np.repeat(np.arange(3), 10)
    return stand_in("mfeat", {view: rng.normal(size=(30, 3)) + y[:, None] for view in ALL["mfeat"].views}, y)


def tumours(rng):
    y = np.tile(["Basal", "Her2", "LumA"], 20)
    shift = np.tile([0.0, 1.0, 2.0], 20)[:, None]
    train = np.arange(60) < 45
    X = {view: rng.normal(size=(60, 4)) + shift for view in ALL["brca_tcga"].views}
    X["protein"][~train] = np.nan
    return stand_in("brca_tcga", X, y, train=train[None])


def cell_lines(rng):
    X = {"ms": np.exp(rng.normal(size=(30, 3))), "rppa": rng.normal(size=(30, 2))}
    y = np.column_stack([np.log(X["ms"][:, 0]), X["rppa"][:, 0], rng.normal(size=30)])
    y[0, 1] = np.nan
    return stand_in("nci60", X, y)


def music(rng):
    X = {"timbre": rng.normal(size=(60, 4)), "rhythm": rng.normal(size=(60, 2))}
    signals = np.column_stack([X["timbre"][:, 0], X["timbre"][:, 3], X["rhythm"][:, 1]])
    names = {"timbre": ("a_centroid", "a_mfcc_0", "a_mfcc_1", "a_flux"), "rhythm": ("bpm", "beat")}
    return stand_in("emotions", X, (signals > 0.0).astype(int), names)


def table(name, rng):
    names = [feature for feature in ALL[name].views if feature != TOGETHER]
    X = rng.normal(size=(40, len(names)))
    response = X[:, 0] + np.sin(2.0 * X[:, 1])
    return stand_in(name, X, np.column_stack([response, -response]) if name == "energy" else response, tuple(names))


@pytest.fixture
def stand_ins(monkeypatch):
    """Have small data in place of the real ones."""
    rng = np.random.default_rng(0)
    made = {"mfeat": digits(rng), "brca_tcga": tumours(rng), "nci60": cell_lines(rng), "emotions": music(rng)}
    made |= {name: table(name, rng) for name in ("autompg", "concrete", "energy", "yacht")}
    monkeypatch.setattr(datasets, "load", lambda name, data_home: made[name])
    monkeypatch.setattr(learning, "DEVIATIONS", (0.3,))
    monkeypatch.setattr(splitting, "TEST_PER_CLASS", 4)
    monkeypatch.setattr(splitting, "PER_CLASS", {"10 a class": 4, "20 a class": 6})
    return made


def made_up(name, *, ours=0.9, other=0.7, splits=4):
    """Return results in which ours and the others have given scores, with a little noise."""
    rng, records = np.random.default_rng(1), []
    for job in STUDIES.jobs(splits):
        if job.data == name:
            study, views = ALL[name], list(ALL[name].views)
            level = ours if job.method == "ours" else other
            scores = {score: level + 0.01 * rng.normal() for score in study.scores}
            details = {}
            if job.method == "ours":
                weights = 1.0 + np.arange(len(views)) + 0.1 * rng.normal(size=len(views))
                weights[0] = 0.01
                largest = np.eye(len(views))[-1]
                details = {"views": views, "weights": weights.tolist(), "deviations": [0.1] * len(views)}
                details |= {"largest": largest.tolist(), "errors": [1.0, 3.0], "errors_of_mean": [2.0, 2.0]}
            records.append(Record(job, Outcome(scores, 1.0, "checksum", details), {}))
    return records


def test_jobs_are_well_formed_and_different():
    jobs = STUDIES.jobs(3)
    assert len({job.key for job in jobs}) == len(jobs)
    assert {job.data for job in jobs} == set(ALL) <= set(ENTRIES)
    for job in jobs:
        assert job.experiment == STUDIES.name
        assert json.loads(job.key)["settings"] == job.settings
    replications = {(job.data, job.settings["scenario"], job.method): 0 for job in jobs}
    for job in jobs:
        replications[job.data, job.settings["scenario"], job.method] += 1
    assert all(number == (1 if scenario == PUBLISHED else 3) for (_, scenario, _), number in replications.items())


@pytest.mark.parametrize("name", ALL)
def test_every_method_gives_all_scores(name, stand_ins):
    scenario = ALL[name].scenarios[-1]
    # All views alone are the same method.
    alone = [method for method in scenario.methods if "only" in method]
    for method in (method for method in scenario.methods if method not in alone[1:]):
        settings = {"scenario": scenario.name} | scenario.methods[method]
        outcome = STUDIES.run(Job(STUDIES.name, name, method, 0, settings), None)
        assert set(ALL[name].scores) <= outcome.scores.keys()
        assert np.isfinite(list(outcome.scores.values())).all()
        assert outcome.checksum == "checksum"
        json.dumps(outcome.details, allow_nan=False)
        if method == "ours":
            assert outcome.details["views"] == list(ALL[name].views)
            assert min(outcome.details["deviations"]) > 0.0
            assert sum(outcome.details["largest"]) == pytest.approx(1.0, abs=1e-3)


def test_more_digits_contain_the_fewer_and_tests_are_the_same(stand_ins):
    few, more = (ALL["mfeat"].cut(stand_ins["mfeat"], f"{number} a class", 3) for number in (10, 20))
    assert len(few.y) == 12
    assert {tuple(row) for row in few.X["fou"]} < {tuple(row) for row in more.X["fou"]}
    assert_array_equal(few.X_test["pix"], more.X_test["pix"])
    assert not {tuple(row) for row in more.X["fou"]} & {tuple(row) for row in more.X_test["fou"]}


def test_tumours_lack_the_protein_view_where_they_should(stand_ins):
    cut = {name: ALL["brca_tcga"].cut(stand_ins["brca_tcga"], name, 0) for name in (PUBLISHED, COMPLETE, WITHOUT)}
    assert [np.isnan(cut[name].X_test["protein"]).all() for name in (PUBLISHED, COMPLETE, WITHOUT)] == [
        True,
        False,
        True,
    ]
    assert not any(np.isnan(split.X["protein"]).any() for split in cut.values())
    assert_array_equal(cut[COMPLETE].X["protein"], cut[WITHOUT].X["protein"])
    assert_array_equal(cut[COMPLETE].X_test["mrna"], cut[WITHOUT].X_test["mrna"])


def test_folds_of_cell_lines_meet_every_line_once(stand_ins):
    tested = [ALL["nci60"].cut(stand_ins["nci60"], "", fold).X_test["rppa"] for fold in range(5)]
    assert_array_equal(np.sort(np.vstack(tested), axis=0), np.sort(stand_ins["nci60"].X["rppa"], axis=0))


def test_joined_views_have_training_means_for_what_is_missing():
    split = Split({"a": np.array([[1.0], [3.0]]), "b": np.zeros((2, 1))}, np.zeros(2), {}, np.zeros(1))
    split.X_test.update({"a": np.array([[np.nan]]), "b": np.ones((1, 1))})
    assert_array_equal(chosen_views(split, {"joined": True}).X_test["all columns"], [[2.0, 1.0]])


def test_weight_of_a_view_is_that_of_the_sum_of_its_kernels():
    rng = np.random.default_rng(0)
    X = {"first": rng.normal(size=(30, 1)), "second": rng.normal(size=(30, 1))}
    model = BEMKLRegressor(feature_bank(list(X))).fit(X, np.sin(X["first"][:, 0]))
    found = describe_views(model, X)
    is_first = np.array([float(name.endswith(" on first")) for name in model.kernel_names_])
    moments = model.posterior_.weights.moments(0)
    variance = is_first @ np.asarray(moments.covariance) @ is_first
    position = found["views"].index("first")
    assert_allclose(found["weights"][position], is_first @ moments.mean, rtol=1e-4)
    assert_allclose(found["deviations"][position], np.sqrt(variance), rtol=1e-4)
    assert found["views"] == [TOGETHER, "first", "second"]
    assert_allclose(sum(found["shares"]), 1.0, rtol=1e-3)


def test_deviation_has_the_highest_density_on_the_folds():
    folds = [(np.arange(2), np.arange(2, 4))]
    assert choose_deviation(lambda deviation, *fold: -abs(deviation - 0.3), folds) == 0.3


def test_ridge_is_that_of_scikit_learn_with_a_deviation_of_its_folds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = 5.0 + 2.0 * X[:, 0] + 0.5 * rng.normal(size=60)
    K = X @ X.T
    model = RidgeByFolds([np.eye(60), K], y)
    mean, deviation = model.predict(K)
    direct = KernelRidge(alpha=model.penalty_, kernel="precomputed").fit(K, y - y.mean()).predict(K) + y.mean()
    assert model.chosen_ == 1
    assert_allclose(mean, direct, rtol=1e-8)
    assert 0.4 < deviation[0] < 0.7


def test_labels_that_all_samples_have_are_left_out_of_the_area():
    y = np.array([[1, 1], [0, 1]])
    scores = label_scores(y, np.array([[0.9, 0.9], [0.2, 0.6]]), np.array([[1.0, 1.0], [-1.0, -0.1]]))
    assert scores["macro_auc"] == 1.0
    assert scores["label_accuracy"] == 0.75


def test_weights_are_parts_of_their_sum():
    records = made_up("brca_tcga")
    weights = ViewWeights.from_records([r for r in records if r.job.method == "ours"][:4])
    assert_allclose(np.abs(weights.means).sum(axis=1), 1.0)
    assert [weights.views[view] for view in weights.order] == ["protein", "mirna", "mrna"]
    assert weights.n_sure == [0, 4, 4]
    assert ViewWeights.from_records([]) is None


def test_a_table_has_the_kernels_of_one_group_alone():
    names = [f"x{column}" for column in range(3)]
    every = feature_bank(names).fit_transform({name: np.arange(5.0)[:, None] for name in names}).names
    for group, count in ((TOGETHER, 5), ("x1", 3)):
        alone = feature_bank(names, [group]).fit_transform({name: np.arange(5.0)[:, None] for name in names}).names
        assert list(alone) == [name for name in every if name.endswith(f" on {group}")]
        assert len(alone) == count


@pytest.mark.parametrize(("ours", "other", "word"), [(0.9, 0.7, "better than"), (0.7, 0.9, "worse than")])
def test_sentences_follow_the_numbers(ours, other, word):
    (text,) = [section.text for section in STUDIES.report(made_up("yacht", ours=ours, other=other))]
    named = text[text.index(word) :]
    assert f"{word} `marginal, sum`" in text
    assert f"`only {TOGETHER}`, `only longitudinal_position`" in named
    assert "`only froude_number`, `ridge, linear on all`, `kernel ridge" in text
    assert "largest weight is that of froude_number" in text
    assert f"and not for {TOGETHER}" in text
    assert f"cover {100 * ours:.0f}" in text or "cover 89." in text or "cover 69." in text


def test_losses_are_better_if_they_are_small():
    findings = Findings(ALL["emotions"], made_up("emotions"))
    losses = [row[-2] for row in findings.score_table().rows]
    assert losses[0].startswith("0.8")  # the largest loss, and not bold
    assert all(loss.strip("*").startswith(("0.69", "0.70")) for loss in losses[1:])


def test_bold_needs_more_than_one_split():
    findings = Findings(ALL["yacht"], made_up("yacht", splits=1))
    assert not any("**" in cell for row in findings.score_table().rows for cell in row)
    assert any("**" in cell for row in Findings(ALL["yacht"], made_up("yacht")).score_table().rows for cell in row)


def test_a_method_without_results_is_left_out():
    records = [record for record in made_up("mfeat") if record.job.method == "SVC, mean kernel"]
    findings = Findings(ALL["mfeat"], records)
    assert [row[1] for row in findings.score_table().rows] == ["SVC, mean kernel"] * 2
    assert findings.about_weights() == []
    assert findings.about_scores() == []


def test_no_results_make_no_report(tmp_path):
    assert STUDIES.report([]) == []
    assert write_pages(tmp_path, []) == []


@pytest.mark.parametrize("name", ["mfeat", "brca_tcga", "nci60", "energy"])
def test_page_and_picture(name, tmp_path):
    (page,) = write_pages(tmp_path, made_up(name))
    text = page.read_text(encoding="utf-8")
    assert page == tmp_path / f"study_{name}.md"
    assert ENTRIES[name].licence in text
    assert ENTRIES[name].citation in text
    assert f"python -m experiments studies --data {name}" in text
    assert (tmp_path / f"study_{name}.png").stat().st_size > 5000
    assert f"(study_{name}.png)" in text
    if name == "brca_tcga":
        assert "taking the protein view from the test samples" in text
    if name == "nci60":
        assert "1 of 2 drugs better than the mean" in text


def test_page_without_matplotlib_has_no_picture(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    (page,) = write_pages(tmp_path, made_up("yacht"))
    assert "png" not in page.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.skipif(
    not Path(os.environ.get("BEMKL_DATA", "none"), "yacht").is_dir(), reason="BEMKL_DATA has no folder with yacht"
)
def test_real_data_have_the_views_that_pages_speak_of():
    for name, study in ALL.items():
        if Path(os.environ["BEMKL_DATA"], name).is_dir():
            split = study.cut(datasets.load(name), study.scenarios[0].name, 0)
            assert set(split.X) == set(study.views) - {TOGETHER}
    settings = {"scenario": "random splits", "model": "ridge", "kernels": "linear"}
    outcome = STUDIES.run(Job("studies", "yacht", "ridge, linear on all", 0, settings), None)
    assert 0.4 < outcome.scores["r2"] < 0.9
