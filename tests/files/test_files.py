"""Files become samples, and what is wrong with one is said in two lines."""

import io
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from command_line import write
from numpy.testing import assert_allclose
from scipy.io import savemat

from bemkl.files import InputError, MixedKernels, Sources, new_samples, training_samples
from bemkl.files.matching import Part, match
from bemkl.files.matrices import read_matrices
from bemkl.files.repairs import KernelRepair
from bemkl.files.tables import read_table
from bemkl.files.targets import read_target
from bemkl.files.writing import refuse_output, write_whole
from bemkl.kernels import from_distances, named_bank, stack_kernels

RNG = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path):
    """Ten samples with two views, of which one lacks a sample and has another, in another order."""
    ids = [f"s{i}" for i in range(10)]
    genes, clinic = RNG.normal(size=(10, 3)), RNG.normal(size=(10, 2))
    write(tmp_path / "genes.csv", ["id", "a", "b", "c"], [[ids[i], *genes[i]] for i in range(10)])
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8]
    rows = [[ids[i], *clinic[i]] for i in order] + [["stranger", 0.5, 0.5]]
    write(tmp_path / "clinic.tsv", ["sample", "age", "dose"], rows, "\t")
    labels = [["case", "control"][i % 2] for i in range(10)]
    write(tmp_path / "labels.csv", ["id", "status", "score"], [[ids[i], labels[i], 0.5 * i] for i in range(10)])
    np.savez(tmp_path / "truth.npz", genes=genes, clinic=clinic)
    return tmp_path


def problem(function, *arguments, **options):
    with pytest.raises(InputError) as caught:
        function(*arguments, **options)
    what, advice = str(caught.value).split("\n")
    assert what.endswith(".")
    assert advice
    return str(caught.value)


class TestTables:
    @pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
    def test_formats_agree(self, tmp_path, ending):
        frame = pd.DataFrame({"id": ["a", "b"], "x": [1.5, np.nan], "n": [1, 2]})
        path = tmp_path / f"table.{ending}"
        if ending == "parquet":
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
        table = read_table(path)
        assert table.columns == ("id", "x", "n")
        assert table.id_column(None) == "id"
        assert table.ids("id") == ["a", "b"]
        assert_allclose(table.numbers(["x", "n"]), [[1.5, 1.0], [np.nan, 2.0]])
        assert table.texts("n") == ["1", "2"]

    def test_array(self, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(6.0).reshape(3, 2))
        table = read_table(tmp_path / "x.npy")
        assert table.columns == ("x0", "x1")
        assert table.id_column(None) is None
        assert_allclose(table.numbers(["x1"]), [[1.0], [3.0], [5.0]])

    def test_a_cell_that_is_no_number_is_named(self, tmp_path):
        path = write(tmp_path / "t.csv", ["id", "x", "y"], [["a", 1, 2], ["b", 3, "high"]])
        text = problem(read_table(path).numbers, ["x", "y"])
        assert "row 3, column 'y'" in text
        assert "'high'" in text

    def test_first_column_of_text_has_the_ids(self, tmp_path):
        table = read_table(write(tmp_path / "t.csv", ["patient", "x"], [["p1", 1], ["p2", 2]]))
        assert table.id_column(None) == "patient"
        numeric = read_table(write(tmp_path / "u.csv", ["height", "x"], [[1, 1], [2, 2]]))
        assert numeric.id_column(None) is None

    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            (["PatientID", "x"], "PatientID"),
            (["x", "sample_id"], "sample_id"),
            (["x", "malic_acid"], None),
            (["", "x"], ""),
            (["label", "id", "x"], "id"),
        ],
    )
    def test_columns_that_are_called_like_ids(self, tmp_path, header, expected):
        rows = [[i + 10 * k for k in range(len(header))] for i in range(3)]
        assert read_table(write(tmp_path / "t.csv", header, rows)).id_column(None, exclude=["label"]) == expected

    def test_a_sign_between_digits_is_no_number(self, tmp_path):
        table = read_table(write(tmp_path / "t.csv", ["plate", "x"], [["3_7", 1], ["3_8", 2]]))
        assert table.id_column(None) == "plate"
        assert "got '3_7'" in problem(table.numbers, ["plate"])
        table = read_table(write(tmp_path / "t.csv", ["a", "x"], [["0,5", 1], ["1,5", 2]]))
        assert "decimal point" in problem(table.numbers, ["a"])

    def test_blank_lines_count_in_messages_and_not_as_rows(self, tmp_path):
        (tmp_path / "t.csv").write_text("id,x\na,1\n\nb,high\n,\n")
        table = read_table(tmp_path / "t.csv")
        assert table.n_rows == 2
        assert "row 4, column 'x'" in problem(table.numbers, ["x"])

    def test_accents_match_however_they_are_written(self, tmp_path):
        table = read_table(write(tmp_path / "t.csv", ["id", "x"], [["caf\u00e9", 1], ["cafe\u0301 2", 2]]))
        assert table.ids("id") == ["caf\u00e9", "caf\u00e9 2"]

    @pytest.mark.parametrize(
        ("name", "content", "expected"),
        [
            ("t.csv", b"a;b;c\n1;2;3\n", "--delimiter ';'"),
            ("t.csv", b"", "empty"),
            ("t.csv", b"a,b\n", "no rows"),
            ("t.csv", b"a,b\n1,2\n3\n", "row 3: expected 2 cells"),
            ("t.csv", b"a,a\n1,2\n", "different names"),
            ("t.csv", b"1,2\n3,4\n", "first row holds numbers"),
            ("t.csv", None, "does not exist"),
            ("t.xlsx", None, "a table ends with"),
            ("t.csv", b"\xff\xfe\x00\x01,\x02", "not a text file"),
            ("t.npy", b"no array", "not a file of NumPy"),
            ("t.parquet", b"no table", "not a Parquet file"),
        ],
    )
    def test_bad_files(self, tmp_path, name, content, expected):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        assert expected in problem(read_table, tmp_path / name)

    def test_pickles_are_not_loaded(self, tmp_path):
        np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
        assert "got an array of object" in problem(read_table, tmp_path / "x.npy")

    def test_ids(self, tmp_path):
        table = read_table(write(tmp_path / "t.csv", ["id", "x"], [["a", 1], ["b", 2], ["a", 3]]))
        assert "more than once: a" in problem(table.ids, "id")
        table = read_table(write(tmp_path / "t.csv", ["id", "x"], [["a", 1], ["", 2]]))
        assert "row 3: the id" in problem(table.ids, "id")
        assert "no column 'key'" in problem(table.id_column, "key")


class TestMatching:
    def test_order_of_files_without_ids(self):
        found = match([Part("y", 3, ["a", "b", "c"]), Part("K", 3, None)])
        assert found.rows["K"].tolist() == [0, 1, 2]
        assert "taken in the order" in found.sentences()[0]
        assert match([Part("y", 2, None), Part("K", 2, None)]).names == ["1", "2"]

    def test_files_without_partners(self):
        assert match([Part("y", 2, None), Part("K", 2, None)]).sentences() == [
            "No file has ids: rows are taken in their order."
        ]
        assert "No id is in all files" in problem(match, [Part("y", 1, ["a"]), Part("x", 1, ["b"])])
        assert "y has 3 rows, K has 4 rows" in problem(match, [Part("y", 3, ["a", "b", "c"]), Part("K", 4, None)])

    def test_incomplete_samples(self):
        parts = [Part("y", 3, ["a", "b", "c"]), Part("x", 1, ["c"]), Part("z", 2, ["c", "a"])]
        assert match(parts).names == ["c"]
        found = match(parts, ["x", "z"])
        assert found.names == ["a", "b", "c"]
        assert found.rows["x"].tolist() == [-1, -1, 0]
        assert any("lacks 2 of the 3 samples: a, b" in sentence for sentence in found.sentences())
        assert match(parts[1:], ["x", "z"]).names == ["c", "a"]


class TestTargets:
    @pytest.mark.parametrize(
        ("values", "task"),
        [
            (["yes", "no"] * 20, "classification"),
            ([0, 1] * 20, "classification"),
            (list(range(40)), "regression"),
            ([0.5, 1.0] * 20, "regression"),
            ([1, 2, 3, 4] * 10, "classification"),
        ],
    )
    def test_the_task_is_inferred(self, tmp_path, values, task):
        path = write(tmp_path / "y.csv", ["y"], [[value] for value in values])
        target = read_target(str(path), None, None)
        assert target.columns == ["y"]
        assert target.task(np.arange(40))[0] == task

    def test_labels_keep_their_form(self, tmp_path):
        path = write(tmp_path / "y.csv", ["id", "n", "t"], [["a", 1, "01"], ["b", 2, "2"]])
        rows = np.arange(2)
        assert read_target(f"{path}:n", None, None).values(rows, "classification").tolist() == [1, 2]
        assert read_target(f"{path}:t", None, None).values(rows, "classification").tolist() == ["01", "2"]

    def test_labels_become_the_classes_of_a_model(self, tmp_path):
        path = write(tmp_path / "y.csv", ["id", "y"], [["a", "1.0"], ["b", "0"]])
        target, rows = read_target(str(path), None, None), np.arange(2)
        assert target.values(rows, "classification", np.array([0, 1])).tolist() == [1, 0]
        assert "does not know the class 1.0" in problem(target.values, rows, "classification", np.array(["0", "x"]))
        large = write(tmp_path / "z.csv", ["id", "y"], [["a", "9" * 25], ["b", "1"]])
        assert read_target(str(large), None, None).values(rows, "classification").tolist() == ["9" * 25, "1"]

    def test_which_column(self, tmp_path):
        path = write(tmp_path / "y.csv", ["id", "u", "v"], [["a", 0, 1], ["b", 1, 0]])
        assert "which column is the target" in problem(read_target, str(path), None, None)
        assert "no column 'w'" in problem(read_target, f"{path}:w", None, None)
        comma = write(tmp_path / "w.csv", ["id", "u, v"], [["a", 0], ["b", 1]])
        assert read_target(f"{comma}:u, v", None, None).columns == ["u, v"]
        several = read_target(f"{path}:u,v", None, None)
        assert several.like(["v", "u"]).columns == ["v", "u"]
        assert "the model predicts r" in problem(several.like, ["r"])
        assert several.values(np.arange(2), "classification").tolist() == [[0, 1], [1, 0]]
        path = write(tmp_path / "z.csv", ["id", "u", "v"], [["a", 0, 1], ["b", 1, 7]])
        assert "0 and 1" in problem(read_target(f"{path}:u,v", None, None).values, np.arange(2), "classification")


class TestMatrices:
    K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 2.0]])

    def test_formats_agree(self, tmp_path):
        np.save(tmp_path / "K.npy", self.K)
        np.savez(tmp_path / "K.npz", K=self.K, other=np.eye(2), scalar=3.0)
        savemat(tmp_path / "five.mat", {"K": self.K, "one": 1.0})
        with h5py.File(tmp_path / "seven.mat", "w", userblock_size=512) as file:
            file["K"] = self.K.T
        header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
        with (tmp_path / "seven.mat").open("r+b") as file:
            file.write(header)
        write(tmp_path / "bare.csv", self.K[0], self.K[1:])
        write(
            tmp_path / "ids.csv", ["", "a", "b", "c"], [[name, *row] for name, row in zip("abc", self.K, strict=True)]
        )
        write(tmp_path / "above.csv", ["a", "b", "c"], self.K)
        savemat(tmp_path / "row.mat", {"K": self.K[:1]})
        assert read_matrices(tmp_path / "row.mat")["K"].values.shape == (1, 3)
        assert list(read_matrices(tmp_path / "K.npz")) == ["K", "other"]
        for name in ("K.npy", "K.npz", "five.mat", "seven.mat", "bare.csv", "ids.csv", "above.csv"):
            variable = "K" if name.startswith(("K.npz", "five", "seven")) else None
            (matrix,) = read_matrices(tmp_path / name, variable).values()
            assert_allclose(matrix.values, self.K)
            assert matrix.rows == (["a", "b", "c"] if name in ("ids.csv", "above.csv") else None)

    def test_bad_matrices(self, tmp_path):
        path = write(tmp_path / "K.csv", ["", "a", "b"], [["a", 1, "x"], ["b", 0, 1]])
        assert "row 2, column 3: expected a number" in problem(read_matrices, path)
        np.save(tmp_path / "K.npy", np.array([[1.0, np.nan], [0.0, 1.0]]))
        assert "row 1, column 2: the entry is nan" in problem(read_matrices, tmp_path / "K.npy")
        np.savez(tmp_path / "K.npz", K=np.eye(2))
        assert "no 'L' in it, but K" in problem(read_matrices, tmp_path / "K.npz", "L")
        (tmp_path / "K.mat").write_text("no matrix")
        assert "cannot be read" in problem(read_matrices, tmp_path / "K.mat")
        whole = (tmp_path / "K.npz").read_bytes()
        (tmp_path / "cut.npz").write_bytes(whole[:-30])
        assert "cut.npz" in problem(read_matrices, tmp_path / "cut.npz")
        (tmp_path / "bent.npz").write_bytes(whole[:60] + b"12345678" + whole[68:])
        assert "bent.npz" in problem(read_matrices, tmp_path / "bent.npz")
        np.save(tmp_path / "zero.npy", np.zeros((3, 3)))
        assert "all entries are zero" in problem(read_matrices, tmp_path / "zero.npy")
        np.savez(tmp_path / "empty.npz", s=1.0)
        assert "no matrix of numbers" in problem(read_matrices, tmp_path / "empty.npz")

    def test_a_file_has_as_much_in_it_as_it_claims(self, tmp_path):
        """Memory is not taken for what a header says, but for what follows it."""
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)})
        (tmp_path / "K.npy").write_bytes(header.getvalue() + bytes(64))
        with zipfile.ZipFile(tmp_path / "K.npz", "w") as archive:
            archive.writestr("K.npy", header.getvalue() + bytes(64))
        savemat(tmp_path / "whole.mat", {"K": np.eye(4)}, do_compression=False)
        whole = (tmp_path / "whole.mat").read_bytes()
        large = (10**6).to_bytes(4, "little")
        (tmp_path / "K.mat").write_bytes(whole.replace((4).to_bytes(4, "little") * 2, large * 2))
        tracemalloc.start()
        said = [problem(read_matrices, tmp_path / f"K.{ending}") for ending in ("npy", "npz", "mat")]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6
        assert all(
            "its header says float64 of shape (1000000, 1000000), and only 64 bytes" in line for line in said[:2]
        )
        assert "a matrix of shape (1000000, 1000000) has 16 numbers" in said[2]


class TestRepairs:
    def stack(self, matrix):
        return stack_kernels({"K": matrix})

    def test_negative_eigenvalues_are_told_and_clipped(self):
        vectors, _ = np.linalg.qr(RNG.normal(size=(6, 6)))
        values = np.array([3.0, 2.0, 1.0, 0.5, -0.2, -0.7])
        K = self.stack((vectors * values) @ vectors.T)
        text = problem(KernelRepair().fit_transform, K)
        assert "2 of 6 eigenvalues are negative, the smallest is -0.7 and the largest 3" in text
        repair = KernelRepair(repair=True)
        repaired = np.asarray(repair.fit_transform(K))
        assert_allclose(repaired[:, :, 0], (vectors * values.clip(0.0)) @ vectors.T, atol=1e-12)
        # What is done to new samples agrees with what was done to training samples.
        assert_allclose(np.asarray(repair.transform(K)), repaired, atol=1e-12)

    def test_asymmetry(self):
        K = np.eye(3) + 0.1
        K[0, 2] = 0.4
        assert "1 and 3 have 0.4 and 0.1" in problem(KernelRepair().fit, self.stack(K))
        assert_allclose(np.asarray(KernelRepair(repair=True).fit_transform(self.stack(K)))[0, 2, 0], 0.25)

    def test_a_good_kernel_stays(self):
        X = RNG.normal(size=(8, 2))
        for K in (X @ X.T, (X @ X.T).astype(np.float32), np.round(X @ X.T, 6)):
            repair = KernelRepair()
            assert_allclose(np.asarray(repair.fit_transform(self.stack(K)))[:, :, 0], K, atol=1e-15)
            assert not repair.negative_

    def test_distances_of_new_samples_have_the_scale_of_training(self):
        D = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
        repair = KernelRepair(distances=True)
        repair.fit(self.stack(D))
        assert_allclose(
            np.asarray(repair.transform(self.stack(2.0 * D)))[:, :, 0], np.exp(-2.0 * D / repair.scales_["K"])
        )
        D[0, 3] = 3.1
        assert "not symmetric" in problem(repair.fit, self.stack(D))
        assert KernelRepair(distances=True, repair=True).fit(self.stack(D)).scales_["K"] > 0.0


class TestSamples:
    def sources(self, folder, **options):
        views = {"genes": folder / "genes.csv", "clinic": folder / "clinic.tsv"}
        return Sources(**({"views": views, "target": f"{folder}/labels.csv:status"} | options))

    def test_rows_are_matched(self, folder):
        gathered = training_samples(self.sources(folder))
        truth = np.load(folder / "truth.npz")
        kept = [0, 1, 2, 3, 4, 5, 6, 8, 9]
        assert gathered.names == [f"s{i}" for i in kept]
        assert_allclose(gathered.X["genes"], truth["genes"][kept])
        assert_allclose(gathered.X["clinic"], truth["clinic"][kept])
        assert gathered.y.tolist() == [["case", "control"][i % 2] for i in kept]
        assert gathered.matched.unmatched[f"clinic ({folder}/clinic.tsv)"] == ["stranger"]
        assert any("s7" in sentence for sentence in gathered.matched.sentences())

    def test_incomplete_samples_are_kept_if_asked(self, folder):
        gathered = training_samples(self.sources(folder, keep_incomplete=True))
        assert len(gathered.names) == 10
        assert np.isnan(gathered.X["clinic"][7]).all()

    def test_target_in_the_same_file_is_no_feature(self, folder):
        sources = self.sources(folder, views={}, data=folder / "labels.csv")
        assert list(training_samples(sources).X) == ["score"]

    def test_the_target_is_no_feature_of_another_file_either(self, folder):
        write(folder / "genes.csv", ["status", "id", "a"], [[i % 2, f"s{i}", i] for i in range(10)])
        gathered = training_samples(self.sources(folder))
        assert gathered.recipe.columns["genes"] == ["a"]
        # The file of training can be predicted too, although a target is in front.
        sources = self.sources(folder, views={}, data=folder / "labels.csv")
        recipe = training_samples(sources).recipe
        assert len(new_samples(Sources(data=folder / "labels.csv"), recipe, "classification").names) == 10

    def test_samples_without_target_are_left_out_and_listed(self, folder):
        write(folder / "labels.csv", ["id", "status"], [["s0", "case"], ["s1", ""], ["s2", "control"]])
        gathered = training_samples(self.sources(folder, target=f"{folder}/labels.csv"))
        assert gathered.names == ["s0", "s2"]
        assert "Left out 1 sample without a target: s1." in gathered.matched.sentences()
        assert gathered.matched.everything_left_out()["without a target"] == ["s1"]

    def test_empty_rows_of_a_view_are_missing(self, folder):
        write(folder / "genes.csv", ["id", "a", "b"], [["s0", 1, 2], ["s1", "", ""], ["s2", 3, 4]])
        gathered = training_samples(self.sources(folder))
        assert gathered.names == ["s0", "s2"]
        assert "Left out 1 sample whose rows in genes are empty: s1." in gathered.matched.sentences()
        kept = training_samples(self.sources(folder, keep_incomplete=True))
        assert "s1" in kept.names
        assert "s7" not in kept.names  # no view has it
        assert kept.matched.left_out == {"that no view has": ["s7"]}

    def test_delimiters_by_file(self, folder):
        rows = [[f"s{i}", i, 2 * i] for i in range(10)]
        write(folder / "genes.csv", ["id", "a", "b"], rows, ";")
        assert "--delimiter NAME=" in problem(training_samples, self.sources(folder))
        gathered = training_samples(self.sources(folder, delimiters={"genes": ";"}))
        assert gathered.recipe.columns["genes"] == ["a", "b"]
        two = self.sources(folder, delimiters={"genes": "::"})
        assert "expected one character" in problem(training_samples, two)

    def test_partly_missing_rows_are_named(self, folder):
        write(folder / "genes.csv", ["id", "a", "b"], [["s0", 1, 2], ["s1", "", 3]])
        text = problem(training_samples, self.sources(folder))
        assert "sample s1, column 'a'" in text

    def test_new_samples_have_the_columns_of_training(self, folder):
        gathered = training_samples(self.sources(folder))
        write(folder / "new.csv", ["id", "c", "extra", "a", "b"], [["t1", 3, 9, 1, 2], ["t2", 6, 9, 4, 5]])
        write(folder / "more.csv", ["id", "dose", "age"], [["t2", 8, 7], ["t1", 6, 5]])
        sources = Sources(views={"genes": folder / "new.csv", "clinic": folder / "more.csv"})
        new = new_samples(sources, gathered.recipe, "classification")
        assert new.names == ["t1", "t2"]
        assert_allclose(new.X["genes"], [[1, 2, 3], [4, 5, 6]])
        assert_allclose(new.X["clinic"], [[5, 6], [7, 8]])
        write(folder / "new.csv", ["id", "a", "b"], [["t1", 1, 2]])
        assert "no column c" in problem(new_samples, sources, gathered.recipe, "classification")

    def test_views_have_to_be_those_of_training(self, folder):
        gathered = training_samples(self.sources(folder))
        one = Sources(views={"genes": folder / "genes.csv"})
        assert "Expected the views genes, clinic" in problem(new_samples, one, gathered.recipe, "classification")
        lacking = Sources(views={"genes": folder / "genes.csv"}, keep_incomplete=True)
        assert np.isnan(new_samples(lacking, gathered.recipe, "classification").X["clinic"]).all()
        table = Sources(data=folder / "genes.csv")
        assert "fitted with --view, got --data" in problem(new_samples, table, gathered.recipe, "classification")

    def test_kernels_by_id(self, folder):
        D = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
        ids = ["s4", "s3", "s2", "s1", "s0"]
        rows = [[ids[i], *D[i]] for i in (0, 2, 1, 3, 4)]  # rows in another order than columns
        write(folder / "D.csv", ["", *ids], rows)
        sources = Sources(
            kernels=(("near", folder / "D.csv", None),), target=f"{folder}/labels.csv:score", distances=True
        )
        gathered = training_samples(sources)
        assert gathered.names == ["s0", "s1", "s2", "s3", "s4"]
        expected = from_distances(D[::-1, ::-1])
        prepare = KernelRepair(distances=True)
        assert_allclose(np.asarray(prepare.fit_transform(gathered.X))[:, :, 0], expected)
        recipe = replace(gathered.recipe, prepare=prepare)
        new = new_samples(Sources(kernels=(("near", folder / "D.csv", None),)), recipe, "regression")
        places = [gathered.names.index(name) for name in new.names]
        assert_allclose(np.asarray(new.X)[:, :, 0], expected[places])

    def test_columns_without_ids_are_those_of_the_training_file(self, folder):
        K = np.eye(10) + 0.1 * np.abs(np.subtract.outer(np.arange(10.0), np.arange(10.0))) / 10.0
        np.save(folder / "K.npy", K)
        ids = [f"s{i}" for i in range(10)]
        write(folder / "K.csv", ["", *ids], [[ids[i], *K[i]] for i in range(10)])
        order = [7, 3, 1, 9, 0, 2]
        write(folder / "some.csv", ["id", "y"], [[f"s{i}", i % 2] for i in order] + [["s5", ""]])
        gathered = training_samples(Sources(kernels=(("K", folder / "K.csv", None),), target=f"{folder}/some.csv"))
        for kernel in ("K.npy", "K.csv"):
            new = new_samples(Sources(kernels=(("K", folder / kernel, None),)), gathered.recipe, "classification")
            assert_allclose(np.asarray(new.X)[:, :, 0], K[:, order])
        np.save(folder / "narrow.npy", K[:4][:, order])
        new = new_samples(Sources(kernels=(("K", folder / "narrow.npy", None),)), gathered.recipe, "classification")
        assert_allclose(np.asarray(new.X)[:, :, 0], K[:4][:, order])
        write(folder / "above.csv", ids, K)
        new = new_samples(Sources(kernels=(("K", folder / "above.csv", None),)), gathered.recipe, "classification")
        assert new.names[0] == "1"  # ids of columns are no ids of new rows

    def test_fingerprints_tell_training_samples(self, folder):
        sources = self.sources(folder)
        gathered = training_samples(sources)
        again = new_samples(sources, gathered.recipe, "classification", np.array(["case", "control"]))
        assert again.prints == gathered.recipe.prints
        assert len(set(again.prints)) == len(again.prints)

    def test_tables_and_matrices_together(self, folder):
        """Samples that both have, with rows and columns of matrices in the same order."""
        K = np.eye(10) + 0.05 * np.arange(10)[:, None] * np.arange(10)
        ids = [f"s{i}" for i in (2, 7, 0, 1, 3, 4, 5, 6)]
        places = [int(name[1:]) for name in ids]
        write(folder / "K.csv", ["", *ids], [[name, *K[i, places]] for name, i in zip(ids, places, strict=True)])
        sources = self.sources(folder, kernels=(("K", folder / "K.csv", None),))
        gathered = training_samples(sources)
        kept = [0, 1, 2, 3, 4, 5, 6]  # no clinic for s7, no matrix for s8 and s9
        assert gathered.names == [f"s{i}" for i in kept]
        assert_allclose(np.asarray(gathered.X.matrices)[:, :, 0], K[np.ix_(kept, kept)])
        assert_allclose(gathered.X.tables["genes"], np.load(folder / "truth.npz")["genes"][kept])
        said = " ".join(gathered.matched.sentences())
        assert "without matrices: s8, s9" in said
        assert "without tables: s7" in said
        prepare = MixedKernels(named_bank("linear", gathered.X.tables), KernelRepair())
        square = prepare.fit_transform(gathered.X)
        assert square.names == ("linear on genes", "linear on clinic", "K")
        new = new_samples(sources, replace(gathered.recipe, prepare=prepare), "classification")
        assert_allclose(np.asarray(new.X), np.asarray(square), atol=1e-12)

    def test_bad_kernels(self, folder):
        np.save(folder / "K.npy", np.eye(10))
        np.save(folder / "L.npy", np.eye(9))
        np.save(folder / "M.npy", np.ones((10, 3)))
        target = f"{folder}/labels.csv:status"
        two = Sources(kernels=((None, folder / "K.npy", None), (None, folder / "L.npy", None)), target=target)
        assert "'K' has 10, 'L' has 9" in problem(training_samples, two)
        flat = Sources(kernels=(("M", folder / "M.npy", None),), target=target)
        assert "expected a square matrix" in problem(training_samples, flat)
        same = Sources(kernels=(("K", folder / "K.npy", None), ("K", folder / "K.npy", None)), target=target)
        assert "another kernel 'K'" in problem(training_samples, same)
        gathered = training_samples(Sources(kernels=(("K", folder / "K.npy", None),), target=target))
        new = Sources(kernels=(("K", folder / "M.npy", None),))
        assert "each of the 10 training samples, got 3" in problem(new_samples, new, gathered.recipe, "classification")

    def test_one_kind_of_samples(self, folder):
        both = Sources(data=folder / "genes.csv", views={"a": folder / "genes.csv"}, target="x")
        assert "both --data and --view" in problem(training_samples, both)
        assert "got none" in problem(training_samples, Sources(target="x"))
        flag = Sources(data=folder / "genes.csv", target="x", distances=True)
        assert "--distances is for matrices" in problem(training_samples, flag)
        assert "without a target" in problem(training_samples, Sources(data=folder / "genes.csv"))


class TestWriting:
    def test_existing_files_are_refused_before_the_work(self, tmp_path):
        path = tmp_path / "out.csv"
        refuse_output(path, force=False)
        write_whole(path, b"old")
        assert "the file exists" in problem(refuse_output, path, force=False)
        refuse_output(path, force=True)
        assert "is a folder" in problem(refuse_output, tmp_path, force=True)
        assert "an input too" in problem(refuse_output, path, force=True, inputs=[path])
        assert "cannot be written" in problem(refuse_output, Path("/proc/out.csv"), force=True)
        assert "no folder" in problem(refuse_output, tmp_path / "none" / "out.csv", force=False)

    def test_a_link_stays_a_link(self, tmp_path):
        write_whole(tmp_path / "real.csv", b"old")
        (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
        write_whole(tmp_path / "link.csv", b"new")
        assert (tmp_path / "link.csv").is_symlink()
        assert (tmp_path / "real.csv").read_bytes() == b"new"

    def test_a_failure_leaves_the_old_file_and_nothing_else(self, tmp_path):
        path = tmp_path / "out.csv"
        write_whole(path, b"old")
        with pytest.raises(TypeError):
            write_whole(path, "text, not bytes")
        assert path.read_bytes() == b"old"
        assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
