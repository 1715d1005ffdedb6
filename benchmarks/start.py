"""
How long the vector of kernel weights should be at the start: sweeps to the same bound, on the paper's banks.

    .venv/bin/python benchmarks/start.py [--output benchmarks/results/start.md]

Counts, not seconds: the same on every machine. No test sample is looked at.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any

from problems import PAPER_SETS, available, split
from step_length import MOST, sweeps, table

from bemkl.distributions import PointMass
from bemkl.inference import DENSE, SPARSE, Block, NewtonMeans, NewtonWeights, Priors, Probit, Problem, ascend
from bemkl.inference.state import starting_scale
from bemkl.inference.weights.free import FreeWeights

CASES = (("dense", 1.0), ("dense", 0.1), ("dense", 0.01), ("sparse", 1.0), ("sparse", 0.1), ("sparse", 0.01))

HEADER = """# How long the first weights are

Made by `.venv/bin/python benchmarks/start.py` with `BEMKL_DATA` set to a folder of the paper's data sets. One split a
set, 70 % for training, the paper's kernels, margin 1; no test sample is looked at. A fit that starts with kernel
weights of length 1 and has the default tolerance ends at *bound* after so many sweeps; *length* is that of the rule
(`starting_scale`), and the other columns are the sweeps from there, from half and from twice that length to the same
bound. The constants of the rule were chosen by such counts.
"""


@dataclass(frozen=True)
class Longer(NewtonWeights):
    """Weights that start so many times as long."""

    times: float = 1.0

    def start(self, *arguments: Any) -> FreeWeights:
        """Return weights to begin with."""
        return super().start(*arguments).scaled(self.times, spread=True)


def main() -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "start.md")
    options = parser.parse_args()
    rows, shares = [], []
    for name, (prior, deviation) in product([name for name in available() if name in PAPER_SETS], CASES):
        samples = split(name)
        priors = Priors(kernel=SPARSE if prior == "sparse" else DENSE, intermediate=PointMass.from_std(deviation))
        block = Block(samples.train, Probit(samples.y_train, margin=1.0))
        problem = Problem([block], priors, NewtonWeights(), NewtonMeans())
        length = starting_scale(problem)
        one = ascend(replace(problem, weights=Longer(times=1.0 / length)))
        found = [sweeps(replace(problem, weights=Longer(times=times)), one.lower_bound) for times in (0.5, 1.0, 2.0)]
        shares.append([count / one.n_iter for count in found])
        counts = [str(count) if count <= MOST else f"> {MOST}" for count in found]
        rows.append([name, prior, f"{deviation}", f"{one.lower_bound:.1f}", str(one.n_iter), f"{length:.2f}", *counts])
        print(" | ".join(rows[-1]), flush=True)
    for label, summary in (("mean", mean), ("median", median)):
        cells = [f"{summary(column):.2f}" for column in zip(*shares, strict=True)]
        rows.append([f"{label}, relative", "", "", "", "1.00", "", *cells])
    head = ["set", "weights", "deviation", "bound", "length 1", "length", "half of it", "the rule", "twice"]
    options.output.write_text("\n".join([HEADER, *table(head, rows)]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
