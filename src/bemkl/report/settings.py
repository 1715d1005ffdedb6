"""The part of the page that lets somebody else make the same fit: parameters, data, versions."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from bemkl.report.markup import Section, escape, table
from bemkl.report.subject import Subject

_LIBRARIES = ("bemkl", "numpy", "scipy", "scikit-learn")


def settings_section(subject: Subject) -> Section:
    """Show what is needed to reproduce the fit."""
    facts = read_settings(subject)
    titles = {"data": "Data", "parameters": "Parameters of the estimator", "versions": "Versions"}
    parts = []
    for key, title in titles.items():
        rows = [
            [str(name), "none" if value is None else value if isinstance(value, str) else json.dumps(value)]
            for name, value in facts[key].items()
        ]
        parts.append(table(["name", "value"], rows, title))
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    parts.append(f"<details><summary>The same as JSON</summary><pre>{escape(text)}</pre></details>")
    return Section("settings", "Settings and versions", f'<div class="settings">{"".join(parts)}</div>')


def read_settings(subject: Subject) -> dict[str, dict[str, Any]]:
    """Collect parameters, facts on the data and versions."""
    model = subject.model
    data = {
        "estimator": type(model).__name__,
        "training samples": subject.n_train,
        "kernels": len(model.kernel_names_),
        "features, views or basis": int(model.n_features_in_),
        "landmarks": None if model.landmarks_ is None else len(model.landmarks_),
        "explained samples": len(subject.names),
        "held-out samples": 0 if subject.held_out is None else len(subject.held_out.y),
        "held-out samples from": subject.origin,
    }
    versions = {"python": platform.python_version()} | {name: version(name) for name in _LIBRARIES}
    return {
        "data": {str(name): _plain(value) for name, value in (data | dict(subject.settings)).items()},
        "parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "versions": versions,
    }


def _plain(value: Any) -> Any:
    """Return what JSON can hold, and a text for the rest."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
