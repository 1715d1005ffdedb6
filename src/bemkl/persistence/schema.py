"""
The tree of nodes that skops builds a model from, looked at before skops does.

A node with the number of an earlier one is that one again, and skops writes it out in full each time: the tree is as
large as its text. A forged file could stand large nodes in for small ones, level by level, and the tree would grow
tenfold a level. Here all nodes of one number have to be of one size, which rules that out, and circles too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bemkl.exceptions import ModelFileError
from bemkl.persistence.members import check_array, check_sparse

NAME = "schema.json"
"""What the tree is called in the file."""

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


class Outline:
    """What the tree of a model refers to."""

    def __init__(self, parts: Mapping[str, bytes]) -> None:
        self.objects: set[str] = set()
        self.values: set[str] = set()
        self.called: set[str] = set()
        self._parts = parts
        self._owners: dict[str, int] = {}
        self._sparse: dict[str, bytes] = {}
        self._sizes: dict[int, tuple[str, int]] = {}
        try:
            tree = json.loads(parts[NAME])
            protocol = tree["protocol"]
            self._visit(tree, 0)
        except ModelFileError:
            raise
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelFileError(f"the model was altered, its parts cannot be read ({error!r:.200}).") from None
        if type(protocol) is not int or protocol < _OLDEST:
            raise ModelFileError(f"the model was altered, bemkl never wrote the protocol {protocol!r:.40} of skops.")
        check_sparse(self._sparse, sum(map(len, parts.values())))

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
            dtype = check_array(file, self._parts[file])
            # Some types of numbers, when called with another number, take it for the size of an empty value.
            if name not in ("numpy.ndarray", f"{dtype.type.__module__}.{dtype.type.__name__}"):
                raise ModelFileError(f"the model was altered, values of type {dtype!s:.40} stand for a {name:.80}.")
