"""
Where pooled kernel weights beat separate and shared ones: learning curves on planted tasks, digits and protein folds.

    .venv/bin/python benchmarks/pooling.py run [--splits 10]
    .venv/bin/python benchmarks/pooling.py page

The first command adds scores to benchmarks/results/pooling.jsonl, and goes on where it was stopped; the second makes
the page and the figure of them. Digits (mfeat) and protein folds need BEMKL_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from multiclass import PLANTED_BANK, digits, folds, planted
from pooling_page import write_page
from sklearn.metrics import log_loss

from bemkl import BEMKLClassifier, BEMKLMultiTask, shared_kernels

RESULTS = Path(__file__).parent / "results"
FIRST_SEED = 1000
WAYS: dict[str, tuple[str, tuple[float, float]]] = {
    "separate": ("separate", (1.0, 1.0)),
    "shared": ("shared", (1.0, 1.0)),
    "pooled": ("pooled", (1.0, 1.0)),
    "pooled, tight": ("pooled", (1.0, 100.0)),
}
SHARES = (0.0, 0.3, 0.5, 0.7, 0.9, 1.0)
TASK_SIZES = (12, 25, 50)
CLASS_SIZES = {"protein folds": (3, 5, 8, 12), "digits": (3, 5, 10, 20)}
DEVIATIONS = (0.1, 1.0)

Record = dict[str, Any]


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "page"])
    parser.add_argument("--splits", type=int, default=10, help="random splits; twice as many draws of planted tasks")
    options = parser.parse_args()
    path = RESULTS / "pooling.jsonl"
    if options.command == "page":
        write_page([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()], RESULTS)
        return
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = {_key(json.loads(line)) for line in lines}
    with path.open("a", encoding="utf-8") as file:
        for records in experiments(options.splits, done):
            file.writelines(json.dumps(record) + "\n" for record in records)
            file.flush()
            print(records[0], flush=True)


def _key(record: Record) -> tuple[Any, ...]:
    return record["set"], record["setting"], record["size"], record["seed"]


def experiments(n_splits: int, done: set[tuple[Any, ...]]) -> Iterator[list[Record]]:
    """Yield the scores of all ways on one draw after another, those apart that are done."""
    folder = os.environ.get("BEMKL_DATA")
    for name, sizes in CLASS_SIZES.items() if folder else ():
        data = {"digits": digits, "protein folds": folds}[name](Path(str(folder)), 0)
        for size, seed, deviation in product(sizes, range(FIRST_SEED, FIRST_SEED + n_splits), DEVIATIONS):
            if (name, deviation, size, seed) not in done:
                yield score_classes(name, data, deviation, size, seed)
    for seed, alike, size in product(range(FIRST_SEED, FIRST_SEED + 2 * n_splits), SHARES, TASK_SIZES):
        if ("tasks", alike, size, seed) not in done:
            yield score_tasks(alike, size, seed)


def score_tasks(alike: float, size: int, seed: int) -> list[Record]:
    """Explained variance of six regressions."""
    train, test, y, y_test = planted(seed, alike, size)
    draw = {"set": "tasks", "setting": alike, "size": size, "seed": seed}
    records = []
    for way, (sharing, prior) in WAYS.items():
        model = BEMKLMultiTask(PLANTED_BANK, sharing=sharing, pool_prior=prior, intermediate_std=0.3, tol=1e-5)
        score = model.fit(train, y).score(test, y_test)
        records.append(draw | {"way": way, "explained variance": round(score, 5)})
    return records


def score_classes(name: str, data: tuple[Any, ...], deviation: float, size: int, seed: int) -> list[Record]:
    """Accuracy and log loss of a classifier."""
    views, y, *_, bank = data
    train, test = split(y, size, seed)
    here, new = ({view: values[rows] for view, values in views.items()} for rows in (train, test))
    draw = {"set": name, "setting": deviation, "size": size, "seed": seed, "n_train": len(train)}
    records = []
    with shared_kernels():
        for way, (sharing, prior) in WAYS.items():
            multiclass = {"separate": "ovr"}.get(sharing, sharing)
            model = BEMKLClassifier(
                bank, multiclass=multiclass, pool_prior=prior, intermediate_std=deviation, tol=1e-5
            ).fit(here, y[train])
            loss = log_loss(y[test], model.predict_proba(new), labels=model.classes_)
            right = float(np.mean(model.predict(new) == y[test]))
            records.append(draw | {"way": way, "accuracy": round(right, 5), "log loss": round(loss, 5)})
    return records


def split(y: Any, size: int, seed: int) -> tuple[Any, Any]:
    """Draw training rows of each class, leaving at least four for the test, of which there are at most 100 a class."""
    rng = np.random.default_rng(seed)
    train, test = [], []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        count = min(size, len(rows) - 4)
        train.append(rows[:count])
        test.append(rows[count : count + 100])
    return np.concatenate(train), np.concatenate(test)


if __name__ == "__main__":
    main()
