"""The paper's tables: kernels, fits and reports, on small problems of the same form."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from bemkl.datasets import DataSet
from bemkl.inference import Block, Priors, Probit, Problem, fitted_block, run
from bemkl.kernels import DenseStack, paper_bank
from experiments import datasets
from experiments.as_printed import fit_as_printed, random_start
from experiments.catalogue import EXPERIMENTS
from experiments.datasets import MatrixSet, MatrixSplit, SplitMatrixSet
from experiments.images import kernel_split, to_kernels
from experiments.job import Job, Outcome, Record
from experiments.multiclass import score_as_printed, score_other, score_ours
from experiments.pictures import write_pictures
from experiments.protocol import WIDTHS, Replication, counts_by_threshold, n_selected, paper_kernels
from experiments.published import TABLE1
from experiments.table1 import OTHERS, OURS, STRATIFIED
from experiments.table2 import ANEW, official_split, protein_kernels

RNG = np.random.default_rng(0)


def data_set(name, X, y, train=None):
    return DataSet(name, X, y, (), (), train, "multiclass", "abc", "made up", "", "")


def views(n=36, n_classes=3):
    """Two views; the first one tells the classes apart."""
    y = np.arange(n) % n_classes + 1
    first = RNG.normal(size=(n, 4)) + 4.0 * np.eye(4)[y]
    return {"first": first, "second": RNG.normal(size=(n, 2))}, y


def three_classes():
    X, y = views()
    blocks = []
    for rows in (slice(0, 24), slice(24, 36)):
        squares = {view: cdist(values[rows], values[:24], "sqeuclidean") for view, values in X.items()}
        blocks.append({view: np.exp(-0.1 * square) for view, square in squares.items()})
    return MatrixSplit(*blocks, y[:24], y[24:])


class TestProtocol:
    def test_widths_are_the_kernels_that_they_say(self):
        square, width = 1.7, 0.6
        expected = {
            "exp(-d²/2w²)": np.exp(-square / (2.0 * width**2)),
            "exp(-d²/w²)": np.exp(-square / width**2),
            "exp(-d²/w)": np.exp(-square / width),
            "exp(-wd²)": np.exp(-width * square),
        }
        for name, convert in WIDTHS.items():
            assert_allclose(np.exp(-square / (2.0 * convert(width) ** 2)), expected[name], rtol=1e-12)

    def test_our_reading_is_the_bank_of_the_paper(self):
        X = RNG.normal(size=(12, 3))
        ours = paper_kernels("exp(-d²/2w²)", 1.0).fit_transform(X)
        assert_allclose(np.asarray(ours), np.asarray(paper_bank().fit_transform(X)))

    def test_a_replication_has_the_printed_size_and_its_own_split(self):
        first, again, other = (Replication("wdbc", number, None) for number in (0, 0, 1))
        assert len(first.y) == TABLE1["wdbc"].n_train
        assert len(first.y) + len(first.y_test) == 569
        assert_allclose(first.X, again.X)
        assert not np.array_equal(first.X, other.X)

    def test_a_stratified_replication_keeps_the_shares_of_classes(self):
        for number in range(3):
            split = Replication("wdbc", number, None, stratified=True)
            assert len(split.y) == TABLE1["wdbc"].n_train
            assert abs(split.y.mean() - split.y_test.mean()) < 1.0 / len(split.y_test)

    def test_counting_kernels(self):
        weights = [0.5, -0.1, 0.02, 0.0]
        for rule, expected in (("relative", [3, 2]), ("absolute", [3, 1]), ("positive", [2, 1])):
            assert n_selected(weights, [0.01, 0.15], rule).tolist() == expected


class TestAsPrinted:
    def problem(self, margin=1.0):
        K = np.stack([np.exp(-scale * cdist(self.X, self.X)) for scale in (0.5, 1.0, 2.0)])
        signs = np.column_stack([np.sign(self.X[:, 0]), np.sign(self.X[:, 1])])
        return Problem([Block(DenseStack(K), Probit(signs, margin=margin))], Priors())

    X = np.random.default_rng(1).normal(size=(30, 2))

    def test_start(self):
        problem = self.problem(margin=0.5)
        state = random_start(problem, np.random.default_rng(0))
        block, moments = state.blocks[0], state.weights.moments(0)
        (part,) = block.rows.parts
        assert (np.sign(part.targets.target)[:, None, :] * part.mean >= 0.5).all()
        assert_allclose(moments.mean, 1.0)
        assert_allclose(moments.bias, 0.0)
        assert_allclose(np.asarray(moments.covariance), np.eye(3))
        other = random_start(problem, np.random.default_rng(1))
        assert not np.allclose(other.blocks[0].sample.mean, block.sample.mean)

    def test_all_starts_end_near_the_deterministic_one(self):
        """Dense weights of a small problem: one optimum."""
        problem = self.problem()
        (block,) = problem.blocks
        expected = fitted_block(run(problem, max_iter=400, tol=None).state).score(block.stack)
        for seed in range(2):
            fit = fit_as_printed(
                block.stack,
                block.likelihood,
                kernel_prior="dense",
                intermediate_std=1.0,
                rng=np.random.default_rng(seed),
            )
            found = fit.score(block.stack)
            assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.99
            assert ((found > 0.0) == (expected > 0.0)).mean() > 0.95


class TestMulticlass:
    def test_all_ways_to_score_tell_three_classes_apart(self):
        split = three_classes()
        settings = {"intermediate_std": 0.3, "margin": 1.0}
        outcomes = [score_ours(split, settings | {"multiclass": mode}, "abc") for mode in ("ovr", "shared", "pooled")]
        outcomes += [score_other(split, rule, "abc") for rule in ("mean", "easy")]
        outcomes += [score_as_printed(split, settings | {"multiclass": mode}, 0, "abc") for mode in ("ovr", "shared")]
        for outcome in outcomes:
            assert outcome.scores["accuracy"] > 0.8
            assert outcome.scores["auc"] > 0.9
            assert outcome.checksum == "abc"
        assert outcomes[0].details["kernels"] == ["first", "second"]
        weights = outcomes[1].details["weights"]
        assert abs(weights[0]) > abs(weights[1])

    def test_protein_kernels(self):
        X, y = views()
        names = {"first": "composition", "second": "swpam50"}
        X = {names[view]: values for view, values in X.items()}
        X["swpam50"] = RNG.normal(size=(36, 24))  # scores against the 24 training proteins
        train = np.zeros((1, len(y)), dtype=bool)
        train[0, :24] = True
        data = data_set("protein_fold", X, y, train)
        here, there = official_split(data)
        split = protein_kernels(data, here, there, "polynomials, linear on alignments", standardise=False)
        a, b = X["composition"][24:], X["composition"][:24]
        expected = (a @ b.T + 1.0) ** 2 / np.outer((a**2).sum(axis=1) + 1.0, (b**2).sum(axis=1) + 1.0)
        assert_allclose(split.test["composition"], expected, rtol=1e-10)
        linear = X["swpam50"][:24]
        norms = np.linalg.norm(linear, axis=1)
        assert_allclose(split.train["swpam50"], linear @ linear.T / np.outer(norms, norms), rtol=1e-10)
        assert_allclose(split.y_test, y[24:])
        # Inside the training samples, scores against those left out are left out too.
        inner = protein_kernels(data, here[:20], here[20:], "linear", standardise=False)
        linear = X["swpam50"][:20, :20]
        norms = np.linalg.norm(linear, axis=1)
        assert_allclose(inner.train["swpam50"], linear @ linear.T / np.outer(norms, norms), rtol=1e-10)


class TestImages:
    def test_distances_become_kernels_with_the_scale_of_training_pairs(self):
        D = cdist(RNG.normal(size=(9, 2)), RNG.normal(size=(9, 2)))
        D = D + D.T
        np.fill_diagonal(D, 0.0)
        split = to_kernels(MatrixSplit({"v": D[:6, :6]}, {"v": D[6:, :6]}, np.arange(6), np.arange(3)))
        scale = np.mean([D[i, j] for i in range(6) for j in range(i)])
        assert_allclose(split.train["v"], np.exp(-D[:6, :6] / scale))
        assert_allclose(split.test["v"], np.exp(-D[6:, :6] / scale))

    def test_histograms(self, monkeypatch):
        counts = RNG.integers(0, 9, size=(8, 5)).astype(float)
        counts[3] = 0.0  # an image without information
        train = np.zeros((2, 8), dtype=bool)
        train[1, :6] = True
        monkeypatch.setattr(
            datasets, "load", lambda name, data_home: data_set(name, {"v": counts}, np.arange(8), train)
        )
        split, checksum = kernel_split("flowers17_rebuilt", 1, None)
        shares = counts / np.maximum(counts.sum(axis=1), 1.0)[:, None]
        slow = np.zeros((8, 8))
        for i in range(8):
            for j in range(8):
                total = shares[i] + shares[j]
                slow[i, j] = sum((shares[i, k] - shares[j, k]) ** 2 / total[k] for k in range(5) if total[k] > 0.0)
        scale = slow[:6, :6][np.triu_indices(6, 1)].mean()
        assert_allclose(split.train["v"], np.exp(-slow[:6, :6] / scale), rtol=1e-10)
        assert_allclose(split.test["v"], np.exp(-slow[6:, :6] / scale), rtol=1e-10)
        assert checksum == "abc"

    def test_published_distances_become_kernels(self, monkeypatch):
        D = np.abs(RNG.normal(size=(6, 6)))
        D = D + D.T
        np.fill_diagonal(D, 0.0)
        train = np.array([[True] * 4 + [False] * 2])
        published = MatrixSet({"v": D}, np.arange(6), train, ~train, "abc")
        monkeypatch.setattr(datasets, "load_published", lambda name, data_home: published)
        split, checksum = kernel_split("flowers17", 0, None)
        assert_allclose(split.test["v"], np.exp(-D[4:, :4] / D[:4, :4][np.triu_indices(4, 1)].mean()))
        assert checksum == "abc"

    def test_published_kernels_stay_as_they_are(self, monkeypatch):
        published = SplitMatrixSet({"15-1": three_classes()}, "abc")
        monkeypatch.setattr(datasets, "load_published", lambda name, data_home: published)
        assert kernel_split("caltech101", 0, None) == (published.split(0), "abc")

    def test_one_command_gives_the_table_from_published_matrices(self, monkeypatch):
        X, y = views()
        D = {view: cdist(values, values) for view, values in X.items()}
        train = np.array([[True] * 24 + [False] * 12])
        published = MatrixSet(D, y, train, ~train, "abc")
        monkeypatch.setattr(datasets, "load_published", lambda name, data_home: published)
        experiment = EXPERIMENTS["table3"]
        records = [Record(job, experiment.run(job, None), {}) for job in experiment.jobs(1)]
        (section,) = experiment.report(records)
        rows = {row[0]: row[1:] for row in section.table.rows}
        assert rows["Gehler & Nowozin (2009)"][0] == "85.5±3.0"
        assert rows["as printed, shared"][0] == rows["shared"][0] == "85.9±1.2"
        for method in (
            "as printed, ovr",
            "as printed, shared",
            "ovr",
            "shared",
            "pooled",
            "SVC, mean kernel",
            "EasyMKL",
        ):
            assert float(rows[method][2]) > 80.0
        assert rows["shared"][1] == f"{float(rows['shared'][2]) - 85.9:+.1f}"
        assert rows["pooled"][:2] == ["–", "–"]


class TestReports:
    def records(self, n=3):
        """Made-up results of Table 1, with the printed figures themselves as ours."""
        made = []
        for name, printed in TABLE1.items():
            for method in (*OURS, *STRATIFIED, *OTHERS):
                cell = printed.sparse if "sparse" in method else printed.dense
                for k in range(n):
                    accuracy = cell.accuracy[0] / 100.0 + 0.001 * (k - 1)
                    losses = {"log_loss": 0.3 + 0.01 * k, "brier": 0.1, "calibration_error": 0.05}
                    scores = {"accuracy": accuracy} | losses
                    details = counts_by_threshold([1.0] * round(cell.kernels[0]) + [1e-6] * 3)
                    made.append(Record(Job("table1", name, method, k), Outcome(scores, 1.0, "", details), {}))
        return made

    def test_table1_has_every_cell_and_its_gap(self):
        first, *_ = EXPERIMENTS["table1"].report(self.records())
        assert len(first.table.rows) == 16
        for row in first.table.rows:
            assert row[4] in ("+0.00", "-0.00")
            assert abs(float(row[-2])) <= 0.5  # printed numbers are means, ours are whole

    def test_table1_compares_two_ways_to_draw_splits(self):
        records = [r for r in self.records() if "stratified" not in r.job.method or r.job.data == "wpbc"]
        _, section, *_ = EXPERIMENTS["table1"].report(records)
        assert [row[:3] for row in section.table.rows] == [
            ["wpbc", "sparse", "75.25±1.01"],
            ["wpbc", "dense", "73.64±2.66"],
        ]
        assert [row[3:] for row in section.table.rows] == [["75.25±0.10"] * 2, ["73.64±0.10"] * 2]
        # Deviations of 0.1 for 1.01 and 2.66: exp of the root mean square of two logarithms.
        factor = np.exp(np.sqrt((np.log(10.1) ** 2 + np.log(26.6) ** 2) / 2.0))
        assert f"{factor:.2f} and {factor:.2f}" in section.text

    def test_pictures_are_drawn(self, tmp_path):
        assert write_pictures(tmp_path, {"table1": self.records()}) == ["table1.png", "table1_methods.png"]
        assert write_pictures(tmp_path, {}) == []
        assert sorted(path.name for path in tmp_path.iterdir()) == ["table1.png", "table1_methods.png"]

    def test_table2(self):
        jobs = EXPERIMENTS["table2"].jobs(2)
        scores = {"accuracy": 0.715, "log_loss": 1.0, "brier": 0.4, "calibration_error": 0.1}
        paper, anew = EXPERIMENTS["table2"].report([Record(job, Outcome(scores, 2.0, ""), {}) for job in jobs])
        rows = {row[0]: row for row in paper.table.rows}
        assert rows["as printed, ovr"][1:4] == ["71.5±0.1", "71.5±0.0", "+0.0"]
        assert len(anew.table.rows) == 10
        assert {job.data for job in jobs} == {"protein_fold", ANEW}

    def test_a_choice_explains_the_printed_numbers(self):
        """The reading whose numbers of kernels are the printed ones comes first, with its threshold."""
        experiment, made = EXPERIMENTS["table1-choices"], []
        for job in experiment.jobs(1):
            printed = getattr(TABLE1[job.data], job.method).kernels[0]
            true = job.settings["widths"] == "exp(-d²/w)" and job.settings["margin"] == 1.0
            counts = np.linspace(2.0, 0.0, 49)[:-1] * printed * (1.0 if true else 1.0 + (job.method == "sparse"))
            details = {"relative": counts.tolist(), "absolute": [1.0] * 48, "positive": [1.0] * 48}
            made.append(Record(job, Outcome({"fold_accuracy": 0.8}, 1.0, "", details), {}))
        (section,) = experiment.report(made)
        assert section.table.rows[0][0] == "exp(-d²/w)"
        assert section.table.rows[0][3:7] == ["1", "ours", "16", "relative 0.0100"]
