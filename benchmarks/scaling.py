"""
Scaling laws: time and memory of a sweep and of a whole fit against samples, kernels and outputs.

    .venv/bin/python benchmarks/scaling.py [--quick] [--threads 1] [--output benchmarks/results]

Every point is a process of its own, so that peak memory is its own. Slopes are of the upper half of each curve on a
log-log scale, beside the exponent of the term that dominates the arithmetic there. Limits of the machine are measured
with the same threads: the rate of a large matrix product, and the rate at which memory is read.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
N_FEATURES = 8
AXES = {
    "samples": [100, 200, 400, 800, 1600, 3200, 5000],
    "samples, 200 landmarks": [500, 1000, 2000, 5000, 10000, 20000],
    "kernels": [10, 30, 100, 300, 1000, 2000, 5000, 10000, 20000],
    "outputs": [1, 3, 10, 30, 100],
}
ROWS = [100, 1000, 10000]
QUICK = 4
ORDER = {"samples": 3, "samples, 200 landmarks": 1, "kernels": 1, "outputs": 1}
"""Exponent of the dominating term at the right end: inverses of n_basis, passes and products of thin factors else."""
FACTOR_COLUMNS = 3
"""Columns of the low-rank factors between kernels, over the number of samples and outputs."""


def main() -> None:
    """Measure every point, print the table, write results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the first points")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--point", nargs=2, help="measure one point in this process and print it")
    options = parser.parse_args()
    if options.point:
        axis, size = options.point
        special = {"limits": lambda _: machine_limits(), "rows": predict_rows}
        print(json.dumps(special[axis](int(size)) if axis in special else point(axis, int(size))))
        return
    limits = measure("limits", 0, options.threads)
    lines = []
    for axis, sizes in AXES.items():
        for size in sizes[:QUICK] if options.quick else sizes:
            lines.append(measure(axis, size, options.threads))
            print(json.dumps(lines[-1]), flush=True)
    rows = [measure("rows", size, options.threads) for size in ROWS]
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "scaling.jsonl").write_text(
        "\n".join(map(json.dumps, [limits, *lines, *rows])) + "\n", encoding="utf-8"
    )
    page = PAGE.format(
        table=table(lines, limits), rows=rows_table(rows), gemm=limits["gemm"] / 1e9, read=limits["read"] / 1e9
    )
    (options.output / "scaling.md").write_text(page, encoding="utf-8")
    draw(lines, options.output / "scaling.png")
    print(page)


def measure(axis: str, size: int, threads: int) -> dict[str, Any]:
    """Run one point in a process of its own."""
    names = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"
    settings = os.environ | dict.fromkeys(names, str(threads))
    command = [sys.executable, __file__, "--point", axis, str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=settings)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def shape_of(axis: str, size: int) -> tuple[int, int, int, int | None]:
    """Return samples, kernels, outputs and landmarks of a point."""
    if axis.startswith("samples"):
        return size, 40, 1, 200 if "landmarks" in axis else None
    if axis == "kernels":
        return 200, size, 1, None
    return 300, 20, size, None


def point(axis: str, size: int) -> dict[str, Any]:
    """Fit one problem for a few sweeps and to the end; return seconds, bytes and arithmetic."""
    from contenders import memory

    from bemkl.inference import Block, NewtonMeans, NewtonWeights, Probit, Problem, initialise, run, sweep
    from bemkl.kernels import KernelBank, KernelSpec

    n_samples, n_kernels, n_outputs, n_landmarks = shape_of(axis, size)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, N_FEATURES))
    scores = np.stack([np.sin(2.0 * X @ rng.normal(size=N_FEATURES)) for _ in range(n_outputs)], axis=1)
    y = np.where(scores + 0.1 * rng.normal(size=scores.shape) > 0.0, 1.0, -1.0)
    widths = np.geomspace(0.3, 10.0, -(-n_kernels // N_FEATURES)).tolist()
    specs = [KernelSpec("gaussian", "each", {"width": widths})]
    if n_kernels < N_FEATURES * len(widths):
        columns = {str(j): [j] for j in range(N_FEATURES)}
        full, rest = widths[:-1], n_kernels - N_FEATURES * (len(widths) - 1)
        specs = [KernelSpec("gaussian", "each", {"width": full})] if full else []
        specs.append(KernelSpec("gaussian", dict(list(columns.items())[:rest]), {"width": widths[-1]}))
    basis = None if n_landmarks is None else np.arange(n_landmarks)
    warm = KernelBank(specs).fit_factored(X[:40])  # loads compiled loops
    warm.backproject(warm.project(np.ones((1, warm.shape[2]))))
    start, before = time.perf_counter(), memory(reset=True)
    stack = KernelBank(specs).fit_factored(X, basis=basis)
    stack.gram()
    build = time.perf_counter() - start
    problem = Problem([Block(stack, Probit(y), landmarks=True)], pair=NewtonMeans(), weights=NewtonWeights())
    state = sweep(problem, initialise(problem))
    times = []
    while len(times) < 3 or (sum(times) < 1.0 and len(times) < 20):
        start = time.perf_counter()
        state = sweep(problem, state)
        times.append(time.perf_counter() - start)
    del state  # the peak is of one fit
    start = time.perf_counter()
    result = run(problem, max_iter=200)
    fit = time.perf_counter() - start
    peak = memory() - before
    n_basis, n_columns = stack.shape[2], columns_of(n_samples, n_kernels, n_outputs)
    return {
        "axis": axis,
        "size": size,
        "build": build,
        "sweep": float(np.median(times)),
        "fit": fit,
        "iterations": result.n_iter,
        "stack": 8 * stack.n_values,
        "peak": peak,
        "small": 8 * (4 * n_basis**2 + 6 * n_kernels * n_columns + 10 * n_outputs * n_kernels * n_samples),
        "flops": arithmetic(n_samples, n_basis, n_kernels, n_outputs, stack.n_values),
        "bytes": 2 * 8 * stack.n_values,
    }


def predict_rows(size: int) -> dict[str, Any]:
    """Predict probabilities with exact variances for many rows; return seconds and bytes."""
    from contenders import memory

    from bemkl import BEMKLClassifier, paper_bank

    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(300, N_FEATURES)), rng.normal(size=(size, N_FEATURES))
    model = BEMKLClassifier(paper_bank()).fit(X, X[:, 0] * X[:, 1] > 0.0)
    model.predict_proba(new[:10])
    before, start = memory(reset=True), time.perf_counter()
    model.predict_proba(new)
    return {"rows": size, "seconds": time.perf_counter() - start, "peak": memory() - before}


def rows_table(rows: list[dict[str, Any]]) -> str:
    """Return seconds and memory of predictions."""
    lines = [
        f"| {row['rows']} | {row['seconds']:.2f} | {row['rows'] / row['seconds']:.0f} | {row['peak'] / 1e6:.0f} |"
        for row in rows
    ]
    return "\n".join(["| rows | seconds | rows a second | extra memory MB |", "| --- | --- | --- | --- |", *lines])


def columns_of(n: int, p: int, outputs: int) -> int:
    """Return the columns of a matrix between kernels: all of them, or those of a low-rank factor where that pays."""
    columns = FACTOR_COLUMNS * n * outputs
    return columns if 3 * columns < p else p


def arithmetic(n: int, d: int, p: int, outputs: int, values: int) -> float:
    """Count the multiplications and additions of a sweep: inverses, products over kernels, passes over the stack."""
    r = columns_of(n, p, outputs)
    # Two inverses and a factor of dense matrices, or three orthogonalised thin factors with their eigenvectors.
    between = 2.0 * p**3 + p**3 / 3 if r == p else 3.0 * (4 * p * r**2 + 2 * p * r**2 + 9 * r**3)
    products = outputs * 3.0 * 2 * p * r * n * (1 if r == p else 2)
    passes = outputs * 2 * 2.0 * values * (2 if d == n else 1)
    return between + outputs * (d**3 + d**3 / 3 + n * d**2) + products + passes


def machine_limits() -> dict[str, float]:
    """Return flops a second of a large product, and bytes a second of reading, both of the threads in use."""
    A = np.random.default_rng(0).normal(size=(1500, 1500))
    big = np.ones(2**25)
    gemm = min(_seconds(lambda: A @ A) for _ in range(5))
    read = min(_seconds(big.sum) for _ in range(5))
    return {"gemm": 2.0 * 1500**3 / gemm, "read": big.nbytes / read}


def _seconds(run: Any) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def slope(sizes: list[int], values: list[float]) -> float:
    """Return the slope of the upper half on a log-log scale."""
    half = max(2, len(sizes) // 2)
    return float(np.polyfit(np.log(sizes[-half:]), np.log(values[-half:]), 1)[0])


def table(lines: list[dict[str, Any]], limits: dict[str, float]) -> str:
    """Return one row a point, with slopes a curve."""
    rows = [
        "| axis | size | build s | sweep s | share of product limit | share of reading limit | fit s | sweeps "
        "| stack MB | peak / (stack + small) |",
        "|" + " --- |" * 10,
    ]
    for line in lines:
        product = line["flops"] / line["sweep"] / limits["gemm"]
        reading = line["bytes"] / line["sweep"] / limits["read"]
        rows.append(
            f"| {line['axis']} | {line['size']} | {line['build']:.2f} | {line['sweep']:.4f} | {product:.0%} | "
            f"{reading:.0%} | {line['fit']:.2f} | {line['iterations']} | {line['stack'] / 1e6:.1f} | "
            f"{line['peak'] / (line['stack'] + line['small']):.2f} |"
        )
    rows += [
        "",
        "| axis | slope of a sweep | of a fit | of the peak | arithmetic of a sweep tends to |",
        "|" + " --- |" * 5,
    ]
    for axis in dict.fromkeys(line["axis"] for line in lines):
        mine = [line for line in lines if line["axis"] == axis]
        sizes = [line["size"] for line in mine]
        found = (f"{slope(sizes, [line[key] for line in mine]):.2f}" for key in ("sweep", "fit", "peak"))
        rows.append(f"| {axis} | " + " | ".join(found) + f" | {ORDER[axis]} |")
    return "\n".join(rows)


def draw(lines: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds and memory, one column an axis."""
    axes = list(dict.fromkeys(line["axis"] for line in lines))
    figure, panels = plt.subplots(2, len(axes), figsize=(3.6 * len(axes), 6.4), layout="constrained", squeeze=False)
    for (above, below), axis in zip(panels.T, axes, strict=True):
        mine = [line for line in lines if line["axis"] == axis]
        sizes = np.array([line["size"] for line in mine])
        for key, colour in (("sweep", "tab:blue"), ("fit", "tab:orange"), ("build", "tab:green")):
            above.loglog(sizes, [line[key] for line in mine], "o-", color=colour, label=key)
        guide = np.array([line["flops"] for line in mine])
        above.loglog(sizes, guide * mine[-1]["sweep"] / guide[-1], ":", color="black", label="arithmetic of a sweep")
        below.loglog(sizes, [line["peak"] / 1e6 for line in mine], "o-", color="tab:red", label="peak")
        below.loglog(
            sizes, [(line["stack"] + line["small"]) / 1e6 for line in mine], ":", color="black", label="stack + small"
        )
        above.set(title=axis, ylabel="seconds")
        below.set(xlabel=axis.split(",")[0], ylabel="MB")
    panels[0, 0].legend(fontsize=8)
    panels[1, 0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


PAGE = """# Scaling laws

Made by `.venv/bin/python benchmarks/scaling.py`. Gaussian kernels on single features, dense weights, thin factors; one
thread. Along *samples* there are 40 kernels, along *kernels* 200 samples, along *outputs* 300 samples and 20
kernels. The machine multiplies matrices at {gemm:.0f} Gflop/s and reads memory at {read:.1f} GB/s; shares count the
arithmetic and the reading of the stack that a sweep needs. *small* is what the model itself has: four D × D and six
P × P matrices (or P × 3N factors, from 9N kernels on), ten arrays over (outputs, kernels, samples). Shares above 100 %
are of factors that turn out thinner than that, of covariances of the sample weights that stay as they are, and of the
preconditioner, which single precision multiplies twice as fast. Single sweeps compute their preconditioner, a fit uses
it again while it serves. The peak is over the building of the stack, single sweeps and a fit that starts afresh,
without the state that the sweeps left. Of models below some 10 MB, most of what is beyond 1.5 times is not in arrays.

{table}

![Seconds and memory](scaling.png)

## Prediction

Probabilities with exact variances, 117 kernels (the paper's bank on eight features), 300 training samples. Rows are
predicted in blocks, so memory stays where it is.

{rows}
"""

if __name__ == "__main__":
    sys.exit(main())
