"""
The file of a saved model, looked at before anything is built: its directory, its arrays, and its tree of nodes.

`save_model` stores parts as they are, one after the other, without compression. So parts can never be larger than the
file, whatever a forged directory claims, and no bound on a ratio has to be guessed.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from bemkl.exceptions import ModelFileError

_FIRST, _LAST = b"PK\x03\x04", b"PK\x05\x06"
_LAST_SIZE = 22
_NAME = re.compile(r"[A-Za-z0-9_-]+\.(json|npy|npz|bin)")
_NOT_A_MODEL = "not a model, or a truncated or altered one"
_ADVICE = "Name the file that save_model or bemkl fit wrote, or write it again."

_TREE = "schema.json"
"""What the tree of nodes is called in the file."""

_DEEPEST = 400
_OLDEST = 1
"""The first protocol of skops in which all nodes are named in the same way."""

_OBJECTS = {"ObjectNode"}
_VALUES = {"FunctionNode", "TypeNode"}
_DATA = {
    *("DictNode", "DefaultDictNode", "ListNode", "TupleNode", "SetNode", "SliceNode", "JsonNode"),
    *("NdArrayNode", "MaskedArrayNode", "SparseMatrixNode", "DTypeNode", "BytesNode", "BytearrayNode"),
    "RandomStateNode",
}
_DATA_MODULES = ("builtins", "collections", "numpy", "scipy")

_SPARSE_BYTES = 64 * 2**20
_SPARSE_RATIO = 20
"""
How large sparse matrices, the only parts that are compressed, may become: 64 MiB together or twenty times the file.
No estimator of this package has any, only others in a pipeline.
"""


def read_content(path: str | os.PathLike[str]) -> bytes:
    """Read a file that begins and ends like the archive of a model."""
    with Path(path).open("rb") as file:
        try:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            first = file.read(len(_FIRST))
            file.seek(max(0, size - _LAST_SIZE))
            last = file.read(_LAST_SIZE)
            if first != _FIRST or len(last) != _LAST_SIZE or not last.startswith(_LAST):
                raise ModelFileError(f"{_NOT_A_MODEL} (it does not begin and end like one). {_ADVICE}")
            file.seek(0)
            return file.read(size)
        except (OSError, MemoryError) as error:
            raise ModelFileError(f"the file cannot be read ({error!r:.200}).") from None


def read_parts(content: bytes) -> dict[str, bytes]:
    """Check the directory of an archive, and read its parts."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_directory(archive.infolist(), len(content))
            return {name: archive.read(name) for name in archive.namelist()}
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"{_NOT_A_MODEL} ({error!r:.200}). {_ADVICE}") from None


def _check_directory(parts: list[zipfile.ZipInfo], size: int) -> None:
    names = [part.filename for part in parts]
    if len(set(names)) < len(names):
        raise ModelFileError("the model was altered, it has two parts of the same name.")
    for part in parts:
        kind = stat.S_IFMT(part.external_attr >> 16)
        if not _NAME.fullmatch(part.filename) or kind not in (0, stat.S_IFREG):
            raise ModelFileError(f"the model was altered, save_model writes no part {part.filename!r:.80}.")
        if part.compress_type != zipfile.ZIP_STORED or part.flag_bits or part.compress_size != part.file_size:
            raise ModelFileError(
                f"the part {part.filename} is compressed or encrypted, and save_model stores parts as they are. Load "
                "the file that save_model wrote."
            )
    total = sum(part.file_size for part in parts)
    if total > size:
        raise ModelFileError(f"the model was altered, its parts claim {total} bytes, but the file has {size}.")


class Outline:
    """
    What the tree of nodes refers to, which skops builds a model from.

    A node with the number of an earlier one is that one again, and skops writes it out in full each time: the tree is
    as large as its text. A forged file could stand large nodes in for small ones, level by level, and the tree would
    grow tenfold a level. Here all nodes of one number have to be of one size, which rules that out, and circles too.
    """

    def __init__(self, parts: Mapping[str, bytes]) -> None:
        self.objects: set[str] = set()
        self.values: set[str] = set()
        self.called: set[str] = set()
        self._parts = parts
        self._owners: dict[str, int] = {}
        self._sparse: dict[str, bytes] = {}
        self._sizes: dict[int, tuple[str, int]] = {}
        try:
            tree = json.loads(parts[_TREE])
            protocol = tree["protocol"]
            self._visit(tree, 0)
        except ModelFileError:
            raise
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelFileError(f"the model was altered, its parts cannot be read ({error!r:.200}).") from None
        if type(protocol) is not int or protocol < _OLDEST:
            raise ModelFileError(f"the model was altered, bemkl never wrote the protocol {protocol!r:.40} of skops.")
        _check_sparse(self._sparse, sum(map(len, parts.values())))

    def _visit(self, value: Any, depth: int) -> int:
        """Check a piece of the tree, and return how many nodes it has."""
        if depth > _DEEPEST:
            raise ModelFileError(f"the model was altered, its parts are nested more than {_DEEPEST} levels deep.")
        count = 0
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, dict | list):
                count += self._visit(item, depth + 1)
        if isinstance(value, dict) and isinstance(value.get("__loader__"), str):
            count += 1
            self._check(value, count)
        return count

    def _check(self, node: dict[str, Any], count: int) -> None:
        """Check a node by itself, and note what it refers to."""
        number, loader, file = node.get("__id__"), node["__loader__"], node.get("file")
        module, name = node.get("__module__"), f"{node.get('__module__')}.{node.get('__class__')}"
        same = (f"{loader} {name}", count)
        if type(number) is not int or number <= 0 or self._sizes.setdefault(number, same) != same:
            raise ModelFileError(f"the model was altered, a {name:.80} in it stands for another part than it says.")
        if loader in _OBJECTS:
            self.objects.add(name)
        elif loader in _VALUES:
            self.values.add(name)
        elif loader not in _DATA or str(module).partition(".")[0] not in _DATA_MODULES:
            self.called.add(name)
        if file is not None:
            self._check_file(name, loader, file, number)

    def _check_file(self, name: str, loader: str, file: Any, number: int) -> None:
        if not isinstance(file, str) or file not in self._parts or self._owners.setdefault(file, number) != number:
            raise ModelFileError(
                f"the model was altered, a {name:.80} takes the part {file!r:.80}, which is not its own."
            )
        if loader == "SparseMatrixNode":
            self._sparse[file] = self._parts[file]
        if loader == "NdArrayNode":
            dtype = _check_array(file, self._parts[file])
            # Some types of numbers, when called with another number, take it for the size of an empty value.
            if name not in ("numpy.ndarray", f"{dtype.type.__module__}.{dtype.type.__name__}"):
                raise ModelFileError(f"the model was altered, values of type {dtype!s:.40} stand for a {name:.80}.")


def _check_array(name: str, part: bytes) -> np.dtype[Any]:
    """Compare the header of an array with the size of its part."""
    return _check_values(name, io.BytesIO(part), len(part))


def _check_sparse(parts: dict[str, bytes], size: int) -> None:
    """Bound what sparse matrices become when they are decompressed."""
    budget = max(_SPARSE_BYTES, _SPARSE_RATIO * size)
    for name, part in parts.items():
        try:
            with zipfile.ZipFile(io.BytesIO(part)) as archive:
                arrays = archive.infolist()
                budget -= sum(array.file_size for array in arrays)
                if budget < 0:
                    raise ModelFileError(f"the model was altered, the sparse matrix {name} claims too many values.")
                if any(array.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for array in arrays):
                    raise ModelFileError(f"the model was altered, {name} is compressed in a way that SciPy never uses.")
                for array in arrays:
                    # NumPy reads no more of an array than its header says, whatever follows.
                    with archive.open(array) as stream:
                        _check_values(f"{array.filename!r:.40} of {name}", stream, array.file_size)
        except ModelFileError:
            raise
        except Exception as error:
            raise ModelFileError(f"the model was altered, {name} is no sparse matrix ({error!r:.200}).") from None


def _check_values(name: str, stream: IO[bytes], size: int) -> np.dtype[Any]:
    """Refuse an array whose header does not fit a size, or that holds other things than plain values."""
    try:
        major, _ = np.lib.format.read_magic(stream)
        readers = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
        shape, _, dtype = readers[major](stream)
        whole = all(isinstance(count, int) and count >= 0 for count in shape)
        left = size - stream.tell()
    except Exception as error:
        raise ModelFileError(f"the model was altered, {name} is no array ({error!r:.200}).") from None
    if not whole or dtype.kind not in "biufcUSmM":
        raise ModelFileError(
            f"the model was altered, the array {name} has shape {shape!s:.60} and type {dtype!s:.40}. Expected "
            "numbers, truth values, times or strings."
        )
    # Any number of values would fit where one takes no bytes.
    if math.prod(shape) * max(1, dtype.itemsize) != left:
        raise ModelFileError(
            f"the model was altered, the array {name} claims shape {shape!s:.60} and type {dtype!s:.40}, which does "
            f"not fit its {left} bytes."
        )
    return dtype
