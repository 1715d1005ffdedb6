"""Published matrices: small files of the same form, in both formats of MATLAB."""

import sys

import numpy as np
import pytest
from scipy.io import savemat

from bemkl.datasets import DatasetNotFound
from bemkl.kernels import from_distances, mean_distance
from experiments.datasets import MatrixSet, SplitMatrixSet, load_published

HEADER = b"MATLAB 7.3 MAT-file, written by a test".ljust(124) + b"\x00\x02IM"
N_SAMPLES = 160
FLOWERS17 = {
    "distancematrices17gcfeat06.mat": ("D_colourgc", "D_shapegc", "D_texturegc"),
    "distancematrices17itfeat08.mat": ("D_hog", "D_hsv", "D_siftint", "D_siftbdy"),
}
FLOWERS102 = {"distancematrices102.mat": ("Dhsv", "Dhog", "Dsiftint", "Dsiftbdy")}


def save_version_73(path, arrays):
    h5py = pytest.importorskip("h5py", reason="h5py, which reads MATLAB 7.3, is not installed")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = np.asarray(array).T
        file.create_dataset("names", (2, 1), dtype=h5py.ref_dtype)
        file.create_group("settings")
    with path.open("r+b") as file:
        file.write(HEADER)


@pytest.fixture(params=["version 5", "version 7.3"])
def save(request):
    return savemat if request.param == "version 5" else save_version_73


def distances(seed, n_samples=N_SAMPLES):
    points = np.random.default_rng(seed).normal(size=n_samples)
    return np.abs(points[:, None] - points)


def matrices(files, n_samples=N_SAMPLES):
    return {
        file: {name: distances(100 * i + j, n_samples) for j, name in enumerate(names)}
        for i, (file, names) in enumerate(files.items())
    }


def flowers17_splits():
    rng = np.random.default_rng(0)
    splits = {}
    for k in (1, 2, 3):
        order = rng.permutation(N_SAMPLES) + 1
        splits |= {f"trn{k}": order[None, :80], f"val{k}": order[None, 80:120], f"tst{k}": order[None, 120:]}
    return splits


def write_flowers17(home, save=savemat):
    folder = home / "flowers17"
    folder.mkdir()
    stored = matrices(FLOWERS17)
    for file, arrays in stored.items():
        save(folder / file, arrays)
    save(folder / "datasplits.mat", flowers17_splits())
    return {name: array for arrays in stored.values() for name, array in arrays.items()}


def test_flowers17(tmp_path, save):
    stored, splits = write_flowers17(tmp_path, save), flowers17_splits()
    data = load_published("flowers17", tmp_path, check=False)
    assert set(data.matrices) == {"colourgc", "shapegc", "texturegc", "hog", "hsv", "siftint", "siftbdy"}
    for name, matrix in stored.items():
        np.testing.assert_array_equal(data.matrices[name.removeprefix("D_")], matrix)
    assert isinstance(data, MatrixSet)
    assert data.y.tolist() == [0] * 80 + [1] * 80
    assert data.train.shape == data.test.shape == (3, N_SAMPLES)
    assert set(np.flatnonzero(data.train[1]) + 1) == {*splits["trn2"].ravel(), *splits["val2"].ravel()}
    assert set(np.flatnonzero(data.test[1]) + 1) == {*splits["tst2"].ravel()}


def test_blocks_of_a_split_make_kernels(tmp_path):
    stored = write_flowers17(tmp_path)
    data = load_published("flowers17", tmp_path, check=False)
    split = data.split(2)
    train, test = np.flatnonzero(data.train[2]), np.flatnonzero(data.test[2])
    np.testing.assert_array_equal(split.test["hog"], stored["D_hog"][np.ix_(test, train)])
    np.testing.assert_array_equal(split.y_train, data.y[train])
    np.testing.assert_array_equal(split.y_test, data.y[test])
    kernel = from_distances(split.test["hog"], mean_distance(split.train["hog"]))
    assert kernel.shape == (40, 120)
    with pytest.raises(ValueError, match="index: expected a number below 3"):
        data.split(3)


def test_checksum_of_matrices_sees_their_order(tmp_path):
    checksums = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_flowers17(tmp_path / name)
        if name == "other":
            swapped = {name: array[::-1, ::-1] for name, array in matrices(FLOWERS17).popitem()[1].items()}
            savemat(tmp_path / name / "flowers17" / "distancematrices17itfeat08.mat", swapped)
        checksums.append(load_published("flowers17", tmp_path / name, check=False).checksum)
    assert checksums[0] != checksums[1]


def write_flowers102(home, save=savemat):
    folder = home / "flowers102"
    folder.mkdir()
    ((file, arrays),) = matrices(FLOWERS102, 30).items()
    save(folder / file, arrays)
    save(folder / "imagelabels.mat", {"labels": np.repeat([7, 9, 2], 10)[None]})
    numbers = np.arange(1, 31)[None]
    save(folder / "setid.mat", {"trnid": numbers[:, ::3], "valid": numbers[:, 1::3], "tstid": numbers[:, 2::3]})
    return arrays


def test_flowers102(tmp_path, save):
    stored = write_flowers102(tmp_path, save)
    data = load_published("flowers102", tmp_path, check=False)
    assert sorted(data.matrices) == ["hog", "hsv", "siftbdy", "siftint"]
    np.testing.assert_array_equal(data.matrices["siftint"], stored["Dsiftint"])
    assert np.unique(data.y).tolist() == [2, 7, 9]
    assert data.train.shape == (1, 30)
    assert data.split(0).test["hsv"].shape == (10, 20)


def write_caltech101(home, save=savemat, meta="cal101-meta"):
    """Kernels of three splits with 6 training and 4 test samples each; the third split is not the last by its name."""
    (home / "caltech101" / meta).mkdir(parents=True)
    stored = {}
    for k in (1, 2, 10):
        folder = home / "caltech101" / f"cal101-ker-15-{k}"
        folder.mkdir()
        for j, view in enumerate(("echi2_phowColor_L0", "el2_gb")):
            kernel = np.exp(-distances(10 * k + j, 10))
            save(folder / f"{view}.mat", {"matrix": kernel[:6, :6]})
            save(folder / f"test_{view}.mat", {"matrix": kernel[:6, 6:]})
            stored[f"15-{k}", view] = kernel
        labels = {"trainImageClasses": np.array([[1, 1, 2, 2, 3, 3]]), "testImageClasses": np.array([[3, 2, 1, 1]])}
        save(home / "caltech101" / meta / f"meta-15-{k}.mat", labels)
    return stored


@pytest.mark.parametrize("meta", ["cal101-meta", "."])
def test_caltech101(tmp_path, save, meta):
    stored = write_caltech101(tmp_path, save, meta)
    data = load_published("caltech101", tmp_path)
    assert list(data.splits) == ["15-1", "15-2", "15-10"]
    assert isinstance(data, SplitMatrixSet)
    for (name, view), kernel in stored.items():
        np.testing.assert_array_equal(data.splits[name].train[view], kernel[:6, :6])
        np.testing.assert_array_equal(data.splits[name].test[view], kernel[6:, :6])
    assert data.split(1) is data.splits["15-2"]
    assert data.split(0).y_train.tolist() == [1, 1, 2, 2, 3, 3]
    assert data.split(0).y_test.tolist() == [3, 2, 1, 1]


@pytest.mark.parametrize("name", ["flowers17", "flowers102", "caltech101"])
def test_files_that_are_missing(monkeypatch, tmp_path, name):
    monkeypatch.delenv("BEMKL_DATA", raising=False)
    with pytest.raises(DatasetNotFound, match="neither data_home nor BEMKL_DATA names a folder"):
        load_published(name)
    (tmp_path / name).mkdir()
    with pytest.raises(DatasetNotFound, match=r"(?s)expected .*robots\.ox\.ac\.uk") as caught:
        load_published(name, tmp_path)
    assert len(str(caught.value).splitlines()) == 3


def test_a_missing_file_is_named(tmp_path):
    write_flowers17(tmp_path)
    (tmp_path / "flowers17" / "datasplits.mat").unlink()
    with pytest.raises(DatasetNotFound, match=r"expected datasplits\.mat in its folder 'flowers17'"):
        load_published("flowers17", tmp_path)


def test_version_73_without_h5py(monkeypatch, tmp_path):
    write_flowers17(tmp_path)
    (tmp_path / "flowers17" / "datasplits.mat").write_bytes(HEADER.ljust(512, b"\0"))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"datasplits\.mat is a file of MATLAB 7\.3.*pip install h5py"):
        load_published("flowers17", tmp_path, check=False)


def test_matrices_of_another_size_are_refused(tmp_path):
    write_flowers17(tmp_path)
    with pytest.raises(ValueError, match=r"expected 7 matrices of 1360 samples, got 7 of 160\. check=False"):
        load_published("flowers17", tmp_path)


@pytest.mark.parametrize(
    ("file", "arrays", "message"),
    [
        ("datasplits.mat", {"trn1": [[1]]}, r"datasplits\.mat: expected a variable 'val1', got \['trn1'\]"),
        ("datasplits.mat", flowers17_splits() | {"tst1": [[0]]}, "numbers of samples from 1 to 160 .* got 0 to 0"),
        ("datasplits.mat", flowers17_splits() | {"tst3": [[161]]}, "got 161 to 161"),
        ("datasplits.mat", flowers17_splits() | {"tst3": flowers17_splits()["trn3"]}, "samples in both parts, got 80"),
        ("distancematrices17gcfeat06.mat", {"D": np.ones((3, 4))}, r"expected square matrices .* variables \['D'\]"),
        ("distancematrices17gcfeat06.mat", {"D": np.ones((3, 3))}, "same samples in all matrices, got these sizes"),
    ],
)
def test_flower_files_of_another_form(tmp_path, file, arrays, message):
    write_flowers17(tmp_path)
    savemat(tmp_path / "flowers17" / file, arrays)
    with pytest.raises(ValueError, match=message):
        load_published("flowers17", tmp_path, check=False)


def test_labels_have_to_fit(tmp_path):
    write_flowers102(tmp_path)
    savemat(tmp_path / "flowers102" / "imagelabels.mat", {"labels": [[1, 2]]})
    with pytest.raises(ValueError, match="expected 30 labels, one a sample, got 2"):
        load_published("flowers102", tmp_path, check=False)


def test_a_file_that_is_not_of_matlab(tmp_path):
    write_flowers17(tmp_path)
    (tmp_path / "flowers17" / "datasplits.mat").write_text("<html>Not found</html>" * 20, encoding="utf-8")
    with pytest.raises(ValueError, match=r"datasplits\.mat: not a MATLAB file, or a damaged one"):
        load_published("flowers17", tmp_path, check=False)


def test_caltech_files_of_another_form(tmp_path):
    write_caltech101(tmp_path)
    home = tmp_path / "caltech101"
    savemat(home / "cal101-ker-15-2" / "el2_gb.mat", {"matrix": np.ones((5, 5))})
    with pytest.raises(ValueError, match=r"el2_gb\.mat: expected a kernel of shape \(6, 6\)"):
        load_published("caltech101", tmp_path)
    (home / "cal101-ker-15-1" / "el2_gb.mat").unlink()
    with pytest.raises(ValueError, match=r"cal101-ker-15-1: expected as many kernels .* got 3 files and labels"):
        load_published("caltech101", tmp_path)
    (home / "cal101-meta" / "meta-15-1.mat").unlink()
    with pytest.raises(ValueError, match=r"labels in meta-15-1\.mat, got 3 files and no labels"):
        load_published("caltech101", tmp_path)


def test_caltech_archives_that_are_not_unpacked(tmp_path):
    (tmp_path / "caltech101").mkdir()
    (tmp_path / "caltech101" / "cal101-ker-15-1.tgz").write_bytes(b"")
    (tmp_path / "caltech101" / "meta-15-1.mat").write_bytes(b"")
    with pytest.raises(ValueError, match="Unpack the archives"):
        load_published("caltech101", tmp_path)
