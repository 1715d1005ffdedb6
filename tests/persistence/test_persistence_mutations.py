"""
Changed files: what is damaged is refused or the same; what is forged fits together, or is refused when it is loaded.

Forged files have the right checksums. They may hold any numbers, so that what a model of them predicts may be
anything, but it predicts.
"""

import io
import json
from contextlib import suppress
from copy import deepcopy

import numpy as np
import pytest
from model_files import as_part, at, packed, paths_of_nodes, unpacked
from saved_models import MODELS, answers

from bemkl import load_model, save_model
from bemkl.exceptions import ModelFileError


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.skops"
    contents = {}
    for kind, (fit, _) in MODELS.items():
        save_model(fit(), path)
        contents[kind] = path.read_bytes()
    return contents


VALUES = ["null", "true", "0", "1", "-1", "7", "1e300", "-2.5", "9" * 30]
VALUES += ["NaN", "Infinity", '""', '"x"', '"paper"', "[]"]
NUMBERS = [0.0, -1.0, 2.0, 1e6, 1e300, np.nan, np.inf]


def change_value(tree, parts, rng):
    """Replace a number, string or truth value."""
    places = [path for path in paths_of_nodes(tree) if at(tree, path)["__loader__"] == "JsonNode"]
    found = at(tree, places[rng.integers(len(places))])
    found["content"], found["__id__"] = VALUES[rng.integers(len(VALUES))], int(rng.integers(2**60, 2**61))


def swap_nodes(tree, parts, rng):
    """Exchange two nodes, or put one in the place of another."""
    places = [path for path in paths_of_nodes(tree) if path]
    first, second = (places[rng.integers(len(places))] for _ in range(2))
    if first[: len(second)] != second and second[: len(first)] != first:
        here, there = deepcopy(at(tree, first)), deepcopy(at(tree, second))
        at(tree, first[:-1])[first[-1]] = there
        if rng.integers(2):
            at(tree, second[:-1])[second[-1]] = here


def drop_node(tree, parts, rng):
    """Remove a node, or an entry of a dict with its key."""
    places = [path for path in paths_of_nodes(tree) if path]
    path = places[rng.integers(len(places))]
    del at(tree, path[:-1])[path[-1]]


def rename_entry(tree, parts, rng):
    """Give an entry of a dict another name."""
    places = [path for path in paths_of_nodes(tree) if at(tree, path)["__loader__"] == "DictNode"]
    entries = at(tree, places[rng.integers(len(places))])["content"]
    if entries:
        name = list(entries)[rng.integers(len(entries))]
        entries[["extra", "predict", "_blocks", "points"][rng.integers(4)]] = entries.pop(name)


def change_kind(tree, parts, rng):
    """Give a node the class or kind of another one."""
    places = [path for path in paths_of_nodes(tree) if path]
    first, second = (at(tree, places[rng.integers(len(places))]) for _ in range(2))
    field = ["__class__", "__module__", "__loader__"][rng.integers(3)]
    first[field] = second[field]


def change_array(tree, parts, rng):
    """Change shape, type or numbers of an array."""
    names = [name for name in parts if name.endswith(".npy")]
    name = names[rng.integers(len(names))]
    array = np.load(io.BytesIO(parts[name]))
    changed = np.atleast_1d(array)
    if array.dtype.kind == "f" and array.size and rng.integers(3) == 0:
        changed = array.copy()
        changed.flat[rng.integers(array.size)] = NUMBERS[rng.integers(len(NUMBERS))]
    else:
        kinds = [np.int64, np.float32, np.complex128, bool, "U4", np.longdouble]
        changes = [
            lambda: changed[:-1],
            lambda: np.concatenate([changed, changed]),
            lambda: changed.T,
            lambda: changed.ravel(),
            lambda: changed[None],
            lambda: changed[..., :0],
            lambda: changed.astype(kinds[rng.integers(len(kinds))]) if changed.dtype.kind in "fiub" else changed[:0],
        ]
        changed = changes[rng.integers(len(changes))]()
    parts[name] = as_part(changed)


def swap_arrays(tree, parts, rng):
    """Exchange two arrays."""
    names = [name for name in parts if name.endswith(".npy")]
    first, second = (names[rng.integers(len(names))] for _ in range(2))
    parts[first], parts[second] = parts[second], parts[first]


CHANGES = [change_value, change_value, swap_nodes, drop_node, rename_entry, change_kind, change_array, change_array]
CHANGES.append(swap_arrays)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a forger's numbers may overflow
@pytest.mark.parametrize("kind", MODELS)
def test_a_forged_file_is_refused_or_predicts(kind, contents, tmp_path):
    rng = np.random.default_rng(len(kind))
    refused = 0
    for _ in range(20):
        parts = unpacked(contents[kind])
        tree = json.loads(parts["schema.json"])
        CHANGES[rng.integers(len(CHANGES))](tree, parts, rng)
        parts["schema.json"] = json.dumps(tree).encode()
        (tmp_path / "model.skops").write_bytes(packed(parts))
        try:
            model = load_model(tmp_path / "model.skops")
        except ModelFileError:
            refused += 1
            continue
        # Numbers of the forger's may be too large for samples of ours, which is told by a sentence.
        with suppress(ValueError):
            list(answers(model, MODELS[kind][1]))
    assert refused > 0


@pytest.mark.parametrize("kind", MODELS)
def test_a_damaged_file_is_refused_or_the_same(kind, contents, tmp_path):
    rng = np.random.default_rng(len(kind))
    content = contents[kind]
    for case in range(40):
        altered, place = bytearray(content), int(rng.integers(len(content)))
        near_the_end = len(content) - 1 - int(rng.integers(4000))
        if case % 5 == 0:
            altered[place] ^= int(rng.integers(1, 256))
        elif case % 5 == 1:
            altered[near_the_end] ^= int(rng.integers(1, 256))
        elif case % 5 == 2:
            altered = altered[:place]
        elif case % 5 == 3:
            altered[place:place] = rng.bytes(50)
        else:
            altered[place : place + 50] = b""
        (tmp_path / "model.skops").write_bytes(bytes(altered))
        try:
            load_model(tmp_path / "model.skops")
        except ModelFileError:
            continue
        # A few bytes of an archive mean nothing, such as times of entries.
        assert unpacked(bytes(altered)) == unpacked(content)
