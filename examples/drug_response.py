"""
Responses of 58 cancer cell lines to 28 drugs, a task a drug, from two proteomic views; some responses are missing.

    BEMKL_DATA=folder .venv/bin/python examples/drug_response.py

Needs the file nci60/nci60.csv in the folder: columns ms_* (mass spectrometry), rppa_* (protein arrays) and target_*.
Five-fold cross-validation over the cell lines; a score of 0 is the mean of the training responses.
"""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold

from bemkl import BEMKLMultiTask, KernelBank, KernelSpec

SETTINGS = {"sample_prior": (1.0, 1.0), "intermediate_std": 1.0, "max_iter": 100, "tol": 1e-3}


def main() -> None:
    """Compare separate, shared and pooled kernel weights on held-out cell lines."""
    folder = os.environ.get("BEMKL_DATA")
    if not folder or not (Path(folder) / "nci60" / "nci60.csv").exists():
        sys.exit("Set BEMKL_DATA to a folder that has nci60/nci60.csv.")
    views, responses, drugs = read(Path(folder) / "nci60" / "nci60.csv")
    bank = KernelBank(
        [
            KernelSpec("gaussian", {view: view}, {"width": [0.5 * size**0.5, size**0.5, 2.0 * size**0.5]})
            for view, size in ((name, values.shape[1]) for name, values in views.items())
        ]
        + [KernelSpec("linear", {view: view}) for view in views],
        standardise=True,
        scaling="spherical",
    )
    n_lines, n_drugs = responses.shape
    print(f"{n_lines} cell lines, {n_drugs} drugs, {int(np.isnan(responses).sum())} responses missing")
    print(f"{'kernel weights':<16}{'explained variance':>20}{'drugs above the mean':>22}")
    for sharing in ("separate", "shared", "pooled"):
        held_out = cross_validated(views, responses, drugs, BEMKLMultiTask(bank, sharing=sharing, **SETTINGS))
        known = ~np.isnan(responses)
        errors = np.where(known, (held_out["model"] - responses) ** 2, 0.0).sum(axis=0)
        base = np.where(known, (held_out["mean"] - responses) ** 2, 0.0).sum(axis=0)
        explained = 1.0 - errors / base
        print(f"{sharing:<16}{explained.mean():>20.3f}{int((explained > 0.0).sum()):>22d}")


def read(path: Path) -> tuple[dict[str, np.ndarray], np.ndarray, list[str]]:
    """Return two views, standardised responses with NaN where there is none, and the names of the drugs."""
    with path.open() as file:
        names = file.readline().strip().split(",")
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    columns = {kind: [j for j, name in enumerate(names) if name.startswith(kind)] for kind in ("ms_", "rppa_")}
    targets = [j for j, name in enumerate(names) if name.startswith("target_")]
    views = {"mass spectrometry": np.log1p(table[:, columns["ms_"]]), "protein arrays": table[:, columns["rppa_"]]}
    responses = table[:, targets]
    responses = (responses - np.nanmean(responses, axis=0)) / np.nanstd(responses, axis=0)
    return views, responses, [names[j].removeprefix("target_") for j in targets]


def cross_validated(
    views: dict[str, np.ndarray], responses: np.ndarray, drugs: list[str], model: BEMKLMultiTask
) -> dict[str, np.ndarray]:
    """Return predictions of every cell line by a model that has not seen it, and the training means."""
    found = {"model": np.empty(responses.shape), "mean": np.empty(responses.shape)}
    for train, test in KFold(5, shuffle=True, random_state=0).split(responses):
        here = {view: values[train] for view, values in views.items()}
        new = {view: values[test] for view, values in views.items()}
        model.fit(dict.fromkeys(drugs, here), {drug: responses[train, j] for j, drug in enumerate(drugs)})
        predicted = model.predict(dict.fromkeys(drugs, new))
        found["model"][test] = np.column_stack([predicted[drug] for drug in drugs])
        found["mean"][test] = np.nanmean(responses[train], axis=0)
    return found


if __name__ == "__main__":
    main()
