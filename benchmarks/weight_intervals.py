"""
Intervals of kernel weights on planted problems: how many leave out zero, of kernels that matter and of others.

    .venv/bin/python benchmarks/weight_intervals.py [--seeds 10] [--output benchmarks/results/weight_intervals.md]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from bemkl import BEMKLClassifier, BEMKLMultiTask, BEMKLRegressor, KernelBank, KernelSpec
from bemkl.exceptions import ConvergenceWarning

N_RELEVANT = 3
SIZES = ((60, 6, 0.0), (150, 20, 0.0), (150, 20, 0.5), (300, 40, 0.3), (600, 60, 0.3))
PRIORS = ("dense", "sparse")
CASES: dict[str, tuple[str, type, dict[str, Any]]] = {
    "two classes": ("classes", BEMKLClassifier, {}),
    "two classes, deviation 0.1": ("classes", BEMKLClassifier, {"intermediate_std": 0.1}),
    "two classes, learned deviation": ("classes", BEMKLClassifier, {"intermediate_std": "learn"}),
    "two classes, factorized": ("classes", BEMKLClassifier, {"weights": "factorized"}),
    "two classes, nonnegative": ("classes", BEMKLClassifier, {"weights": "nonnegative"}),
    "two classes, 50 landmarks": ("classes", BEMKLClassifier, {"landmarks": 50}),
    "three classes, shared": ("three", BEMKLClassifier, {}),
    "three classes, one against the others": ("three", BEMKLClassifier, {"multiclass": "ovr"}),
    "three classes, pooled": ("three", BEMKLClassifier, {"multiclass": "pooled"}),
    "three classes, multinomial": ("three", BEMKLClassifier, {"multiclass": "multinomial"}),
    "one response": ("response", BEMKLRegressor, {}),
    "three responses": ("responses", BEMKLRegressor, {}),
    "two tasks": ("tasks", BEMKLMultiTask, {}),
}
SPIKES: dict[str, tuple[str, type, dict[str, Any]]] = {
    "two classes": ("classes", BEMKLClassifier, {}),
    "two classes, deviation 0.1": ("classes", BEMKLClassifier, {"intermediate_std": 0.1}),
    "two classes, learned deviation": ("classes", BEMKLClassifier, {"intermediate_std": "learn"}),
    "three classes, shared": ("three", BEMKLClassifier, {}),
    "one response": ("response", BEMKLRegressor, {}),
}


def main() -> None:
    """Fit every case for every size, prior and seed; print two Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output", type=Path, help="file for the tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    start = time.perf_counter()
    head = " | ".join(f"{n} samples, {p} kernels" + (f", correlation {r}" if r else "") for n, p, r in SIZES)
    rows = [f"| | prior | {head} |", "|" + " --- |" * (2 + len(SIZES))]
    for name, case in CASES.items():
        for prior in PRIORS:
            found = [rates(case, size, options.seeds, kernel_prior=prior) for size in SIZES]
            rows.append(f"| {name} | {prior} | " + " | ".join(found) + " |")
            print(rows[-1], flush=True)
    spikes = [f"| | {head} |", "|" + " --- |" * (1 + len(SIZES))]
    for name, case in SPIKES.items():
        found = [rates(case, size, options.seeds, weights="spike_slab") for size in SIZES]
        spikes.append(f"| {name} | " + " | ".join(found) + " |")
        print(spikes[-1], flush=True)
    print(f"{time.perf_counter() - start:.0f} s")
    if options.output:
        page = PAGE.format(table="\n".join(rows), spikes="\n".join(spikes), seeds=options.seeds)
        options.output.write_text(page, encoding="utf-8")


def rates(case: tuple[str, type, dict[str, Any]], size: tuple[int, int, float], seeds: int, **more: Any) -> str:
    """Return percentages of others and of relevant kernels, with those of the fit's own posterior in brackets."""
    kind, estimator, settings = case
    found = []
    for seed in range(seeds):
        X, y = planted(kind, *size, seed)
        bank = KernelBank([KernelSpec("gaussian", "each", {"width": 0.7})])
        model = estimator(bank, **settings, **more).fit(X, y)
        for own, integrated in fits(model):
            off = [matters(own), matters(integrated)]
            found.append(
                [share for kernels in off for share in (kernels[N_RELEVANT:].mean(), kernels[:N_RELEVANT].mean())]
            )
    others_before, before, others, relevant = 100.0 * np.mean(found, axis=0)
    return f"**{others:.0f}** / {relevant:.0f} ({others_before:.0f} / {before:.0f})"


def planted(kind: str, n: int, n_kernels: int, correlation: float, seed: int) -> tuple[Any, Any]:
    """Return samples with uniform features, correlated through a common part, and what depends on three of them."""
    rng = np.random.default_rng(seed)
    normal = np.sqrt(1.0 - correlation) * rng.normal(size=(n, n_kernels))
    X = 4.0 * ndtr(normal + np.sqrt(correlation) * rng.normal(size=(n, 1))) - 2.0
    signal = np.sin(2.0 * X[:, :N_RELEVANT]).sum(axis=1)
    noise = rng.normal(size=(n, 3))
    if kind == "three":
        return X, np.digitize(signal + 0.3 * noise[:, 0], [-0.6, 0.6])
    if kind == "response":
        return X, signal + 0.5 * noise[:, 0]
    if kind == "responses":
        return X, np.stack([signal, 0.2 * X[:, 0] - signal, signal**2], axis=1) + 0.5 * noise
    labels = signal + 0.3 * noise[:, 0] > 0.0
    if kind == "tasks":
        return {"a": X[::2], "b": X[1::2]}, {"a": labels[::2], "b": labels[1::2]}
    return X, labels


def fits(model: Any) -> Iterator[tuple[Any, Any]]:
    """Yield moments of the weights by the fit's own posterior, and with the sample weights integrated out."""
    blocks = model._fitted if hasattr(model, "_fitted") else [task.fitted for task in model._fitted_tasks[:1]]
    for block in blocks:
        yield block.weights, block.integrated


def matters(moments: Any) -> np.ndarray:
    """Tell intervals of 95 % off zero; of nonnegative weights, by the normal distribution that is cut at zero."""
    if moments.marginals is None:
        return np.abs(moments.mean) > 1.96 * np.sqrt(moments.covariance.diagonal())
    if moments.marginals.inclusion is None:
        return moments.marginals.location > 1.96 * moments.marginals.deviation
    return moments.marginals.inclusion > 0.5


PAGE = """# Intervals of kernel weights

Made by `.venv/bin/python benchmarks/weight_intervals.py --seeds {seeds}`. Three features matter, each feature has a
Gaussian kernel; means over {seeds} seeds. Percentages of 95 % intervals off zero: of kernels that **do not matter** /
of those that do, with the sample weights integrated out; in brackets the same by the fit's own posterior. An interval
of a nonnegative weight counts by the normal distribution that is cut at zero. Where each class has weights of its own,
the middle one of three classes is no sum of functions of the features, and may have none to find.

{table}

## Spike and slab

Percentages of kernels that are on with a probability above one half, likewise.

{spikes}
"""

if __name__ == "__main__":
    main()
