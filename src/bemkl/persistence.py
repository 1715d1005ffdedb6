"""Saving and loading of fitted models: skops files with versions and checksums, which run no code when loaded."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import tempfile
import warnings
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import skops.io
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bemkl.exceptions import ModelFileError

_HEADER = "bemkl.json"
_FORMAT = 1
_TRUSTED = (
    "bemkl.distributions.",
    "bemkl.estimators.",
    "bemkl.inference.",
    "bemkl.kernels.",
    "sklearn.gaussian_process.kernels.",
    "sklearn.metrics.pairwise.",
)


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
    _write(Path(path), buffer.getvalue())


def load_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """
    Load a model that `save_model` saved.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : sequence of str
        Full names of functions and classes that the file may refer to beyond those of this package, NumPy, SciPy and
        scikit-learn, such as kernel functions of your own.

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
    strangers = [
        name
        for name in skops.io.get_untrusted_types(data=content)
        if not name.startswith(_TRUSTED) and name not in trusted
    ]
    if strangers:
        raise ModelFileError(
            f"{path}: the model refers to {', '.join(strangers)}, which could run any code. If you know where the file "
            f"comes from, pass trusted={strangers!r}."
        )
    if header["versions"]["bemkl"].split(".")[:2] != version("bemkl").split(".")[:2]:
        warnings.warn(
            f"{path} was saved by bemkl {header['versions']['bemkl']}, this is {version('bemkl')}. Compare some "
            "predictions before you rely on it.",
            UserWarning,
            stacklevel=2,
        )
    model = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
    found = (_class_name(model), sorted(model.get_params(deep=False)))
    if found != (header["class"], header["parameters"]):
        raise ModelFileError(
            f"{path}: expected a {header['class']} with the parameters {header['parameters']}, this version of bemkl "
            f"makes a {found[0]} with {found[1]} of it. Install bemkl {header['versions']['bemkl']} to load the file."
        )
    return model


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


def _write(path: Path, content: bytes) -> None:
    """Write a file beside its place, and move it there when it is complete."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _versions() -> dict[str, str]:
    packages = ("bemkl", "numpy", "scipy", "scikit-learn", "skops")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def _class_name(model: Any) -> str:
    return f"{type(model).__module__}.{type(model).__qualname__}"


def _canonical(header: dict[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
