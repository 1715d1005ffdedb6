"""
What steps can do without: sweeps, covariances and preconditioners of fits with exact and with approximate steps.

    .venv/bin/python benchmarks/approximate_steps.py [--output benchmarks/results/approximate_steps.md]

Counts, not seconds: the same on every machine. No test sample is looked at.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from problems import PAPER_SETS, available, split
from step_length import table

from bemkl.distributions import PointMass
from bemkl.inference import (
    DENSE,
    SPARSE,
    Block,
    NewtonMeans,
    NewtonWeights,
    Priors,
    Probit,
    Problem,
    ascend,
    pair,
)
from bemkl.inference.newton import joint_means

CASES = tuple(product(("dense", "sparse"), (0.1, 0.3, 1.0)))

PAGE = """# What steps can do without

Made by `.venv/bin/python benchmarks/approximate_steps.py` with `BEMKL_DATA` set to a folder of the paper's data sets.
One split a set, 70 % for training, the paper's kernels, margin 1, default tolerance; no test sample is looked at.
*exact* steps compute the coupled projection of every step, the covariance of the sample weights and the preconditioner
in every sweep; *approximate* ones only where they serve ([derivation](../../docs/derivation.md), section 5). Bounds are
where the fits end.

{table}
"""


def main() -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "approximate_steps.md")
    options = parser.parse_args()
    rows, sums = [], np.zeros(6, dtype=int)
    for name in [name for name in available() if name in PAPER_SETS]:
        samples = split(name)
        block = Block(samples.train, Probit(samples.y_train, margin=1.0))
        for prior, deviation in CASES:
            priors = Priors(kernel=SPARSE if prior == "sparse" else DENSE, intermediate=PointMass.from_std(deviation))
            problem = Problem([block], priors, NewtonWeights(), NewtonMeans())
            with exactly():
                exact, exact_counts = counted(problem)
            approximate, approximate_counts = counted(problem)
            counts = [
                exact.n_iter,
                approximate.n_iter,
                *(c[key] for key in "ap" for c in (exact_counts, approximate_counts)),
            ]
            sums += counts
            bounds = [f"{exact.lower_bound:.1f}", f"{approximate.lower_bound - exact.lower_bound:+.2f}"]
            rows.append([name, prior, f"{deviation}", *map(str, counts), *bounds])
            print(" | ".join(rows[-1]), flush=True)
    rows.append(["sum", "", "", *map(str, sums), "", ""])
    pairs = [
        f"{what}, {how}"
        for what in ("sweeps", "covariances of a", "preconditioners")
        for how in ("exact", "approximate")
    ]
    head = ["set", "weights", "deviation", *pairs, "bound, exact", "difference, approximate"]
    options.output.write_text(PAGE.format(table="\n".join(table(head, rows))), encoding="utf-8")


@contextmanager
def exactly() -> Iterator[None]:
    """Take exact steps with new preconditioners."""
    with patch.object(joint_means, "_MANY", np.inf), patch.object(joint_means, "_CLOSE", -1.0):
        yield


def counted(problem: Problem) -> tuple[Any, Counter[str]]:
    """Fit, and count covariances of a and preconditioners."""
    counts: Counter[str] = Counter()

    def counting(key: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            counts[key] += 1
            return function(*arguments)

        return call

    factor, solver = pair.precision_factor, joint_means.weigh
    with (
        patch.object(pair, "precision_factor", counting("a", factor)),
        patch.object(joint_means, "weigh", counting("p", solver)),
    ):
        return ascend(problem), counts


if __name__ == "__main__":
    main()
