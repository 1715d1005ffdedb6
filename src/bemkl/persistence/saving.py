"""Saving of fitted models: a skops file with a header."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import skops.io
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bemkl.exceptions import ModelFileError
from bemkl.files import write_whole
from bemkl.persistence import header
from bemkl.persistence.conformity import check_model
from bemkl.persistence.relations import is_plain_name


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
        archive.writestr(header.NAME, header.write_header(model, parts))
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
