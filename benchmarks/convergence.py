"""
Sweeps that joint means and Newton steps need to reach the bound of many plain sweeps, on the paper's banks.

    .venv/bin/python benchmarks/convergence.py [--plain 3000] [--output benchmarks/results/convergence.md]

Counts, not seconds: the same on every machine. A sweep that the engine repeats with care counts twice. The bounds of
the plain sweeps, nearly all of the work, are kept in benchmarks/results/plain_bounds.json; delete it to repeat them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from problems import available, split

import bemkl.inference.engine as engine
from bemkl.arrays import Array
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
PLAIN_BOUNDS = Path(__file__).parent / "results" / "plain_bounds.json"
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
    counts = [
        [tuple(map(float, cell.split(" / "))) if "/" in cell else (np.inf, np.inf) for cell in row[7:]]
        for row in rows
        if row[4] != "learned"
    ]
    middle = [[median(counts) for counts in zip(*column, strict=True)] for column in zip(*counts, strict=True)]
    return ["median of classification", *[""] * 6, *(f"{sweeps:g} / {steps:g}" for sweeps, steps in middle)]


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
            targets = plain_bounds(problem, n_plain, f"{name}, {weights}, {deviation}")
            found = [sweeps_to(replace(problem, **strategies), targets) for strategies in CONTENDERS.values()]
            n_kernels, n_samples, _ = data.train.shape
            yield [
                *map(str, (name, n_samples, n_kernels, weights, deviation)),
                *(f"{target:.1f}" for target in targets),
                *(counts[which] for which in range(2) for counts in found),
            ]


def plain_bounds(problem: Problem, n_plain: int, title: str) -> tuple[float, float]:
    """Return the bounds after some and after all plain sweeps, to a tenth; from the file where it has them."""
    known = json.loads(PLAIN_BOUNDS.read_text()) if PLAIN_BOUNDS.exists() else {}
    title = f"{title}, {n_plain}"
    if title not in known:
        bounds = run(problem, max_iter=n_plain, tol=None).lower_bounds
        known[title] = [round(bounds[EARLY - 1], 1), round(bounds[-1], 1)]
        PLAIN_BOUNDS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    early, late = known[title]
    return early, late


class CountingStack:
    """A stack that counts its projections: one for each conjugate gradient step."""

    def __init__(self, stack: Any) -> None:
        self._stack = stack
        self.n_projections = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stack, name)

    def project(self, coefficients: Array) -> Array:
        """Count, and project."""
        self.n_projections += 1
        projection: Array = self._stack.project(coefficients)
        return projection


def sweeps_to(problem: Problem, targets: tuple[float, float]) -> list[str]:
    """Return how many sweeps, repeated ones included, and steps reach each of two targets, the higher one last."""
    done, original = [0], engine.sweep
    stack = CountingStack(problem.blocks[0].stack)
    problem = replace(problem, blocks=[replace(problem.blocks[0], stack=stack)])

    def counting(problem: Problem, state: engine.State) -> engine.State:
        done[0] += 1
        return original(problem, state)

    needed = ["", ""]
    engine.sweep = counting
    try:
        for _, terms in engine.iterate(problem):
            bound, counts = sum(terms.values()), f"{done[0]} / {stack.n_projections}"
            needed = [count or (counts if bound >= goal else "") for count, goal in zip(needed, targets, strict=True)]
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
sweeps that reach it from their own start, and behind the stroke those of conjugate gradient steps inside, the start's
included: one a sweep, or up to eight where the first one's length shows that the preconditioner is poor. A sweep of
Newton steps that lowers the bound is repeated with joint means, and counts twice.

{table}
"""

if __name__ == "__main__":
    sys.exit(main())
