"""
Families of kernel weights on planted problems: which kernels they find, how well they predict, and 20 000 kernels.

    .venv/bin/python benchmarks/families.py [--seeds 20] [--output benchmarks/results/families.md]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from contenders import memory
from sklearn.metrics import log_loss

from bemkl import BEMKLClassifier, KernelBank, KernelSpec

N_TRAIN, N_KERNELS, N_RELEVANT = 120, 20, 3
FAMILIES = {
    "free, dense prior": {"weights": "free"},
    "free, sparse prior": {"weights": "free", "kernel_prior": "sparse"},
    "factorized, sparse prior": {"weights": "factorized", "kernel_prior": "sparse"},
    "nonnegative, dense prior": {"weights": "nonnegative"},
    "nonnegative, sparse prior": {"weights": "nonnegative", "kernel_prior": "sparse"},
    "spike and slab": {"weights": "spike_slab"},
}


def main() -> None:
    """Fit every family for every seed, then many kernels; print two Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--kernels", type=int, default=20_000, help="kernels of the large problem")
    parser.add_argument("--output", type=Path, help="file for the tables")
    options = parser.parse_args()
    rows = ["| weights | precision | recall | selected | accuracy | log loss | seconds |", "|" + " --- |" * 7]
    for name, settings in FAMILIES.items():
        found = np.mean([planted(seed, settings) for seed in range(options.seeds)], axis=0)
        precision, recall, count, accuracy, loss, seconds = found
        rows.append(
            f"| {name} | {precision:.2f} | {recall:.2f} | {count:.1f} | {accuracy:.3f} | {loss:.3f} | {seconds:.2f} |"
        )
        print(rows[-1], flush=True)
    seconds, iterations, peak, accuracy = many(options.kernels)
    large = (
        f"{options.kernels} kernels on 300 samples: fitted in {seconds:.0f} s and {iterations} sweeps, with "
        f"{peak:.0f} MB at the peak, training accuracy {accuracy:.3f}. One matrix of all pairs of kernels alone would "
        f"take {8 * options.kernels**2 / 1e6:.0f} MB."
    )
    print(large)
    if options.output:
        page = PAGE.format(table="\n".join(rows), seeds=options.seeds, large=large)
        options.output.write_text(page, encoding="utf-8")


def planted(seed: int, settings: dict[str, Any]) -> tuple[float, ...]:
    """Return precision and recall of the relevant kernels, number selected, accuracy, log loss and seconds."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(N_TRAIN + 1000, N_KERNELS))
    y = np.sin(2.0 * X[:, :N_RELEVANT]).sum(axis=1) + 0.3 * rng.normal(size=len(X)) > 0.0
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": 0.7})])
    start = time.process_time()
    model = BEMKLClassifier(bank, max_iter=300, tol=1e-5, **settings).fit(X[:N_TRAIN], y[:N_TRAIN])
    seconds = time.process_time() - start
    right = int(np.sum(model.selected_kernels_ < N_RELEVANT))
    chosen = len(model.selected_kernels_)
    probability = model.predict_proba(X[N_TRAIN:])
    accuracy = float(np.mean((probability[:, 1] > 0.5) == y[N_TRAIN:]))
    loss = log_loss(y[N_TRAIN:], probability)
    return right / max(chosen, 1), right / N_RELEVANT, chosen, accuracy, loss, seconds


def many(n_kernels: int) -> tuple[float, int, float, float]:
    """Fit independent weights of very many kernels; return seconds, sweeps, peak memory in MB and accuracy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, n_kernels // 20))
    y = X[:, 0] + np.square(X[:, 1]) > 1.0
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": np.geomspace(0.5, 8.0, 20).tolist()})])
    before, start = memory(reset=True), time.perf_counter()
    model = BEMKLClassifier(bank, weights="factorized", kernel_prior="sparse").fit(X, y)
    seconds, peak = time.perf_counter() - start, (memory() - before) / 1e6
    accuracy = float(np.mean((model.decision_function(X[:50]) > 0.0) == y[:50]))
    return seconds, model.n_iter_, peak, accuracy


PAGE = """# Families of kernel weights

Made by `.venv/bin/python benchmarks/families.py`. Labels depend on three of twenty features, with a Gaussian kernel on
each; 120 training and 1000 test samples, means over {seeds} seeds. A kernel counts as selected if its weight is more
than 1 % of the largest or, with spike and slab, if it is on with a probability above one half.

{table}

## Many kernels

`weights="factorized"` under a sparse prior. {large}
"""

if __name__ == "__main__":
    main()
