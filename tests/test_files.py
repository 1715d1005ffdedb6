"""Files become samples, and what is wrong with one is said in two lines."""

import csv

import h5py
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.io import savemat

from bemkl.files import InputError, Sources, new_samples, training_samples
from bemkl.files.matching import Part, match
from bemkl.files.matrices import read_matrices
from bemkl.files.reading import read_table
from bemkl.files.repairs import checked_kernel, project
from bemkl.files.targets import read_target
from bemkl.files.writing import refuse_existing, write_whole
from bemkl.kernels import from_distances

RNG = np.random.default_rng(0)


def write(path, header, rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    return path


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
        ("content", "expected"),
        [
            ("a;b;c\n1;2;3\n", "--delimiter ';'"),
            ("", "empty"),
            ("a,b\n", "no rows"),
            ("a,b\n1,2\n3\n", "row 3: expected 2 cells"),
            ("a,a\n1,2\n", "different names"),
            ("1,2\n3,4\n", "first row holds numbers"),
        ],
    )
    def test_bad_text(self, tmp_path, content, expected):
        path = tmp_path / "t.csv"
        path.write_text(content)
        assert expected in problem(read_table, path)

    def test_bad_files(self, tmp_path):
        assert "does not exist" in problem(read_table, tmp_path / "none.csv")
        assert "a table ends with" in problem(read_table, tmp_path / "t.xlsx")
        (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01,\x02")
        assert "not a text file" in problem(read_table, tmp_path / "binary.csv")
        (tmp_path / "fake.npy").write_text("no array")
        assert "not a file of NumPy" in problem(read_table, tmp_path / "fake.npy")
        (tmp_path / "fake.parquet").write_text("no table")
        assert "not a Parquet file" in problem(read_table, tmp_path / "fake.parquet")

    def test_pickles_are_not_loaded(self, tmp_path):
        np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
        assert "not a file of NumPy" in problem(read_table, tmp_path / "x.npy")

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

    def test_which_column(self, tmp_path):
        path = write(tmp_path / "y.csv", ["id", "u", "v"], [["a", 0, 1], ["b", 1, 0]])
        assert "which column is the target" in problem(read_target, str(path), None, None)
        assert "no column 'w'" in problem(read_target, f"{path}:w", None, None)
        several = read_target(f"{path}:u,v", None, None)
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
        np.savez(tmp_path / "empty.npz", s=1.0)
        assert "no matrix of numbers" in problem(read_matrices, tmp_path / "empty.npz")


class TestRepairs:
    def test_negative_eigenvalues_are_told_and_clipped(self, tmp_path):
        vectors, _ = np.linalg.qr(RNG.normal(size=(6, 6)))
        values = np.array([3.0, 2.0, 1.0, 0.5, -0.2, -0.7])
        K = (vectors * values) @ vectors.T
        text = problem(checked_kernel, "K", tmp_path, K, repair=False)
        assert "2 of 6 eigenvalues are negative, the smallest is -0.7 and the largest 3" in text
        repaired = checked_kernel("K", tmp_path, K, repair=True)
        assert_allclose(repaired.kernel, (vectors * values.clip(0.0)) @ vectors.T, atol=1e-12)
        # What is done to new samples agrees with what was done to training samples.
        assert_allclose(project(K, repaired.negative), repaired.kernel, atol=1e-12)

    def test_asymmetry(self, tmp_path):
        K = np.eye(3) + 0.1
        K[0, 2] = 0.4
        assert "1 and 3 have 0.4 and 0.1" in problem(checked_kernel, "K", tmp_path, K, repair=False)
        assert_allclose(checked_kernel("K", tmp_path, K, repair=True).kernel[0, 2], 0.25)

    def test_a_good_kernel_stays(self, tmp_path):
        X = RNG.normal(size=(8, 2))
        found = checked_kernel("K", tmp_path, X @ X.T, repair=False)
        assert_allclose(found.kernel, X @ X.T, atol=1e-15)
        assert found.negative is None


class TestSamples:
    def sources(self, folder, **options):
        views = {"genes": folder / "genes.csv", "clinic": folder / "clinic.tsv"}
        return Sources(views=views, **options)

    def test_rows_are_matched(self, folder):
        gathered = training_samples(self.sources(folder, target=f"{folder}/labels.csv:status"))
        truth = np.load(folder / "truth.npz")
        kept = [0, 1, 2, 3, 4, 5, 6, 8, 9]
        assert gathered.names == [f"s{i}" for i in kept]
        assert_allclose(gathered.X["genes"], truth["genes"][kept])
        assert_allclose(gathered.X["clinic"], truth["clinic"][kept])
        assert gathered.y.tolist() == [["case", "control"][i % 2] for i in kept]
        assert gathered.matched.unmatched[f"clinic ({folder}/clinic.tsv)"] == ["stranger"]
        assert any("s7" in sentence for sentence in gathered.matched.sentences())

    def test_incomplete_samples_are_kept_if_asked(self, folder):
        gathered = training_samples(self.sources(folder, target=f"{folder}/labels.csv:status", keep_incomplete=True))
        assert len(gathered.names) == 10
        assert np.isnan(gathered.X["clinic"][7]).all()

    def test_target_in_the_same_file_is_no_feature(self, folder):
        sources = Sources(data=folder / "labels.csv", target=f"{folder}/labels.csv:status")
        assert list(training_samples(sources).X) == ["score"]

    def test_samples_without_target_are_left_out(self, folder):
        write(folder / "labels.csv", ["id", "status"], [["s0", "case"], ["s1", ""], ["s2", "control"]])
        gathered = training_samples(self.sources(folder, target=f"{folder}/labels.csv"))
        assert gathered.names == ["s0", "s2"]

    def test_partly_missing_rows_are_named(self, folder):
        write(folder / "genes.csv", ["id", "a", "b"], [["s0", 1, 2], ["s1", "", 3]])
        text = problem(training_samples, self.sources(folder, target=f"{folder}/labels.csv:status"))
        assert "sample s1, column 'a'" in text

    def test_new_samples_have_the_columns_of_training(self, folder):
        gathered = training_samples(self.sources(folder, target=f"{folder}/labels.csv:status"))
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
        gathered = training_samples(self.sources(folder, target=f"{folder}/labels.csv:status"))
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
        assert_allclose(np.asarray(gathered.X)[:, :, 0], expected)
        new = new_samples(Sources(kernels=(("near", folder / "D.csv", None),)), gathered.recipe, "regression")
        places = [gathered.names.index(name) for name in new.names]
        assert_allclose(np.asarray(new.X)[:, :, 0], expected[places])

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
        assert "--data and --view" in problem(training_samples, both)
        assert "got none" in problem(training_samples, Sources(target="x"))
        assert "without a target" in problem(training_samples, Sources(data=folder / "genes.csv"))


class TestWriting:
    def test_existing_files_are_refused_before_the_work(self, tmp_path):
        path = tmp_path / "out.csv"
        refuse_existing(path, force=False)
        write_whole(path, b"old")
        assert "the file exists" in problem(refuse_existing, path, force=False)
        refuse_existing(path, force=True)
        assert "is a folder" in problem(refuse_existing, tmp_path, force=True)
        assert "no folder" in problem(refuse_existing, tmp_path / "none" / "out.csv", force=False)

    def test_a_failure_leaves_the_old_file_and_nothing_else(self, tmp_path):
        path = tmp_path / "out.csv"
        write_whole(path, b"old")
        with pytest.raises(TypeError):
            write_whole(path, "text, not bytes")
        assert path.read_bytes() == b"old"
        assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
