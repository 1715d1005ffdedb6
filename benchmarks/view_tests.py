"""
False positives and power of the tests of views on planted problems.

    .venv/bin/python benchmarks/view_tests.py [--repeats 40] [--output FILE]

Views have three columns each and Gaussian kernels of some widths; the first matters by a sine of one column, the second
by another column, and the others not at all. Correlated views have a common part in every column.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec

HERE = Path(__file__).parent
CASES = (
    ("regression", 60, 10, 1, 0.3),
    ("regression", 100, 6, 2, 0.0),
    ("regression", 300, 6, 3, 0.5),
    ("regression", 600, 12, 2, 0.3),
    ("classification", 100, 6, 2, 0.5),
    ("classification", 150, 12, 1, 0.0),
    ("classification", 300, 8, 2, 0.3),
    ("classification", 600, 4, 4, 0.3),
)
"""Task, samples, views, widths a view, correlation of columns of different views."""
PAGE = """# Tests of views

Made by `.venv/bin/python benchmarks/view_tests.py --repeats {repeats}`. Shares of views with p below 0.05 in
`summary(by="view")`, {repeats} draws of each problem; the standard error of a share of false positives is given.

{table}
"""


def planted(seed: int, n_samples: int, n_views: int, correlation: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return views of which the first two matter, and responses."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n_samples, 1))
    views = {
        f"view {v}": np.sqrt(1.0 - correlation) * rng.normal(size=(n_samples, 3)) + np.sqrt(correlation) * common
        for v in range(n_views)
    }
    signal = np.sin(1.5 * views["view 0"][:, 0]) + 0.7 * views["view 1"][:, 0]
    return views, signal / signal.std() + 0.7 * rng.normal(size=n_samples)


def row(task: str, n_samples: int, n_views: int, n_widths: int, correlation: float, repeats: int) -> list[str]:
    """Draw and fit one problem many times."""
    widths = (np.sqrt(3.0) * np.array([0.5, 1.0, 2.0, 4.0])[:n_widths]).tolist()
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": widths})], standardise=True, scaling="spherical")
    found = []
    for seed in range(repeats):
        views, y = planted(seed, n_samples, n_views, correlation)
        if task == "regression":
            model = BEMKLRegressor(bank, posterior="marginal").fit(views, y)
        else:
            model = BEMKLClassifier(bank, posterior="marginal").fit(views, y > 0.0)
        table = model.summary(by="view", rounded=False)
        found.append([table["p"][view] for view in views])
    p = np.array(found)
    false, true = np.mean(p[:, 2:] < 0.05), np.mean(p[:, :2] < 0.05)
    error = np.sqrt(false * (1.0 - false) / p[:, 2:].size)
    shown = f"{100 * false:.1f} ± {100 * error:.1f}", f"{100 * true:.0f}"
    return [str(cell) for cell in (task, n_samples, n_views, n_widths, correlation, *shown)]


def main() -> None:
    """Draw all problems, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "view_tests.md")
    options = parser.parse_args()
    header = ["task", "samples", "views", "widths", "correlation", "false positives, %", "power, %"]
    lines = [header, ["---"] * len(header)]
    with threadpool_limits(1):
        for case in CASES:
            lines.append(row(*case, repeats=options.repeats))
            print(" | ".join(lines[-1]), flush=True)
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    options.output.write_text(PAGE.format(repeats=options.repeats, table=table), encoding="utf-8")


if __name__ == "__main__":
    main()
