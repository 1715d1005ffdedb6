"""
How far Newton steps should go: sweeps to the same bound for several factors, on the paper's banks.

    .venv/bin/python benchmarks/step_length.py [--output benchmarks/results/step_length.md]

Counts, not seconds: the same on every machine. No test sample is looked at.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from statistics import mean

import numpy as np
from problems import PAPER_SETS, available, split

from bemkl.arrays import Array
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
    State,
    ascend,
    iterate,
)

FACTORS = (1.0, 1.2, 1.3, 1.4, 1.5, 1.6)
CASES = (("dense", 0.1), ("dense", 1.0), ("sparse", 0.1), ("sparse", 1.0))
MOST = 60

HEADER = """# How far Newton steps go

Made by `.venv/bin/python benchmarks/step_length.py` with `BEMKL_DATA` set to a folder of the paper's data sets. One
split a set, 70 % for training, the paper's kernels, margin 1; no test sample is looked at. *bound* is where a fit with
factor 1 and the default tolerance ends; the columns are the sweeps that each factor needs to reach it.
"""

WITHOUT = """
## Kernels without weight

Leaving a kernel out of a sweep changes bound, weights and predictions by less than 1e-8 only where E[e²] σ_g² is below
some 1e-10. Kernels above that, and above two larger numbers, when the bound has settled with the default tolerance:
"""


def main() -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "step_length.md")
    options = parser.parse_args()
    counts, without, shares = [], [], []
    for name, (prior, deviation) in product([name for name in available() if name in PAPER_SETS], CASES):
        samples = split(name)
        block = Block(samples.train, Probit(samples.y_train, margin=1.0))
        priors = Priors(kernel=SPARSE if prior == "sparse" else DENSE, intermediate=PointMass.from_std(deviation))
        plain = ascend(with_steps(block, priors, 1.0))
        found = [sweeps(with_steps(block, priors, factor), plain.lower_bound) for factor in FACTORS]
        shares.append([count / found[0] for count in found])
        cells = [str(count) if count <= MOST else f"> {MOST}" for count in found]
        counts.append([name, prior, f"{deviation}", f"{plain.lower_bound:.1f}", *cells])
        print(" | ".join(counts[-1]), flush=True)
        if prior == "sparse":
            square = second(plain.state) * deviation**2
            above = [str(int((square > size).sum())) for size in (1e-10, 1e-8, 1e-6)]
            without.append([name, f"{deviation}", str(len(square)), *above])
    counts.append(["mean, relative", "", "", "", *(f"{mean(column):.2f}" for column in zip(*shares, strict=True))])
    head = ["set", "weights", "deviation", "bound", *(f"{factor}" for factor in FACTORS)]
    text = [HEADER, *table(head, counts), WITHOUT]
    text += table(["set", "deviation", "kernels", "above 1e-10", "above 1e-8", "above 1e-6"], without)
    options.output.write_text("\n".join(text) + "\n", encoding="utf-8")


def with_steps(block: Block, priors: Priors, factor: float) -> Problem:
    """Return a problem whose bold steps have some length relative to Newton's."""
    return Problem([block], priors, NewtonWeights(step_length=factor), NewtonMeans(step_length=factor))


def sweeps(problem: Problem, goal: float) -> int:
    """Count sweeps until a bound is reached, with a tenth of the tolerance of a fit to spare."""
    bounds = (sum(terms.values()) for _, terms in islice(iterate(problem), MOST))
    return next((count for count, bound in enumerate(bounds, start=1) if bound >= goal - 1e-5 * abs(goal)), MOST + 1)


def second(state: State) -> Array:
    """Return E[e²] of the kernel weights."""
    moments = state.weights.moments(0)
    return np.asarray(moments.second.diagonal())


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Write a table, line by line."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    main()
