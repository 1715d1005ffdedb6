"""
What variances of predictions cost, beside the formula as it stands.

    .venv/bin/python benchmarks/prediction.py [--output FILE]

Columns are normal; a sine, a product and noise make the response. The formula as it stands takes all kernels times a
root of the covariance of the sample weights, anew for each block of new samples. One thread, CPU time, without that of
the kernels.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from threadpoolctl import threadpool_limits

from bemkl import BEMKLRegressor, KernelBank, KernelSpec
from bemkl.inference import FittedBlock
from bemkl.kernels import paper_bank

HERE = Path(__file__).parent
KEPT_BYTES = 2**30
PAGE = """# Variances of predictions

Made by `.venv/bin/python benchmarks/prediction.py`. Five normal columns, a response, every sample a
basis point. *By column*: two Gaussian kernels on each column, which have a low rank. *All widths*: ten Gaussian kernels
on all columns, from an eighth to 64, the narrowest nearly an identity. *Paper*: the paper's bank. CPU seconds on one
thread, both ways in turn, block by block. *Formula*: all kernels times a root of Σ_a, which is found for each block of
64 MB of kernels. *Library*: what `predict(return_std=True)` does with the same kernels. *Kernels, s*: computing them,
which is in neither. *Apart*: largest difference of a variance, relative to it.

{table}

Kernels of a low rank give Σ_a a thin form, and the products shrink with it. Otherwise the expected weights take one
solve in double precision a row, and the covariance of the weights as many in single precision as there are kernels:
about half the work of the formula with ten kernels. Beside it, one factor takes the place of one a block.
"""


def bank_of(name: str) -> KernelBank:
    """Return kernels to combine."""
    if name == "paper":
        return paper_bank()
    columns, widths = ("each", [0.7, 1.5]) if name == "by column" else ("all", list(2.0 ** np.arange(-3, 7)))
    return KernelBank([KernelSpec("gaussian", columns, {"width": widths})], standardise=True)


def problem(n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and responses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 5))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.4 * rng.normal(size=n_samples)


def formula(fitted: FittedBlock, kernels: np.ndarray) -> np.ndarray:
    """Return variances of responses by the formula as it stands."""
    sample, weights = fitted.posterior.sample, fitted.weights
    root = cholesky(sample.scale[0] * fitted.gram + np.diag(sample.diagonal[0]), lower=True)
    second = np.asarray(weights.second)
    half = cholesky(second, lower=True)
    parts = np.tensordot(half.T, kernels, 1)
    white = solve_triangular(root, parts.reshape(-1, len(root)).T, lower=True, check_finite=False)
    u = kernels @ sample.mean[0]
    variance = np.square(white).sum(axis=0).reshape(parts.shape[:2]).sum(axis=0)
    variance += ((np.asarray(weights.covariance) @ u) * u).sum(axis=0) + 2.0 * weights.cross[:, 0] @ u
    variance += weights.bias_variance[0] + np.trace(second) * fitted.posterior.intermediate_precision.inverse_mean
    return variance + fitted.posterior.noise_precision.inverse_mean


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU time of a piece of work, and what it returns."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def measure(name: str, n_samples: int, n_new: int) -> list[str]:
    """Fit a model, predict in both ways block by block, and return a row of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the posterior need not have converged
        model = BEMKLRegressor(bank_of(name), random_state=0, max_iter=10).fit(*problem(n_samples, 0))
    (fitted,) = model._fitted
    blocks = model._blocks(problem(n_new, 1)[0])
    predict, seconds, apart, number = fitted.predictor("exact", KEPT_BYTES), np.zeros(3), 0.0, 0
    while True:
        kernels, stack = timed(lambda: next(blocks, None))
        if stack is None:
            break
        before, expected = timed(lambda: formula(fitted, stack.values))  # noqa: B023
        after, found = timed(lambda: predict(stack).variance[:, 0])  # noqa: B023
        seconds += (kernels, before, after)
        apart, number = max(apart, float(np.abs(found / expected - 1.0).max())), stack.shape[0]
    cells = [*(f"{value:.2f}" for value in seconds), f"{seconds[1] / seconds[2]:.1f}", f"{apart:.0e}"]
    print(name, n_samples, n_new, *cells, flush=True)
    return [name, str(n_samples), str(n_new), str(number), *cells]


def main() -> None:
    """Measure all cases and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=HERE / "results" / "prediction.md")
    options = parser.parse_args()
    header = ["kernels", "samples", "new samples", "number", "kernels, s", "formula, s", "library, s", "times", "apart"]
    lines = [header, ["---"] * len(header)]
    cases = [("by column", 1000, 4000), ("by column", 2500, 20_000), ("by column", 4500, 1200)]
    cases += [("all widths", 1000, 4000), ("all widths", 2500, 4000), ("paper", 1000, 500)]
    with threadpool_limits(1):
        lines += [measure(*case) for case in cases]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    options.output.write_text(PAGE.format(table=table), encoding="utf-8")


if __name__ == "__main__":
    main()
