"""Saving and loading of fitted models: skops files with versions and checksums, which run no code when loaded."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import platform
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import skops.io
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.utils.validation import check_is_fitted

from bemkl.exceptions import ModelFileError
from bemkl.files import write_whole
from bemkl.kernels.registry import kernel_functions

_HEADER = "bemkl.json"
_FORMAT = 1
_OWN = ("bemkl.distributions", "bemkl.estimators", "bemkl.files", "bemkl.inference", "bemkl.kernels")
_CALLERS = {"ConstructorFromReduceNode", "ReduceNode", "MethodNode", "PartialNode", "OperatorFuncNode", "LossNode"}


def save_model(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """
    Save a fitted model.

    The file is a skops file with a header: versions, parameters, and a checksum of every part. It replaces an
    older file of that name only when it is complete.

    Parameters
    ----------
    model : BaseEstimator
        A fitted classifier, regressor, bank, or a pipeline with one.
    path : str or path
        Where to save it; ".skops" is the usual ending.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from bemkl import BEMKLRegressor, load_model, save_model
    >>> model = BEMKLRegressor(kernel_prior="sparse").fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, pathlib.Path(folder) / "model.skops")
    ...     again = load_model(pathlib.Path(folder) / "model.skops")
    >>> bool((again.predict([[0.5]]) == model.predict([[0.5]])).all())
    True
    """
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"model: expected a fitted estimator, got {model!r}.")
    check_is_fitted(model)
    _refuse_names(model)
    content = skops.io.dumps(model)
    nameless = [name for name in skops.io.get_untrusted_types(data=content) if "<" in name]
    if nameless:
        raise ValueError(
            f"model: it uses {', '.join(nameless)}, which no file can name. Define kernel functions at the top level "
            "of a module."
        )
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        header = {
            "format": _FORMAT,
            "class": _class_name(model),
            "parameters": sorted(model.get_params(deep=False)),
            "versions": _versions(),
            "checksums": {name: _digest(archive.read(name)) for name in sorted(archive.namelist())},
        }
        archive.writestr(_HEADER, json.dumps(header | {"checksum": _digest(_canonical(header))}, indent=1))
    write_whole(Path(path), buffer.getvalue())


def _refuse_names(model: BaseEstimator) -> None:
    """Refuse names of tasks that no file can hold without code, or, as keys of a dict, without mixing them up."""
    strange = [name for name in getattr(model, "tasks_", ()) if not _is_plain(name)]
    if strange:
        raise ValueError(
            f"model: a file can hold tasks whose names are strings, numbers or tuples of these, got {strange[0]!r}. "
            "Fit with names such as str(task)."
        )
    for parameter, value in model.get_params(deep=False).items():
        keys = list(value) if isinstance(value, Mapping) else []
        strange = [key for key in keys if isinstance(key, bool | tuple) or not _is_plain(key)]
        if strange:
            raise ValueError(
                f"model: a file can hold a dict whose keys are strings or numbers, but {parameter} has the key "
                f"{strange[0]!r}. Name tasks by strings or numbers; or, as only fit needs it, set {parameter} to its "
                "default before saving."
            )


def _is_plain(name: Any) -> bool:
    if isinstance(name, tuple):
        return all(map(_is_plain, name))
    return name is None or isinstance(name, str | int | float | np.generic)


def load_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """
    Load a model that `save_model` saved.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : sequence of str
        Full names of functions and classes that the file may refer to beyond those of this package and those that skops
        trusts of NumPy, SciPy and scikit-learn. Kernel functions of your own belong here; the error names what is
        missing.

    Returns
    -------
    BaseEstimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, not a model, of a newer format, or refers to what is not trusted. Nothing of
        it has been run then.
    """
    content = Path(path).read_bytes()
    header = _checked_header(path, content)
    try:
        named = skops.io.get_untrusted_types(data=content)
        strangers = [name for name in named if not _is_known(name)] + _calls(content)
        strangers = [name for name in strangers if name not in trusted]
    except Exception as error:
        raise ModelFileError(f"{path}: the model was altered, its parts cannot be read ({error!r:.200}).") from None
    if strangers:
        raise ModelFileError(
            f"{path}: the model refers to {', '.join(strangers)}, which could run any code. If you know where the file "
            f"comes from, pass trusted={strangers!r}."
        )
    for package in ("bemkl", "scikit-learn"):
        if header["versions"][package].split(".")[:2] != version(package).split(".")[:2]:
            warnings.warn(
                f"{path} was saved with {package} {header['versions'][package]}, this is {version(package)}. Compare "
                "some predictions before you rely on it.",
                UserWarning,
                stacklevel=2,
            )
    try:
        model = skops.io.loads(content, trusted=named)
        found = (_class_name(model), sorted(model.get_params(deep=False)))
    except Exception as error:
        raise ModelFileError(f"{path}: the model was altered, it cannot be built ({error!r:.200}).") from None
    if found != (header["class"], header["parameters"]):
        raise ModelFileError(
            f"{path}: expected a {header['class']} with the parameters {header['parameters']}, this version of bemkl "
            f"makes a {found[0]} with {found[1]} of it. Install bemkl {header['versions']['bemkl']} to load the file."
        )
    return model


def _is_known(name: str) -> bool:
    """Tell whether a name is that of a class of this package, or of a kernel function or kernel of scikit-learn."""
    module_name, _, attribute = name.rpartition(".")
    if name in {f"{kernel.__module__}.{kernel.__qualname__}" for kernel in kernel_functions()}:
        return True
    if module_name == gp_kernels.__name__:
        thing = getattr(gp_kernels, attribute, None)
        return isinstance(thing, type) and issubclass(thing, gp_kernels.Kernel)
    if not any(module_name == own or module_name.startswith(own + ".") for own in _OWN):
        return False
    thing = getattr(importlib.import_module(module_name), attribute, None)
    return isinstance(thing, type) and thing.__module__ == module_name


def _calls(content: bytes) -> list[str]:
    """Name what the file would call with arguments of its own; building objects needs no such call."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        nodes = [json.loads(archive.read("schema.json"))]
    called = []
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            nodes.extend(node.values())
            name = f"{node.get('__module__')}.{node.get('__class__')}"
            if node.get("__loader__") in _CALLERS and not name.startswith(("numpy.", "scipy.")):
                called.append(name)
        elif isinstance(node, list):
            nodes.extend(node)
    return called


def _checked_header(path: Any, content: bytes) -> dict[str, Any]:
    """Read the header, and compare every part of the file with its checksum."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise ModelFileError(f"{path}: not a model, or a truncated or altered one ({error}).") from None
    if _HEADER not in parts:
        raise ModelFileError(f"{path}: not a model that save_model saved, it has no {_HEADER} in it.")
    try:
        header: dict[str, Any] = json.loads(parts.pop(_HEADER))
        claimed = header.pop("checksum")
        intact = claimed == _digest(_canonical(header)) and header["checksums"] == {
            name: _digest(part) for name, part in sorted(parts.items())
        }
        newer = header["format"] > _FORMAT
        versions = [header["versions"][package].split(".") for package in ("bemkl", "scikit-learn")]
        intact = intact and all(versions) and {"class", "parameters"} <= set(header)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ModelFileError(f"{path}: the header of the model was altered.") from None
    if not intact:
        raise ModelFileError(f"{path}: the model was altered after it was saved, its checksums do not fit.")
    if newer:
        raise ModelFileError(
            f"{path}: saved by bemkl {header['versions']['bemkl']} in a format that this version, {version('bemkl')}, "
            "does not know. Update bemkl."
        )
    return header


def _versions() -> dict[str, str]:
    packages = ("bemkl", "numpy", "scipy", "scikit-learn", "skops")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def _class_name(model: Any) -> str:
    return f"{type(model).__module__}.{type(model).__qualname__}"


def _canonical(header: dict[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
