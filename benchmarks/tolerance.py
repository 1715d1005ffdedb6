"""
How far to iterate: held-out accuracy and log loss against the change of the bound, for the default `tol`.

    .venv/bin/python benchmarks/tolerance.py [--sets wdbc wine] [--output benchmarks/results]

Only the training part of each set's first split is used: 70 % of it to fit, the rest to score. A run goes on for 100
iterations; what is shown is how far scores are from those at its end, by the relative change of the bound.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from problems import available, load

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
    iterate,
    predict,
)
from bemkl.kernels import paper_bank

LOOKED_AT = (*range(1, 13), 15, 20, 30, 50, 100)
TOLERANCES = (1e-2, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6)


@dataclass(frozen=True)
class Look:
    """What a run was like after some iterations."""

    iteration: int
    change: float
    accuracy: float
    log_loss: float


def main() -> None:
    """Run every binary set with both priors and deviations; print a table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=[n for n in available() if n not in ("wine", "diabetes")])
    parser.add_argument("--output", type=Path, help="folder for table and picture")
    options = parser.parse_args()
    runs = {}
    for name in options.sets:
        for setting, looks in fits(name):
            runs[setting] = looks
            print(setting, *(f"{look.iteration}:{look.change:.0e}:{look.log_loss:.4f}" for look in looks), flush=True)
    table = summary(runs)
    print(table)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        page = PAGE.format(table=table, sets=" ".join(options.sets))
        (options.output / "tolerance.md").write_text(page, encoding="utf-8")
        draw(runs, options.output / "tolerance.png")


def fits(name: str) -> Iterator[tuple[str, list[Look]]]:
    """Yield the runs of one set."""
    X, y = load(name)
    order = np.random.default_rng(0).permutation(len(X))
    train = order[: int(0.7 * len(X))]
    fit, held_out = np.split(train, [int(0.7 * len(train))])
    bank = paper_bank()
    block = Block(bank.fit_factored(X[fit]), Probit(y[fit]))
    new = bank.transform(X[held_out]).dense()
    for weights, prior in (("dense", DENSE), ("sparse", SPARSE)):
        for deviation in (0.1, 1.0):
            priors = Priors(kernel=prior, intermediate=PointMass.from_std(deviation))
            problem = Problem([block], priors, pair=NewtonMeans(), weights=NewtonWeights())
            looks, before = [], np.nan
            for iteration, (state, terms) in enumerate(islice(iterate(problem), LOOKED_AT[-1]), 1):
                bound = sum(terms.values())
                change = abs(bound - before) / max(abs(bound), problem.n_observations)
                before = bound
                if iteration in LOOKED_AT:
                    probability = predict(problem, state, new).probability[:, 0]
                    right = np.where(y[held_out] > 0, probability, 1.0 - probability)
                    looks.append(Look(iteration, change, float(np.mean(right > 0.5)), float(-np.log(right).mean())))
            yield f"{name} {weights} {deviation}", looks


def summary(runs: dict[str, list[Look]]) -> str:
    """Return, for each tolerance, iterations and distances from the end over all runs."""
    rows = [
        "| tol | median iterations | most | log loss: median distance | largest | accuracy: mean distance | largest |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for tolerance in TOLERANCES:
        stops = [(next((k for k in looks if k.change <= tolerance), looks[-1]), looks[-1]) for looks in runs.values()]
        iterations = [stop.iteration for stop, _ in stops]
        loss = [abs(stop.log_loss - end.log_loss) for stop, end in stops]
        accuracy = [abs(stop.accuracy - end.accuracy) for stop, end in stops]
        rows.append(
            f"| {tolerance:g} | {np.median(iterations):g} | {max(iterations)} | {np.median(loss):.4f} | "
            f"{max(loss):.4f} | {np.mean(accuracy):.4f} | {max(accuracy):.4f} |"
        )
    return "\n".join(rows)


def draw(runs: dict[str, list[Look]], path: Path) -> None:
    """Draw distances of log loss and accuracy from the end against the change of the bound."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for setting, looks in runs.items():
        colour = "tab:blue" if "dense" in setting else "tab:orange"
        change = [look.change for look in looks[1:]]
        for ax, score in zip(axes, ("log_loss", "accuracy"), strict=True):
            distance = [getattr(look, score) - getattr(looks[-1], score) for look in looks[1:]]
            ax.plot(change, distance, color=colour, alpha=0.5, linewidth=1)
    for ax, label in zip(axes, ("log loss", "accuracy"), strict=True):
        ax.set(xscale="log", xlabel="relative change of the bound", ylabel=f"{label}, less that at the end")
        ax.invert_xaxis()
        ax.axhline(0.0, color="black", linewidth=0.5)
        ax.axvline(1e-4, color="black", linestyle=":", linewidth=1)
    axes[0].plot([], [], color="tab:blue", label="dense weights")
    axes[0].plot([], [], color="tab:orange", label="sparse weights")
    axes[0].legend()
    figure.savefig(path, dpi=120)


PAGE = """# How far to iterate

Made by `.venv/bin/python benchmarks/tolerance.py --sets {sets} --output benchmarks/results` with `BEMKL_DATA` set to a
folder of the paper's data sets. Each set's training part is split again, so that no test sample has a say in the
default. Sparse and dense weights, deviations 0.1 and 1, 100 iterations a run; distances are those of a run stopped
at the tolerance from its own end.

{table}

![Scores against the change of the bound](tolerance.png)
"""

if __name__ == "__main__":
    sys.exit(main())
