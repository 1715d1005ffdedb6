"""Files of models taken apart and put together again, with checksums that fit."""

import io
import json
import zipfile

import numpy as np

from bemkl.persistence.model_file import HEADER, canonical, digest


def unpacked(content):
    """Return the parts of a file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts, header=None):
    """Return a file of these parts, whatever is in them, with a header that fits."""
    others = {name: part for name, part in parts.items() if name != HEADER}
    fields = json.loads(parts[HEADER])
    fields.pop("checksum")
    fields["checksums"] = {name: digest(part) for name, part in sorted(others.items())}
    fields |= header or {}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, part in others.items():
            archive.writestr(name, part)
        archive.writestr(HEADER, json.dumps(fields | {"checksum": digest(canonical(fields))}))
    return buffer.getvalue()


def changed_tree(content, change):
    """Return the file after a change of its tree of nodes, which may take place in it."""
    parts = unpacked(content)
    tree = json.loads(parts["schema.json"])
    tree = change(tree) or tree
    return packed(parts | {"schema.json": json.dumps(tree).encode()})


def attributes(tree):
    """Return the attributes of the model itself, by name."""
    return tree["content"]["content"]


def node(loader, number, name="builtins.list", **fields):
    """Return a node of a tree."""
    module, _, kind = name.rpartition(".")
    return {"__class__": kind, "__module__": module, "__loader__": loader, "__id__": number} | fields


def paths_of_nodes(tree, path=()):
    """Yield where the nodes of a tree are."""
    if isinstance(tree, dict) and isinstance(tree.get("__loader__"), str):
        yield path
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from paths_of_nodes(value, (*path, key))


def at(tree, path):
    """Return what is at a place."""
    for key in path:
        tree = tree[key]
    return tree


def as_part(array):
    """Return an array in NumPy's format."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
