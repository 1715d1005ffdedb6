"""Loading of saved models: the file is looked at before anything is built, and what was built before it is returned."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import skops.io
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.utils.validation import check_is_fitted

from bemkl.exceptions import ModelFileError
from bemkl.kernels.specs import kernel_functions
from bemkl.persistence.archive import read_content, read_parts
from bemkl.persistence.conformity import check_model, forget_computed
from bemkl.persistence.header import class_name, read_header
from bemkl.persistence.schema import Outline
from bemkl.persistence.trial import try_out

_OWN = ("bemkl.distributions", "bemkl.estimators", "bemkl.files", "bemkl.inference", "bemkl.kernels")


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
        If the file is truncated, altered, not a model, of a newer format, or refers to what is not trusted, of which
        nothing has been run then; or if no fit could have made the model in it.
    """
    try:
        content = read_content(path)
        parts = read_parts(content)
        header = read_header(parts)
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
    """Tell whether a name is that of a class of this package, or of a kernel of scikit-learn's processes."""
    module_name, _, attribute = name.rpartition(".")
    if module_name == gp_kernels.__name__:
        thing = getattr(gp_kernels, attribute, None)
        return isinstance(thing, type) and issubclass(thing, gp_kernels.Kernel)
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
