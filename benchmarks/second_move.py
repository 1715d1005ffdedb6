"""
Precisions of kernel weights that move twice a sweep under the sparse prior: sweeps, and where they end.

    .venv/bin/python benchmarks/second_move.py [--splits 3] [--output benchmarks/results/second_move.md]

Counts, not seconds: the same on every machine. No test sample is looked at.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from unittest.mock import patch

import numpy as np
from problems import PAPER_SETS, available, split
from step_length import table

from bemkl.distributions import PointMass
from bemkl.inference import (
    SPARSE,
    Block,
    NewtonMeans,
    NewtonWeights,
    Priors,
    Probit,
    Problem,
    ascend,
)
from bemkl.inference.weights import newton

DEVIATIONS = (0.1, 0.3, 1.0)
TOL = 1e-4

PAGE = """# Precisions that move twice

Made by `.venv/bin/python benchmarks/second_move.py` with `BEMKL_DATA` set to a folder of the paper's data sets. 70 %
for training, the paper's kernels, sparse weights, margin 1, default tolerance, {splits} splits a set; no test sample is
looked at. *once* takes one step of the precisions of the kernel weights a sweep, *twice* another one where the first
moves far ([derivation](../../docs/derivation.md), section 5). Sweeps are sums over the splits; bounds are those at the
end, as mean, least and largest difference in units of what ends a fit, {tol} of the bound.

{table}
"""


def main() -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "second_move.md")
    options = parser.parse_args()
    rows, sums, everywhere = [], np.zeros(2, dtype=int), []
    for name in [name for name in available() if name in PAPER_SETS]:
        blocks = []
        for seed in range(options.splits):
            samples = split(name, seed)
            blocks.append(Block(samples.train, Probit(samples.y_train, margin=1.0)))
        for deviation in DEVIATIONS:
            counts, differences = np.zeros(2, dtype=int), []
            for block in blocks:
                priors = Priors(kernel=SPARSE, intermediate=PointMass.from_std(deviation))
                problem = Problem([block], priors, NewtonWeights(), NewtonMeans())
                with patch.object(newton, "_FAR", np.inf):
                    once = ascend(problem)
                twice = ascend(problem)
                counts += [once.n_iter, twice.n_iter]
                differences.append((twice.lower_bound - once.lower_bound) / (TOL * abs(once.lower_bound)))
            sums += counts
            everywhere += differences
            rows.append([name, f"{deviation}", *map(str, counts), *summary(differences)])
            print(" | ".join(rows[-1]), flush=True)
    rows.append(["all", "", *map(str, sums), *summary(everywhere)])
    head = ["set", "deviation", "sweeps, once", "sweeps, twice", "bound, mean difference", "least", "largest"]
    page = PAGE.format(table="\n".join(table(head, rows)), splits=options.splits, tol=TOL)
    options.output.write_text(page, encoding="utf-8")


def summary(differences: list[float]) -> list[str]:
    """Return mean, least and largest difference."""
    return [f"{value:+.2f}" for value in (np.mean(differences), np.min(differences), np.max(differences))]


if __name__ == "__main__":
    main()
