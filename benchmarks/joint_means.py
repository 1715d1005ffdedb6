"""
Sweeps that joint means needs to reach the bound of many plain sweeps, on the paper's banks.

    .venv/bin/python benchmarks/joint_means.py [--plain 1000] [--output benchmarks/results/joint_means.md]

Counts, not seconds: the same on every machine. A pass is one reading of the kernel stack: a plain sweep makes two,
a joint sweep with s conjugate gradient steps 2 s + 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from problems import available, split

from bemkl.distributions import Gamma, PointMass
from bemkl.inference import DENSE, SPARSE, Block, Gaussian, JointMeans, Plain, Priors, Probit, Problem, initialise, run

STEPS = (1, 2, 3)
EARLY = 200


def main() -> None:
    """Run every available set with sparse and dense weights and both deviations; print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", type=int, default=1000, help="plain sweeps to compare with, at least 200")
    parser.add_argument("--sets", nargs="*", default=available(), help="data sets")
    parser.add_argument("--output", type=Path, help="file for the table")
    options = parser.parse_args()
    header = ["set", "N", "P", "weights", "deviation", f"bound at {EARLY}", f"bound at {options.plain}"]
    header += [f"joint({s}) for {n}" for n in (EARLY, options.plain) for s in STEPS]
    rows = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    print("\n".join(rows), flush=True)
    for name in options.sets:
        for row in compare(name, options.plain):
            rows.append("| " + " | ".join(row) + " |")
            print(rows[-1], flush=True)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        command = f".venv/bin/python benchmarks/joint_means.py --plain {options.plain} --sets {' '.join(options.sets)}"
        options.output.write_text(PAGE.format(command=command, table="\n".join(rows), plain=options.plain, early=EARLY))


def compare(name: str, n_plain: int):
    """Yield the cells of each row of one data set."""
    data = split(name)
    regression = np.unique(data.y_train).size > 2
    likelihood = Gaussian(data.y_train) if regression else Probit(data.y_train)
    block = Block(data.train, likelihood)
    deviations = {"learned": Gamma(1.0, 1.0)} if regression else {std: PointMass.from_std(std) for std in (0.1, 1.0)}
    for weights, prior in (("dense", DENSE), ("sparse", SPARSE)):
        for deviation, intermediate in deviations.items():
            problem = Problem([block], Priors(kernel=prior, intermediate=intermediate), pair=Plain())
            start = initialise(problem)
            plain = run(problem, start, max_iter=n_plain, tol=None).lower_bounds
            found = [sweeps_to(problem, JointMeans(steps), (plain[EARLY - 1], plain[-1]), n_plain) for steps in STEPS]
            early, late = zip(*found, strict=True)
            n_kernels, n_samples, _ = data.train.shape
            yield [
                *map(str, (name, n_samples, n_kernels, weights, deviation)),
                f"{plain[EARLY - 1]:.1f}",
                f"{plain[-1]:.1f}",
                *early,
                *late,
            ]


def sweeps_to(problem: Problem, pair: JointMeans, targets: tuple[float, float], limit: int) -> list[str]:
    """Return how many joint sweeps from the start reach each of two targets, the higher one last."""
    problem = Problem(problem.blocks, problem.priors, pair=pair)
    state, bounds = initialise(problem), np.empty(0)
    while len(bounds) < limit and not (bounds >= targets[-1]).any():
        part = run(problem, state, max_iter=min(10, limit - len(bounds)), tol=None)
        state, bounds = part.state, np.concatenate([bounds, part.lower_bounds])
    reached = [np.flatnonzero(bounds >= target) for target in targets]
    return [str(int(sweeps[0]) + 1) if sweeps.size else f"> {limit}" for sweeps in reached]


PAGE = """# Sweeps needed: joint means against plain

Made by `{command}`,
with `BEMKL_DATA` set to a folder of the paper's data sets (without it: wdbc, wine and diabetes, which scikit-learn
carries). One split a set, 70 % for training, the paper's kernels, margin 1. *bound at {early}* and *bound at {plain}*
are the exact lower bound after that many plain sweeps; *joint(s) for n* is the number of sweeps with s conjugate
gradient steps that reach the bound of n plain ones from the same start. A plain sweep reads the kernels twice, a joint
sweep 2 s + 1 times.

{table}
"""

if __name__ == "__main__":
    sys.exit(main())
