"""Saving and loading: a skops file with a header, which has versions, parameters, and a checksum of every part."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import sys
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import skops.io
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.utils.validation import check_is_fitted

from bemkl.exceptions import ModelFileError
from bemkl.files import write_whole
from bemkl.kernels.specs import kernel_functions
from bemkl.persistence.archive import Outline, read_content, read_parts
from bemkl.persistence.conformity import check_model, forget_computed
from bemkl.persistence.layout import is_plain_name
from bemkl.persistence.trial import try_out
from bemkl.registry import registered_parts

HEADER = "bemkl.json"
"""What the header is called in the file."""

_FORMAT = 2
_PACKAGES = ("bemkl", "numpy", "scipy", "scikit-learn", "skops")
_OWN = ("bemkl.distributions", "bemkl.estimators", "bemkl.files", "bemkl.inference", "bemkl.kernels", "bemkl.marginal")


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
    try:
        check_model(model)
    except ModelFileError as error:
        raise ValueError(
            f"model: it could not be loaded again ({error!s:.300}) Save it as fit made it, without later changes."
        ) from None
    content = skops.io.dumps(model)
    nameless = [name for name in skops.io.get_untrusted_types(data=content) if "<" in name]
    if nameless:
        raise ValueError(
            f"model: it uses {', '.join(nameless)}, which no file can name. Define kernel functions at the top level "
            "of a module."
        )
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
        archive.writestr(HEADER, _write_header(model, parts))
    write_whole(Path(path), buffer.getvalue())


def _refuse_names(model: BaseEstimator) -> None:
    """Refuse names of tasks that no file can hold without code, or, as keys of a dict, without mixing them up."""
    strange = [name for name in getattr(model, "tasks_", ()) if not is_plain_name(name)]
    if strange:
        raise ValueError(
            f"model: a file can hold tasks whose names are strings, numbers or tuples of these, got {strange[0]!r}. "
            "Fit with names such as str(task)."
        )
    for parameter, value in model.get_params(deep=False).items():
        keys = list(value) if isinstance(value, Mapping) else []
        strange = [key for key in keys if isinstance(key, bool | tuple) or not is_plain_name(key)]
        if strange:
            raise ValueError(
                f"model: a file can hold a dict whose keys are strings or numbers, but {parameter} has the key "
                f"{strange[0]!r}. Name tasks by strings or numbers; or, as only fit needs it, set {parameter} to its "
                "default before saving."
            )


def load_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """
    Load a model that `save_model` saved.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : sequence of str
        Full names of functions and classes that the file may refer to beyond those of this package, those that modules
        in `bemkl.registry` name in `PARTS`, and those that skops trusts of NumPy, SciPy and scikit-learn. Kernel
        functions of your own belong here; the error names what is missing.

    Returns
    -------
    BaseEstimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, not a model, of a newer format, or refers to what is not trusted, of which
        nothing has been run then; or if no fit could have made the model in it.
    """
    try:
        content = read_content(path)
        parts = read_parts(content)
        header = _read_header(parts)
        names = _refuse_strangers(content, Outline(parts), trusted)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    for package in ("bemkl", "scikit-learn"):
        if header["versions"][package].split(".")[:2] != version(package).split(".")[:2]:
            warnings.warn(
                f"{path} was saved with {package} {header['versions'][package]}, this is {version(package)}. Compare "
                "some predictions before you rely on it.",
                UserWarning,
                stacklevel=2,
            )
    try:
        return _build(content, names, header)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def _refuse_strangers(content: bytes, outline: Outline, trusted: Sequence[str]) -> list[str]:
    """Refuse names that are not trusted, or not in this place, and return those that skops has to be told of."""
    try:
        names: list[str] = skops.io.get_untrusted_types(data=content)
    except Exception as error:
        raise ModelFileError(f"the model was altered, its parts cannot be read ({error!r:.200}).") from None
    in_place = {name for name in outline.objects if _is_class(name)} | {n for n in outline.values if _is_function(n)}
    misplaced = {name for name in outline.objects & outline.values if name in names}
    strangers = sorted((set(names) - in_place | misplaced | outline.called) - set(trusted))
    if strangers:
        raise ModelFileError(
            f"the model refers to {', '.join(strangers)}, which could run any code. If you know where the file comes "
            f"from, pass trusted={strangers!r}."
        )
    return names


def _is_function(name: str) -> bool:
    """Tell whether a name is that of a kernel function, of this package or of scikit-learn."""
    return name in {f"{kernel.__module__}.{kernel.__qualname__}" for kernel in kernel_functions()}


def _is_class(name: str) -> bool:
    """Tell whether a name is that of a class of this package, of a registered one, or of a kernel of scikit-learn."""
    module_name, _, attribute = name.rpartition(".")
    if module_name == gp_kernels.__name__:
        thing = getattr(gp_kernels, attribute, None)
        return isinstance(thing, type) and issubclass(thing, gp_kernels.Kernel)
    if name in {f"{kind.__module__}.{kind.__qualname__}" for kind in registered_parts()}:
        return True
    if not any(module_name == own or module_name.startswith(own + ".") for own in _OWN):
        return False
    # What a model is made of has been imported with this module. A name in a file does not decide what else is.
    thing = getattr(sys.modules.get(module_name), attribute, None)
    return isinstance(thing, type) and thing.__module__ == module_name


def _build(content: bytes, names: list[str], header: dict[str, Any]) -> Any:
    """Build the model, and hold it to what a fit could have made."""
    try:
        model = skops.io.loads(content, trusted=names)
        found = (class_name(model), sorted(model.get_params(deep=False)))
        check_is_fitted(model)
    except Exception as error:
        raise ModelFileError(f"the model was altered, it cannot be built ({_told(error)}).") from None
    if found != (header["class"], header["parameters"]):
        raise ModelFileError(
            f"expected a {header['class']} with the parameters {header['parameters']!s:.400}, this version of bemkl "
            f"makes a {found[0]} with {found[1]} of it. Install bemkl {header['versions']['bemkl']} to load the file."
        )
    try:
        parts = check_model(model)
        forget_computed(parts)
        try_out(parts)
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"the model was altered, it cannot be looked at ({_told(error)}).") from None
    return model


def _told(error: Exception) -> str:
    """Quote an error; where the objects in it are broken, only its kind is certain."""
    try:
        return f"{error!r:.200}"
    except Exception:
        return type(error).__name__


def _write_header(model: BaseEstimator, parts: Mapping[str, bytes]) -> str:
    """Describe a model and the parts of its file."""
    header = {
        "format": _FORMAT,
        "class": class_name(model),
        "parameters": sorted(model.get_params(deep=False)),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
        "checksums": {name: digest(part) for name, part in sorted(parts.items())},
    }
    return json.dumps(header | {"checksum": digest(canonical(header))}, indent=1)


def _read_header(parts: Mapping[str, bytes]) -> dict[str, Any]:
    """Read the header of a file, and compare every part with its checksum."""
    if HEADER not in parts:
        raise ModelFileError(f"not a model that save_model saved, it has no {HEADER} in it.")
    try:
        header: dict[str, Any] = json.loads(parts[HEADER])
        claimed = header.pop("checksum")
        intact = claimed == digest(canonical(header)) and header["checksums"] == {
            name: digest(part) for name, part in sorted(parts.items()) if name != HEADER
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
