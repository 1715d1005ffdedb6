"""
Sweeps that joint means and Newton steps need to reach the bound of many plain sweeps, on the paper's banks.

    .venv/bin/python benchmarks/convergence.py [--plain 3000] [--output benchmarks/results/convergence.md]

Counts, not seconds: the same on every machine. A sweep that the engine repeats with care counts twice.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from problems import available, split

import bemkl.inference.engine as engine
from bemkl.distributions import Gamma, PointMass
from bemkl.inference import (
    DENSE,
    SPARSE,
    Block,
    Gaussian,
    JointMeans,
    NewtonMeans,
    NewtonWeights,
    Plain,
    Priors,
    Probit,
    Problem,
    run,
)

EARLY = 200
LIMIT = 1000
CONTENDERS = {"joint": {"pair": JointMeans()}, "newton": {"pair": NewtonMeans(), "weights": NewtonWeights()}}


def main() -> None:
    """Run every available set with sparse and dense weights and both deviations; print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", type=int, default=3000, help="plain sweeps to compare with, at least 200")
    parser.add_argument("--sets", nargs="*", default=available(), help="data sets")
    parser.add_argument("--output", type=Path, help="file for the table")
    options = parser.parse_args()
    header = ["set", "N", "P", "weights", "deviation", f"bound at {EARLY}", f"bound at {options.plain}"]
    header += [f"{name} for {count}" for count in (EARLY, options.plain) for name in CONTENDERS]
    rows = [header, ["---"] * len(header)]
    print(line(header), line(rows[1]), sep="\n", flush=True)
    for name in options.sets:
        for row in compare(name, options.plain):
            rows.append(row)
            print(line(row), flush=True)
    rows.append(medians(rows[2:]))
    print(line(rows[-1]))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        table, sets = "\n".join(map(line, rows)), " ".join(options.sets)
        options.output.write_text(PAGE.format(table=table, sets=sets, plain=options.plain, early=EARLY))


def line(cells: list[str]) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def medians(rows: list[list[str]]) -> list[str]:
    """Return the medians over classification."""
    counts = [[float(cell) if cell.isdigit() else np.inf for cell in row[7:]] for row in rows if row[4] != "learned"]
    return ["median of classification", *[""] * 6, *(f"{median(column):g}" for column in zip(*counts, strict=True))]


def compare(name: str, n_plain: int) -> Iterator[list[str]]:
    """Yield the cells of each row of one data set."""
    data = split(name)
    regression = np.unique(data.y_train).size > 2
    likelihood = Gaussian(data.y_train) if regression else Probit(data.y_train)
    block = Block(data.train, likelihood)
    deviations = {"learned": Gamma(1.0, 1.0)} if regression else {std: PointMass.from_std(std) for std in (0.1, 1.0)}
    for weights, prior in (("dense", DENSE), ("sparse", SPARSE)):
        for deviation, intermediate in deviations.items():
            problem = Problem([block], Priors(kernel=prior, intermediate=intermediate), pair=Plain())
            plain = run(problem, max_iter=n_plain, tol=None).lower_bounds
            targets = round(plain[EARLY - 1], 1), round(plain[-1], 1)
            found = [sweeps_to(replace(problem, **strategies), targets) for strategies in CONTENDERS.values()]
            n_kernels, n_samples, _ = data.train.shape
            yield [
                *map(str, (name, n_samples, n_kernels, weights, deviation)),
                *(f"{target:.1f}" for target in targets),
                *(counts[which] for which in range(2) for counts in found),
            ]


def sweeps_to(problem: Problem, targets: tuple[float, float]) -> list[str]:
    """Return how many sweeps, repeated ones included, reach each of two targets, the higher one last."""
    done, original = [0], engine.sweep

    def counting(problem: Problem, state: engine.State) -> engine.State:
        done[0] += 1
        return original(problem, state)

    needed = ["", ""]
    engine.sweep = counting
    try:
        for _, terms in engine.iterate(problem):
            bound = sum(terms.values())
            needed = [
                count or (str(done[0]) if bound >= goal else "") for count, goal in zip(needed, targets, strict=True)
            ]
            if needed[-1] or done[0] >= LIMIT:
                break
    finally:
        engine.sweep = original
    return [count or f"> {LIMIT}" for count in needed]


PAGE = """# Sweeps needed: joint means and Newton steps against plain updates

Made by `.venv/bin/python benchmarks/convergence.py --plain {plain} --sets {sets}`
with `BEMKL_DATA` set to a folder of the paper's data sets (without it: wdbc, wine and diabetes, which scikit-learn
carries). One split a set, 70 % for training, the paper's kernels, margin 1. *bound at {early}* and *bound at {plain}*
are the exact lower bound after that many plain sweeps, to a tenth; *joint for n* and *newton for n* are the numbers of
sweeps that reach it from their own start. Each makes one conjugate gradient step, or up to eight where the first one's
length shows that the preconditioner is poor. A sweep of Newton steps that lowers the bound is repeated with joint
means, and counts twice.

{table}
"""

if __name__ == "__main__":
    sys.exit(main())
