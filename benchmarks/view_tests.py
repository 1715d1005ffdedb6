"""
Tests of views and kernels, and intervals of shares, on planted problems.

    .venv/bin/python benchmarks/view_tests.py [--repeats 40] [--output FILE]

Views have three columns each and Gaussian kernels of some widths; the first matters by a sine of one column, the second
by another column, and the others not at all. Correlated views have a common part in every column. For intervals of
shares, functions are drawn from the model itself, with known shares of the views.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec

HERE = Path(__file__).parent
CASES = (
    ("regression", 60, 10, 1, 0.3),
    ("regression", 60, 30, 1, 0.0),
    ("regression", 100, 6, 2, 0.0),
    ("regression", 100, 60, 1, 0.3),
    ("regression", 300, 3, 2, 0.5),
    ("regression", 300, 6, 3, 0.5),
    ("regression", 600, 12, 2, 0.3),
    ("classification", 60, 6, 1, 0.3),
    ("classification", 100, 6, 2, 0.5),
    ("classification", 100, 20, 3, 0.3),
    ("classification", 150, 12, 1, 0.0),
    ("classification", 300, 8, 2, 0.3),
    ("classification", 300, 60, 1, 0.0),
    ("classification", 600, 4, 4, 0.3),
)
"""Task, samples, views, widths a view, correlation of columns of different views."""
SHARES = (
    ("regression", 100, 4, 1, "unequal"),
    ("regression", 150, 10, 1, "unequal"),
    ("regression", 150, 5, 2, "two large"),
    ("regression", 300, 6, 1, "two large"),
    ("regression", 600, 3, 1, "unequal"),
    ("classification", 150, 4, 1, "two large"),
    ("classification", 300, 4, 1, "unequal"),
    ("classification", 300, 8, 1, "unequal"),
    ("classification", 600, 5, 2, "unequal"),
)
"""Task, samples, views, widths a view, shares of the views."""
PAGE = """# Tests of views and kernels

Made by `.venv/bin/python benchmarks/view_tests.py --repeats {repeats}`: {repeats} draws of each problem, in which two
views matter. Shares of views, and of kernels, with p below 0.05 in `summary`. False positives are views without
influence, and kernels of these; a standard error follows. Power is the share of the two views, and of their kernels,
that are found: where a view has kernels of several widths, each can stand in for the others. A dash: more than 60 views
and kernels together, in which kernels are not tested one by one.

{tests}

## Intervals of shares

Functions drawn from the model with known shares of the views, and noise of a quarter of their variance; labels are the
signs. Unequal shares are log-normal with deviation one; of the others, two views have 60 and 30 %. How often 95 %
intervals of `posterior_.shares` cover the planted share of a view, how often they lie above or below it, and their mean
width.

{shares}
"""
FIRST = ["task", "samples", "views", "widths"]


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


def drawn(
    seed: int, n_samples: int, n_views: int, n_widths: int, shares: str
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return views, responses of a function from the model itself, and the views' shares."""
    rng = np.random.default_rng(seed)
    views = {f"view {v}": rng.normal(size=(n_samples, 3)) for v in range(n_views)}
    share = np.exp(rng.normal(size=n_views)) if shares == "unequal" else np.full(n_views, 0.1 / (n_views - 2))
    if shares == "two large":
        share[:2] = 0.6, 0.3
    share = share / share.sum()
    kernels = bank_of(n_widths).fit_transform(views).dense().values
    covariance = np.tensordot(np.repeat(share, n_widths) / n_widths, kernels, 1)
    function = np.linalg.cholesky(covariance + 1e-8 * np.eye(n_samples)) @ rng.normal(size=n_samples)
    return views, function + 0.5 * rng.normal(size=n_samples), share


def bank_of(n_widths: int) -> KernelBank:
    """Return a bank of unit diagonal."""
    widths = (np.sqrt(3.0) * np.array([1.0, 0.5, 2.0, 4.0])[:n_widths]).tolist()
    return KernelBank([KernelSpec("gaussian", "each", {"width": widths})], standardise=True, scaling="spherical")


def fitted(task: str, n_widths: int, views: dict[str, np.ndarray], y: np.ndarray) -> Any:
    """Fit responses, or their signs."""
    if task == "regression":
        return BEMKLRegressor(bank_of(n_widths), posterior="marginal").fit(views, y)
    return BEMKLClassifier(bank_of(n_widths), posterior="marginal").fit(views, y > 0.0)


def test_row(task: str, n_samples: int, n_views: int, n_widths: int, correlation: float, repeats: int) -> list[str]:
    """Draw and fit one problem many times, and count what is found of views and kernels."""
    found: dict[str, list[list[float]]] = {"view": [], "kernel": []}
    for seed in range(repeats):
        model = fitted(task, n_widths, *planted(seed, n_samples, n_views, correlation))
        for by, names in (("view", [f"view {v}" for v in range(n_views)]), ("kernel", model.kernel_names_)):
            table = model.summary(by=by, rounded=False)
            if "p" in table.columns:
                p = dict(zip(table.index, table["p"], strict=True))
                found[by].append([p[name] for name in names])
    return [str(cell) for cell in (task, n_samples, n_views, n_widths, correlation)] + [
        cell for by, relevant in (("view", 2), ("kernel", 2 * n_widths)) for cell in _rates(found[by], relevant)
    ]


def _rates(found: list[list[float]], relevant: int) -> tuple[str, str]:
    """Return false positives with their standard error, and power, where there are tests."""
    if not found:
        return "–", "–"
    p = np.array(found)
    false, true = np.mean(p[:, relevant:] < 0.05), np.mean(p[:, :relevant] < 0.05)
    error = np.sqrt(false * (1.0 - false) / p[:, relevant:].size)
    return f"{100 * false:.1f} ± {100 * error:.1f}", f"{100 * true:.0f}"


def share_row(task: str, n_samples: int, n_views: int, n_widths: int, shares: str, repeats: int) -> list[str]:
    """Draw and fit one problem many times, and count what intervals cover."""
    inside = np.repeat(np.eye(n_views), n_widths, axis=1)
    counts = []
    for seed in range(repeats):
        views, y, share = drawn(seed, n_samples, n_views, n_widths, shares)
        _, low, high = fitted(task, n_widths, views, y).posterior_.shares(0.95, inside)
        counts.append([low > share, high < share, high - low])
    above, below, width = np.mean(counts, axis=(0, 2))
    cells = task, n_samples, n_views, n_widths, shares
    figures = 100 * (1.0 - above - below), 100 * above, 100 * below
    return [*map(str, cells), *(f"{value:.1f}" for value in figures), f"{width:.2f}"]


def table_of(header: list[str], rows: list[list[str]]) -> str:
    """Write a table."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *rows))


def main() -> None:
    """Draw all problems, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "view_tests.md")
    options = parser.parse_args()
    tests: list[list[str]] = []
    shares: list[list[str]] = []
    with threadpool_limits(1):
        for rows, cases, make in ((tests, CASES, test_row), (shares, SHARES, share_row)):
            for case in cases:
                rows.append(make(*case, repeats=options.repeats))
                print(" | ".join(rows[-1]), flush=True)
    rates = ["correlation", "views: false positives, %", "power, %", "kernels: false positives, %", "power, %"]
    page = PAGE.format(
        repeats=options.repeats,
        tests=table_of(FIRST + rates, tests),
        shares=table_of([*FIRST, "shares", "cover, %", "above, %", "below, %", "width"], shares),
    )
    options.output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
