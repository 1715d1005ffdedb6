"""
Distance and kernel matrices as their authors give them out, from `<data_home>/<name>/`.

Flowers17 and Flowers102 come from http://www.robots.ox.ac.uk/~vgg/data/flowers/, Caltech101 from
http://www.robots.ox.ac.uk/~vgg/software/MKL/. None of these files was at hand: names of files and variables and their
meaning were read in public code. Matrices are known by their shape, and views named after the variables.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.datasets import DatasetNotFound
from bemkl.datasets.loading import data_folder
from bemkl.files.matfiles import read_matfile
from experiments.datasets.catalogue import PUBLISHED, Published
from experiments.datasets.matrices import MatrixSet, MatrixSplit, SplitMatrixSet

_IMAGES_A_CLASS = 80
_Matrix = npt.NDArray[Any]


def load_published(name: str, data_home: Path | None = None, check: bool = True) -> MatrixSet | SplitMatrixSet:
    """Read published matrices; `check` refuses other numbers of matrices and samples."""
    known, folder = PUBLISHED[name], data_folder(data_home)
    home = None if folder is None else folder / known.name
    missing = [name for name in known.files if home is None or not list(home.glob(name))]
    if home is None or missing:
        where = "neither data_home nor BEMKL_DATA names a folder" if home is None else f"{home} has no such file"
        raise DatasetNotFound(
            f"The data set {known.name!r} could not be had:\n"
            f"  - directory: expected {', '.join(missing)} in its folder {known.name!r}; {where}\n"
            f"Download the files from {known.home_page}."
        )
    if known.name == "caltech101":
        return _caltech101(known, home)
    found = _flowers17(known, home) if known.name == "flowers17" else _flowers102(known, home)
    if check and (len(found.matrices), len(found.y)) != (known.n_matrices, known.n_samples):
        raise ValueError(
            f"{known.name}: expected {known.n_matrices} matrices of {known.n_samples} samples, got "
            f"{len(found.matrices)} of {len(found.y)}. check=False takes them."
        )
    return found


def _flowers17(known: Published, home: Path) -> MatrixSet:
    """Read seven matrices of two papers and three splits; the images are ordered by class."""
    *files, splits_file = known.files
    matrices = {view: matrix for name in files for view, matrix in _square_matrices(home / name).items()}
    n_samples = _common_size(known, matrices)
    stored = read_matfile(home / splits_file)
    parts = [[_array(stored, f"{part}{k}", splits_file) for part in ("trn", "val", "tst")] for k in (1, 2, 3)]
    return _matrix_set(known, matrices, np.arange(n_samples) // _IMAGES_A_CLASS, parts)


def _flowers102(known: Published, home: Path) -> MatrixSet:
    """Read four matrices, labels and one split."""
    file, splits_file, labels_file = known.files
    matrices = _square_matrices(home / file)
    n_samples = _common_size(known, matrices)
    labels = _array(read_matfile(home / labels_file), "labels", labels_file)
    if len(labels) != n_samples:
        raise ValueError(f"{labels_file}: expected {n_samples} labels, one a sample, got {len(labels)}.")
    stored = read_matfile(home / splits_file)
    return _matrix_set(known, matrices, labels, [[_array(stored, p, splits_file) for p in ("trnid", "valid", "tstid")]])


def _matrix_set(known: Published, matrices: dict[str, _Matrix], y: _Matrix, parts: list[list[_Matrix]]) -> MatrixSet:
    """Put together a set from splits of three parts: for training, for validation, which trains too, for testing."""
    train = np.array([_marked(known, len(y), np.concatenate(split[:2])) for split in parts])
    test = np.array([_marked(known, len(y), split[2]) for split in parts])
    if (train & test).any():
        raise ValueError(
            f"{known.name}: expected splits without samples in both parts, got {int((train & test).sum())}."
        )
    return MatrixSet(matrices, y, train, test, _checksum([*matrices.values(), y, train, test]))


def _caltech101(known: Published, home: Path) -> SplitMatrixSet:
    """Read the kernels of every split: a folder `cal101-ker-<split>` each, and the labels in `meta-<split>.mat`."""
    folders = sorted((folder for folder in home.glob(known.files[0]) if folder.is_dir()), key=_numbers_first)
    if not folders:
        raise ValueError(f"{known.name}: expected folders {known.files[0]}, got none. Unpack the archives.")
    splits = {folder.name.removeprefix("cal101-ker-"): _caltech_split(home, folder) for folder in folders}
    blocks = [a for s in splits.values() for a in (*s.train.values(), *s.test.values(), s.y_train, s.y_test)]
    return SplitMatrixSet(splits, _checksum(blocks))


def _caltech_split(home: Path, folder: Path) -> MatrixSplit:
    """
    Read the kernels of one split.

    In the order of their names, the first half of the files are kernels between training samples, and the second half
    those of the same views between training samples (rows) and test samples (columns).
    """
    meta = f"meta-{folder.name.removeprefix('cal101-ker-')}.mat"
    labels_file = next(iter(sorted(home.rglob(f"*{meta}"))), None)
    files = sorted(folder.glob("*.mat"))
    if labels_file is None or not files or len(files) % 2:
        raise ValueError(
            f"{folder.name}: expected as many kernels for testing as for training, and labels in {meta}, got "
            f"{len(files)} files and {'no labels' if labels_file is None else 'labels'}. Unpack the archives again."
        )
    stored = read_matfile(labels_file)
    y_train, y_test = (_array(stored, f"{part}ImageClasses", labels_file.name) for part in ("train", "test"))
    half = len(files) // 2
    sizes = (len(y_train), len(y_train)), (len(y_train), len(y_test))
    train = {file.stem: _kernel(file, sizes[0]) for file in files[:half]}
    test = {view: _kernel(file, sizes[1]).T for view, file in zip(train, files[half:], strict=True)}
    return MatrixSplit(train, test, y_train, y_test)


def _kernel(path: Path, shape: tuple[int, int]) -> _Matrix:
    fitting = [array for array in read_matfile(path).values() if array.shape == shape]
    if not fitting:
        raise ValueError(
            f"{path.name}: expected a kernel of shape {shape}, by the labels of its split, and found none."
        )
    return fitting[0]


def _square_matrices(path: Path) -> dict[str, _Matrix]:
    """Take every square matrix of a file, named after its variable without the D for distance."""
    arrays = read_matfile(path)
    square = {name: array for name, array in arrays.items() if array.shape[0] == array.shape[1] > 1}
    if not square:
        raise ValueError(f"{path.name}: expected square matrices of distances, got the variables {sorted(arrays)}.")
    return {re.sub("^D_?", "", name) or name: array for name, array in square.items()}


def _common_size(known: Published, matrices: dict[str, _Matrix]) -> int:
    sizes = {view: len(matrix) for view, matrix in matrices.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"{known.name}: expected the same samples in all matrices, got these sizes: {sizes}.")
    return next(iter(sizes.values()))


def _array(stored: dict[str, _Matrix], name: str, file: str) -> npt.NDArray[np.int64]:
    if name not in stored:
        raise ValueError(f"{file}: expected a variable {name!r}, got {sorted(stored)}. Download it again.")
    return stored[name].ravel().astype(np.int64)


def _marked(known: Published, n_samples: int, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Turn numbers of samples, which start at 1, into marks."""
    if numbers.min() < 1 or numbers.max() > n_samples:
        raise ValueError(
            f"{known.name}: expected numbers of samples from 1 to {n_samples} in the splits, got {numbers.min()} to "
            f"{numbers.max()}."
        )
    marks = np.zeros(n_samples, dtype=np.bool_)
    marks[numbers - 1] = True
    return marks


def _numbers_first(folder: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", folder.name)]


def _checksum(arrays: Iterable[_Matrix]) -> str:
    """Digest of arrays as they are, in their order."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
