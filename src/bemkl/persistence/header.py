"""The header of a saved model: format, class, parameters, versions, and a checksum of every part of the file."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from sklearn.base import BaseEstimator

from bemkl.exceptions import ModelFileError

NAME = "bemkl.json"
"""What the header is called in the file."""

_FORMAT = 2
_PACKAGES = ("bemkl", "numpy", "scipy", "scikit-learn", "skops")


def write_header(model: BaseEstimator, parts: Mapping[str, bytes]) -> str:
    """Describe a model and the parts of its file."""
    header = {
        "format": _FORMAT,
        "class": class_name(model),
        "parameters": sorted(model.get_params(deep=False)),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
        "checksums": {name: digest(part) for name, part in sorted(parts.items())},
    }
    return json.dumps(header | {"checksum": digest(canonical(header))}, indent=1)


def read_header(parts: Mapping[str, bytes]) -> dict[str, Any]:
    """Read the header of a file, and compare every part with its checksum."""
    if NAME not in parts:
        raise ModelFileError(f"not a model that save_model saved, it has no {NAME} in it.")
    try:
        header: dict[str, Any] = json.loads(parts[NAME])
        claimed = header.pop("checksum")
        intact = claimed == digest(canonical(header)) and header["checksums"] == {
            name: digest(part) for name, part in sorted(parts.items()) if name != NAME
        }
        newer = header["format"] > _FORMAT
        numbers = [header["versions"][package].split(".") for package in ("bemkl", "scikit-learn")]
        complete = all(numbers) and isinstance(header["class"], str) and isinstance(header["parameters"], list)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelFileError("the header of the model was altered.") from None
    if not (intact and complete):
        raise ModelFileError("the model was altered after it was saved, its checksums do not fit.")
    if newer:
        raise ModelFileError(
            f"saved by bemkl {header['versions']['bemkl']} in a format that this version, {version('bemkl')}, does not "
            "know. Update bemkl."
        )
    return header


def class_name(model: Any) -> str:
    """Return the full name of a model's class."""
    return f"{type(model).__module__}.{type(model).__qualname__}"


def canonical(header: dict[str, Any]) -> bytes:
    """Write a header in the one way that its own checksum is taken of."""
    return json.dumps(header, sort_keys=True).encode()


def digest(content: bytes) -> str:
    """Return the checksum of a part."""
    return hashlib.sha256(content).hexdigest()
