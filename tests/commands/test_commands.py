"""The command line, as a user runs it."""

import csv
import io
import json
import warnings

import numpy as np
import pytest
from command_line import refused, run, write
from numpy.testing import assert_allclose
from sklearn.model_selection import StratifiedKFold

import bemkl
from bemkl import BEMKLClassifier, load_model, save_model
from bemkl.evaluation import cross_predict, variants
from bemkl.evaluation.variants import JOINED, MEAN, OURS
from bemkl.exceptions import ConvergenceWarning
from bemkl.kernels import BANKS, default_bank, named_bank, stack_kernels

RNG = np.random.default_rng(1)
N = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("files")
    ids = [f"s{i}" for i in range(N)]
    genes, clinic = RNG.normal(size=(N, 3)), RNG.normal(size=(N, 2))
    label = np.where(genes[:, 0] + clinic[:, 1] > 0.0, "yes", "no")
    response = genes[:, 1] + 0.1 * RNG.normal(size=N)
    write(here / "genes.csv", ["id", "a", "b", "c"], [[ids[i], *genes[i]] for i in range(N)])
    write(here / "clinic.csv", ["id", "age", "dose"], [[ids[i], *clinic[i]] for i in range(N)])
    rows = [[ids[i], label[i], response[i], int(label[i] == "yes"), i % 2] for i in range(N)]
    write(here / "y.csv", ["id", "label", "response", "first", "second"], rows)
    distances = ((genes[:, None] - genes[None]) ** 2).sum(axis=2)
    np.savez(here / "K.npz", near=np.exp(-distances / 6.0), linear=clinic @ clinic.T)
    return here


@pytest.fixture(scope="module")
def views(folder):
    return "--view", f"genes={folder}/genes.csv", "--view", f"clinic={folder}/clinic.csv"


@pytest.fixture(scope="module")
def model(folder, views):
    path = folder / "model.skops"
    run("fit", *views, "--target", f"{folder}/y.csv:label", "-o", path)
    return path


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def numbers(path):
    return np.array(
        [[float(value) for name, value in row.items() if name != "id"] for row in read_csv(path.read_text())]
    )


def named_kernels(X):
    stack = named_bank("linear", X).fit_transform(X)
    return zip(stack.names, stack.dense().values, strict=True)


class TestFitAndPredict:
    def test_the_model_is_that_of_python(self, folder, model):
        X = {name: numbers(folder / f"{name}.csv") for name in ("genes", "clinic")}
        y = [row["label"] for row in read_csv((folder / "y.csv").read_text())]
        ours = BEMKLClassifier(default_bank(X), random_state=0).fit(X, y)
        saved = load_model(model)
        assert saved.kernel_names_ == ours.kernel_names_
        assert_allclose(saved.kernel_weights_, ours.kernel_weights_, rtol=1e-10)
        assert saved.files_.columns == {"genes": ["a", "b", "c"], "clinic": ["age", "dose"]}
        assert saved.files_.settings["files"]["genes"]["sha256"]

    def test_predictions(self, folder, views, model):
        rows = read_csv(run("predict", model, *views).stdout)
        saved = load_model(model)
        X = {name: numbers(folder / f"{name}.csv") for name in ("genes", "clinic")}
        assert [row["id"] for row in rows] == [f"s{i}" for i in range(N)]
        assert_allclose([float(row["probability_yes"]) for row in rows], saved.predict_proba(X)[:, 1], rtol=1e-12)
        assert [row["label"] for row in rows] == saved.predict(X).tolist()
        assert json.loads(run("predict", model, *views, "--json").stdout)[0]["id"] == "s0"

    def test_regression_has_intervals(self, folder, views):
        run("fit", *views, "--target", f"{folder}/y.csv:response", "-o", folder / "r.skops")
        row = read_csv(run("predict", folder / "r.skops", *views, "--coverage", 0.5).stdout)[3]
        mean, std, low, high = (float(row[f"response{ending}"]) for ending in ("", "_std", "_low", "_high"))
        assert_allclose([low, high], [mean - 0.6744897501960817 * std, mean + 0.6744897501960817 * std], rtol=1e-9)

    def test_several_labels_and_responses(self, folder, views):
        run("fit", *views, "--target", f"{folder}/y.csv:first,second", "-o", folder / "l.skops")
        (first, *_) = read_csv(run("predict", folder / "l.skops", *views).stdout)
        assert list(first) == ["id", "first", "probability_first", "second", "probability_second"]
        run("fit", *views, "--target", f"{folder}/y.csv:response,first", "-o", folder / "m.skops")
        (first, *_) = read_csv(run("predict", folder / "m.skops", *views).stdout)
        assert list(first)[1:5] == ["response", "response_std", "response_low", "response_high"]

    def test_kernels(self, folder):
        run("fit", "--kernel", folder / "K.npz", "--target", f"{folder}/y.csv:label", "-o", folder / "k.skops")
        assert load_model(folder / "k.skops").kernel_names_ == ["near", "linear"]
        kernels = "--kernel", f"linear={folder}/K.npz:linear", "--kernel", f"near={folder}/K.npz:near"
        assert len(read_csv(run("predict", folder / "k.skops", *kernels).stdout)) == N

    def test_views_and_kernels_together(self, folder, views, tmp_path):
        both = *views, "--kernel", f"near={folder}/K.npz:near", "--bank", "linear"
        target = "--target", f"{folder}/y.csv:label"
        run("fit", *both, *target, "-o", tmp_path / "m.skops")
        saved = load_model(tmp_path / "m.skops")
        assert saved.kernel_names_ == ["linear on genes", "linear on clinic", "near"]
        X = {name: numbers(folder / f"{name}.csv") for name in ("genes", "clinic")}
        K = {**dict(named_kernels(X)), "near": np.load(folder / "K.npz")["near"]}
        y = [row["label"] for row in read_csv((folder / "y.csv").read_text())]
        ours = BEMKLClassifier("precomputed", random_state=0).fit(stack_kernels(K), y)
        assert_allclose(saved.kernel_weights_, ours.kernel_weights_, rtol=1e-8)
        rows = read_csv(run("predict", tmp_path / "m.skops", *both[:-2]).stdout)
        expected = ours.predict_proba(stack_kernels(K))[:, 1]
        assert_allclose([float(row["probability_yes"]) for row in rows], expected, rtol=1e-6)
        compared = json.loads(run("compare", *both, *target, "--folds", 3, "--json").stdout)
        assert list(compared["methods"]) == [OURS, "only tables", "only matrices", MEAN]
        evaluated = json.loads(run("evaluate", *both, *target, "--folds", 3, "--json").stdout)
        assert compared["methods"][OURS]["scores"] == evaluated["scores"]
        page = "-o", tmp_path / "p.html", "--json", "--folds", 3
        reported = json.loads(run("report", tmp_path / "m.skops", *both[:-2], *target, *page).stdout)
        assert reported["scores"] == evaluated["scores"]

    def test_json_has_all_facts(self, folder, views):
        options = "--bank", "linear", "--kernel-prior", "sparse", "--intermediate-std", "learn", "--json"
        result = run("fit", *views, "--target", f"{folder}/y.csv:label", "-o", folder / "j.skops", *options)
        facts = json.loads(result.stdout)
        assert (facts["task"], facts["n_samples"], facts["n_kernels"]) == ("classification", N, 2)
        assert {row["kernel"] for row in facts["kernels"]} == {"linear on genes", "linear on clinic"}
        assert "because the target is text" in result.stderr

    def test_output_files(self, folder, views, model, tmp_path):
        path = tmp_path / "p.csv"
        run("predict", model, *views, "-o", path)
        assert len(read_csv(path.read_text())) == N
        assert "the file exists" in refused("predict", model, *views, "-o", path)
        run("predict", model, *views, "-o", path, "--force")


class TestRefusals:
    def test_nothing_is_written_on_failure(self, folder, views, model, tmp_path):
        refused("fit", *views, "--target", f"{folder}/y.csv:none", "-o", tmp_path / "m.skops")
        assert list(tmp_path.iterdir()) == []
        before = model.read_bytes()
        refused("fit", *views, "--target", f"{folder}/y.csv:label", "-o", model)
        assert model.read_bytes() == before

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--data", "{}/none.csv"], "does not exist"),
            (["--view", "genes.csv"], "a view needs a name"),
            (["--view", "a={}/genes.csv", "--view", "a={}/genes.csv"], "another view 'a'"),
            (["--data", "{}/genes.csv", "--delimiter", ";"], "--delimiter ','"),
            (["--data", "{}/genes.csv", "--id", "patient"], "no column 'patient'"),
            ([], "got none"),
        ],
    )
    def test_bad_input(self, folder, tmp_path, options, expected):
        options = [option.format(folder) for option in options]
        target = write(tmp_path / "t.csv", ["y"], [[i % 2] for i in range(N)])
        assert expected in refused("fit", *options, "--target", target, "-o", tmp_path / "m.skops")
        assert not (tmp_path / "m.skops").exists()

    def test_bad_models(self, folder, views, tmp_path):
        assert "does not exist" in refused("weights", tmp_path / "none.skops")
        (tmp_path / "broken.skops").write_text("no model")
        result = run("predict", tmp_path / "broken.skops", *views, code=2)
        assert "not a model" in result.stderr
        save_model(BEMKLClassifier().fit(RNG.normal(size=(6, 1)), [0, 1] * 3), tmp_path / "python.skops")
        assert "not fitted by `bemkl fit`" in refused("predict", tmp_path / "python.skops", *views)

    def test_inputs_are_not_overwritten(self, folder, views, model):
        before = (folder / "genes.csv").read_bytes()
        text = refused("fit", *views, "--target", f"{folder}/y.csv:label", "-o", folder / "genes.csv", "--force")
        assert "an input too" in text
        assert (folder / "genes.csv").read_bytes() == before
        assert "an input too" in refused("predict", model, *views, "-o", model, "--force")

    def test_an_interrupted_fit_is_no_result(self, folder, views, tmp_path, monkeypatch):
        def interrupted(self, X, y):
            warnings.warn("the fit was interrupted after 3 iterations.", ConvergenceWarning, stacklevel=2)
            return self

        monkeypatch.setattr(BEMKLClassifier, "fit", interrupted)
        run("fit", *views, "--target", f"{folder}/y.csv:label", "-o", tmp_path / "m.skops", code=130)
        assert list(tmp_path.iterdir()) == []
        result = run("evaluate", *views, "--target", f"{folder}/y.csv:label", code=130)
        assert not result.stdout

    def test_the_target_has_to_be_the_models(self, folder, views, model, tmp_path):
        wrong = "--target", f"{folder}/y.csv:first,second", "-o", tmp_path / "page.html"
        assert "the model predicts label" in refused("report", model, *views, *wrong)


class TestAnswers:
    def test_weights(self, model, tmp_path):
        saved = load_model(model)
        rows = read_csv(run("weights", model, "--csv").stdout)
        assert {row["kernel"] for row in rows} == set(saved.kernel_names_)
        by_name = dict(zip(saved.kernel_names_, saved.kernel_weights_, strict=True))
        assert_allclose([float(row["weight"]) for row in rows], [by_name[row["kernel"]] for row in rows], rtol=1e-12)
        assert len(json.loads(run("weights", model, "--top", 3, "--json").stdout)) == 3
        assert "3 weights of 12 kernels" in run("weights", model, "--top", 3).stdout
        run("weights", model, "-o", tmp_path / "w.csv")
        assert len(read_csv((tmp_path / "w.csv").read_text())) == 12

    def test_weights_of_each_class(self, folder, views):
        rows = [[f"s{i}", "abc"[i % 3]] for i in range(N)]
        target = write(folder / "three.csv", ["id", "kind"], rows)
        path = folder / "three.skops"
        run("fit", *views, "--target", target, "-o", path, "--multiclass", "ovr", "--bank", "linear")
        assert "6 weights of 2 kernels for each of 3 classes" in run("weights", path).stdout
        top = json.loads(run("weights", path, "--top", 1, "--json").stdout)
        assert [row["class"] for row in top] == ["a", "b", "c"]
        assert all(isinstance(row["selected"], bool) for row in top)

    def test_names_are_text(self, folder, views, tmp_path):
        odd = "[/red]:smile:[bold]"
        rows = [[f"{odd}{i}", i % 3, i % 2] for i in range(12)]
        table = write(tmp_path / "t.csv", ["id", odd, "y"], rows)
        run("fit", "--data", table, "--target", f"{table}:y", "-o", tmp_path / "m.skops", "--bank", "linear")
        text = run("explain", tmp_path / "m.skops", "--data", table, "--row", f"{odd}3").stdout
        assert f"{odd}3, y = 1" in text

    def test_explanations_sum_to_the_decision(self, folder, views, model):
        one, two = json.loads(run("explain", model, *views, "--row", "s7", "--row", "s2", "--top", 2, "--json").stdout)
        assert (one["id"], two["id"], one["output"]) == ("s7", "s2", "label = yes")
        assert_allclose(sum(part["contribution"] for part in one["contributions"]), one["total"])
        assert [part["kernel"] for part in one["contributions"]][2:] == ["the other 10 kernels", "intercept"]
        predicted = read_csv(run("predict", model, *views).stdout)[7]["label"]
        assert (one["total"] > 0.0) == (predicted == "yes")
        assert "no sample s99" in refused("explain", model, *views, "--row", "s99")

    def test_evaluate(self, folder, views):
        result = json.loads(run("evaluate", *views, "--target", f"{folder}/y.csv:label", "--folds", 4, "--json").stdout)
        assert len(result["folds"]) == 4
        assert set(result["scores"]) == {"accuracy", "auc", "eer", "log_loss", "brier", "calibration_error"}
        accuracies = [fold["accuracy"] for fold in result["folds"]]
        assert_allclose(np.mean(accuracies), result["scores"]["accuracy"], atol=1e-12)  # folds of the same size
        table = run("evaluate", *views, "--target", f"{folder}/y.csv:response", "--folds", 3).stdout
        assert "coverage" in table
        assert "rarest class" in refused("evaluate", *views, "--target", f"{folder}/y.csv:label", "--folds", 39)
        several = run("evaluate", *views, "--target", f"{folder}/y.csv:first,second", "--folds", 3, "--json").stdout
        assert set(json.loads(several)["scores"]) == {"label_accuracy", "subset_accuracy", "macro_auc", "log_loss"}

    def test_compare(self, folder, views):
        target = "--target", f"{folder}/y.csv:label"
        result = json.loads(run("compare", *views, *target, "--folds", 3, "--bank", "gaussian", "--json").stdout)
        assert list(result["methods"]) == [OURS, "only genes", "only clinic", JOINED, MEAN]
        evaluated = run("evaluate", *views, *target, "--folds", 3, "--bank", "gaussian", "--json").stdout
        assert result["methods"][OURS]["scores"] == json.loads(evaluated)["scores"]
        assert result["better"][OURS] is None
        assert 0.0 <= result["better"]["only clinic"] <= 1.0
        kernels = run("compare", "--kernel", folder / "K.npz", *target, "--folds", 3).stdout
        assert all(name in kernels for name in (OURS, "only near", "only linear", MEAN))

    def test_a_tie_is_even(self, folder):
        one = "--view", f"a={folder}/genes.csv", "--target", f"{folder}/y.csv:label", "--bank", "linear"
        found = json.loads(run("compare", *one, "--folds", 3, "--json").stdout)
        assert found["better"][MEAN] == 0.5

    def test_folds_of_matrices_are_repaired_each_for_itself(self, folder, tmp_path):
        K = np.load(folder / "K.npz")["near"]
        K[:10, :10] -= 0.6
        np.save(tmp_path / "bad.npy", K)
        target = "--target", f"{folder}/y.csv:label"
        kernel = "--kernel", f"bad={tmp_path}/bad.npy"
        assert "eigenvalues are negative" in refused("fit", *kernel, *target, "-o", tmp_path / "m.skops")
        found = json.loads(run("evaluate", *kernel, *target, "--repair", "--folds", 3, "--json").stdout)
        y = np.array([row["label"] for row in read_csv((folder / "y.csv").read_text())])
        right = 0
        for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(y, y):
            values, vectors = np.linalg.eigh(K[np.ix_(train, train)])
            keep = vectors[:, values > 0.0]
            inside = (keep * values[values > 0.0]) @ keep.T
            fitted = BEMKLClassifier("precomputed").fit([0.5 * (inside + inside.T)], y[train])
            right += int((fitted.predict([K[np.ix_(test, train)] @ keep @ keep.T]) == y[test]).sum())
        assert_allclose(found["scores"]["accuracy"], right / N)
        run("fit", *kernel, *target, "--repair", "-o", tmp_path / "m.skops")
        report = run(
            "report", tmp_path / "m.skops", *kernel, *target, "--folds", 3, "-o", tmp_path / "p.html", "--json"
        )
        assert json.loads(report.stdout)["scores"] == found["scores"]

    def test_completion(self):
        assert "_BEMKL_COMPLETE" in run("completion", "bash").stdout

    def test_help_and_version(self):
        assert run("--version").stdout == f"bemkl, version {bemkl.__version__}\n"
        listed = run("--help").stdout
        for name in ("fit", "predict", "weights", "evaluate", "compare", "explain", "report"):
            assert name in listed
            assert "--help" in run(name, "--help").stdout


class TestReport:
    def origin(self, model, path, *options):
        return json.loads(run("report", model, *options, "-o", path, "--force", "--json").stdout)

    def test_training_samples_are_cross_validated_and_others_are_not(self, folder, views, model, tmp_path):
        page, target = tmp_path / "page.html", ("--target", f"{folder}/y.csv:label")
        found = self.origin(model, page, *views, *target, "--folds", 4)
        assert found["origin"] == "4-fold cross-validation of the training samples"
        evaluated = json.loads(run("evaluate", *views, *target, "--folds", 4, "--json").stdout)
        assert found["scores"] == evaluated["scores"]
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        assert self.origin(model, page, *views)["scores"] is None
        # The same ids with other values are new samples.
        names = {"genes": ["id", "a", "b", "c"], "clinic": ["id", "age", "dose"]}
        for name, header in names.items():
            rows = [[f"s{i}", *RNG.normal(size=len(header) - 1)] for i in range(N)]
            write(tmp_path / f"{name}.csv", header, rows)
        (tmp_path / "y.csv").write_text((folder / "y.csv").read_text())
        new = "--view", f"genes={tmp_path}/genes.csv", "--view", f"clinic={tmp_path}/clinic.csv"
        found = self.origin(model, page, *new, "--target", f"{tmp_path}/y.csv:label")
        assert found["origin"] == f"{N} samples that were not in training"
        predicted = [row["label"] for row in read_csv(run("predict", model, *new).stdout)]
        truth = [row["label"] for row in read_csv((tmp_path / "y.csv").read_text())]
        assert_allclose(found["scores"]["accuracy"], np.mean(np.array(predicted) == truth))

    def test_kernels_without_ids_are_known_by_their_values(self, folder, tmp_path):
        kernels = "--kernel", f"near={folder}/K.npz:near"
        target = "--target", f"{folder}/y.csv:response"
        run("fit", *kernels, *target, "-o", tmp_path / "k.skops")
        found = self.origin(tmp_path / "k.skops", tmp_path / "page.html", *kernels, *target)
        assert found["origin"] == "5-fold cross-validation of the training samples"

    def test_nothing_is_overwritten(self, views, model, tmp_path):
        (tmp_path / "page.html").write_text("mine")
        assert "the file exists" in refused("report", model, *views, "-o", tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text() == "mine"


class TestFolds:
    def test_folds_of_kernels_are_those_of_views(self):
        """Precomputed kernels that do not depend on the training samples give the same held-out predictions."""
        X = RNG.normal(size=(30, 2))
        y = X[:, 0] > 0.3
        K = stack_kernels({"a": np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))})
        held_out = cross_predict(BEMKLClassifier("precomputed"), K, y, n_folds=3)
        for fold in range(3):
            train, test = np.flatnonzero(held_out.folds != fold), np.flatnonzero(held_out.folds == fold)
            fitted = BEMKLClassifier("precomputed").fit(K[train][:, train], y[train])
            assert_allclose(held_out.probability[test], fitted.predict_proba(K[test][:, train]))

    def test_views_with_gaps_are_not_joined(self):
        X = {"a": RNG.normal(size=(12, 2)), "b": RNG.normal(size=(12, 1))}
        X["b"][3] = np.nan
        names = [one.name for one in variants(X, lambda views: BEMKLClassifier(default_bank(views)))]
        assert names == [OURS, "only a", "only b", MEAN]

    @pytest.mark.parametrize("bank", BANKS)
    def test_every_named_bank_fits(self, bank):
        # Zeros and ones suit kernels of fingerprints and of counts too.
        X = {"a": RNG.integers(0, 2, size=(10, 4)).astype(float), "b": RNG.integers(0, 2, size=(10, 3)).astype(float)}
        stack = named_bank(bank, X).fit_transform(X)
        assert np.isfinite(np.asarray(stack)).all()
