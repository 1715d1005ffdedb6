"""
What a marginal fit costs where samples are many, in units that move with the machine.

    .venv/bin/python benchmarks/marginal_scale.py [--repeats 3] [--output FILE]

Columns are normal, and a sine, a product and noise make the label or response. A fit of 2000 samples is measured in
Cholesky factors of that size, computed in the same run; one of 20 000 samples has 500 landmarks. One thread, CPU time,
kernels included.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec

HERE = Path(__file__).parent
PAGE = """# Marginal fits of many samples

Made by `.venv/bin/python benchmarks/marginal_scale.py --repeats {repeats}`. Ten kernels, two widths on each of five
columns. Medians of CPU seconds on one thread, kernels included; a Cholesky factor of 2000 samples took {factor:.3f}.

{table}
"""


def problem(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and responses."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 5))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.4 * rng.normal(size=n_samples)


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of a piece of work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Measure all fits in turn, as often as asked, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "marginal_scale.md")
    options = parser.parse_args()
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": [0.7, 1.5]})], standardise=True)
    cases = [
        (n_samples, landmarks, prior, task)
        for n_samples, landmarks in ((2000, None), (20_000, 500))
        for prior in ("sum", "kernel")
        for task in ("labels", "responses")
    ]
    square = np.random.default_rng(0).normal(size=(2000, 2000))
    square = square @ square.T + 2000.0 * np.eye(2000)
    factors: list[float] = []
    found: dict[tuple[int, int | None, str, str], list[float]] = {case: [] for case in cases}
    with threadpool_limits(1):
        for _ in range(options.repeats):
            for n_samples, landmarks, prior, task in cases:
                factors += [seconds(lambda: np.linalg.cholesky(square)) for _ in range(3)]
                X, response = problem(n_samples)
                kind, y = (BEMKLClassifier, response > 0.0) if task == "labels" else (BEMKLRegressor, response)
                settings = {"function_prior": prior, "landmarks": landmarks, "random_state": 0, "test_views": False}
                model = kind(bank, posterior="marginal", **settings)
                found[n_samples, landmarks, prior, task].append(seconds(lambda: model.fit(X, y)))  # noqa: B023
                print(n_samples, landmarks, prior, task, found[n_samples, landmarks, prior, task][-1], flush=True)
    factor = float(np.median(factors))
    header = ["samples", "landmarks", "prior", "targets", "CPU s", "Cholesky factors of 2000 samples"]
    lines = [header, ["---"] * len(header)]
    for case, times in found.items():
        median = float(np.median(times))
        lines.append([*(str(cell) for cell in case), f"{median:.1f}", f"{median / factor:.0f}"])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    options.output.write_text(
        PAGE.format(repeats=options.repeats, factor=factor, table=table).replace("None", "none"), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
