"""
Test log loss of three rules for the probability of a label, on the paper's eight data sets.

    .venv/bin/python benchmarks/probability_rules.py [--seeds 3] [--output benchmarks/results/probability_rules.md]

Needs BEMKL_DATA, or uses scikit-learn's breast-cancer data alone. The rules: the normal probability of a positive score
with exact moments (the default), the same moments renormalised over the margins, and the rule that the paper prints.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from problems import available, split
from scipy.special import expit, log_ndtr, ndtr

from bemkl.distributions import PointMass
from bemkl.inference import DENSE, SPARSE, Block, Priors, Probit, Problem, predict, run

RULES = ("exact", "exact, renormalised", "paper")


def main() -> None:
    """Average log losses over splits, priors and deviations; print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="splits a set")
    parser.add_argument("--output", type=Path, help="file for the table")
    options = parser.parse_args()
    rows = ["| set | " + " | ".join(RULES) + " | exact is best in |", "|---|---|---|---|---|"]
    print("\n".join(rows), flush=True)
    everything = []
    for name in available():
        if name in ("wine", "diabetes"):
            continue
        losses = np.array([row for seed in range(options.seeds) for row in losses_of(name, seed)])
        everything.append(losses)
        rows.append(cells(name, losses))
        print(rows[-1], flush=True)
    rows.append(cells("all", np.concatenate(everything)))
    print(rows[-1])
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        command = f".venv/bin/python benchmarks/probability_rules.py --seeds {options.seeds}"
        options.output.write_text(PAGE.format(command=command, table="\n".join(rows), seeds=options.seeds))


def cells(name: str, losses: np.ndarray) -> str:
    """Return one row: mean loss of each rule, and how often the first is lowest."""
    wins = int((losses.argmin(axis=1) == 0).sum())
    return f"| {name} | " + " | ".join(f"{loss:.3f}" for loss in losses.mean(axis=0)) + f" | {wins} of {len(losses)} |"


def losses_of(name: str, seed: int):
    """Yield the three log losses for each prior and deviation on one split."""
    data = split(name, seed)
    for prior in (DENSE, SPARSE):
        for deviation in (0.1, 1.0):
            priors = Priors(kernel=prior, intermediate=PointMass.from_std(deviation))
            problem = Problem([Block(data.train, Probit(data.y_train, margin=1.0))], priors)
            state = run(problem, max_iter=60, tol=None).state
            exact = predict(problem, state, data.test)
            mean, root = exact.mean[:, 0], np.sqrt(exact.variance[:, 0])
            renormalised = expit(log_ndtr((mean - 1.0) / root) - log_ndtr((-mean - 1.0) / root))
            printed = predict(problem, state, data.test, predictive="paper").probability[:, 0]
            yield [log_loss(data.y_test, p) for p in (ndtr(mean / root), renormalised, printed)]


def log_loss(y: np.ndarray, probability: np.ndarray) -> float:
    """Return the mean negative log probability of the labels."""
    correct = np.where(y > 0.0, probability, 1.0 - probability)
    return float(-np.log(np.clip(correct, 1e-15, None)).mean())


PAGE = """# Which rule for the probability of a label?

Made by `{command}` with `BEMKL_DATA` set to a folder of the paper's eight data sets. Test
log loss, averaged over {seeds} splits (70 % for training), sparse and dense kernel weights, and deviations of the
intermediate outputs of 0.1 and 1; margin 1, 60 sweeps.

- *exact*: the normal probability that the score is positive, with its exact mean and variance. The default.
- *exact, renormalised*: the same moments, normal probabilities beyond the two margins, renormalised to sum to one.
- *paper*: the printed rule, which leaves out the uncertainty of the intermediate outputs and divides by the variance.

{table}
"""

if __name__ == "__main__":
    sys.exit(main())
