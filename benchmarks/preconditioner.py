"""
How good the preconditioner of the means is: eigenvalues of the true matrix relative to it.

    .venv/bin/python benchmarks/preconditioner.py [--sets bupaliver heart] [--output FILE]

The true matrix sums over all pairs of kernels, which is only affordable on small sets. Compared with it are the
inverse covariance of a, the natural choice, and the combined kernel with the gram matrix, which the package uses.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from problems import available, split
from scipy.linalg import eigh

from bemkl.distributions import PointMass
from bemkl.inference import DENSE, SPARSE, Block, NewtonMeans, NewtonWeights, Priors, Probit, Problem, run
from bemkl.inference.newton.coupling import Coupling, Samples

SWEEPS = (1, 5)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sets", nargs="*", default=[s for s in ("bupaliver", "heart") if s in available()] or ["wine"]
    )
    parser.add_argument("--output", type=Path, help="file for the table")
    options = parser.parse_args()
    rows = [
        "| set | weights | deviation | sweep | covariance of a: largest / smallest "
        "| combined kernel: largest / smallest | middle half |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in options.sets:
        rows += compare(name)
    print("\n".join(rows))
    if options.output:
        page = PAGE.format(table="\n".join(rows), sets=" ".join(options.sets))
        options.output.write_text(page, encoding="utf-8")


def compare(name: str) -> Iterator[str]:
    """Yield the rows of one set."""
    data = split(name)
    K, gram = data.train.rows(slice(None)), data.train.gram()
    block = Block(data.train, Probit(data.y_train))
    for weights, prior in (("dense", DENSE), ("sparse", SPARSE)):
        for deviation in (0.1, 1.0):
            priors = Priors(kernel=prior, intermediate=PointMass.from_std(deviation))
            problem = Problem([block], priors, NewtonWeights(), NewtonMeans())
            for n_sweeps in SWEEPS:
                state = run(problem, max_iter=n_sweeps, tol=None).state
                context = state.blocks[0].context(state.weights.moments(0))
                coupling = Coupling.of(context)
                lam, upsilon = np.diag(context.sample_precision[0]), context.intermediate_precision[0]
                flat = K.reshape(len(K), -1)
                true = lam + K.reshape(-1, len(lam)).T @ (coupling.matrix[0] @ flat).reshape(-1, len(lam))
                along = Samples.of(coupling, context.output_precision[:, None]).along
                combined = (context.weights.mean @ flat).reshape(K.shape[1:])
                ours = lam + coupling.across[0] * gram + along[0, 0] * combined.T @ combined
                natural = eigh(true, lam + upsilon * gram, eigvals_only=True)
                found = eigh(true, ours, eigvals_only=True)
                low, high = np.quantile(found, [0.25, 0.75])
                yield (
                    f"| {name} | {weights} | {deviation} | {n_sweeps} | {natural[-1] / natural[0]:.3g} | "
                    f"{found[-1] / found[0]:.3g} | {low:.2f} ... {high:.2f} |"
                )


PAGE = """# The preconditioner of the means

Made by `.venv/bin/python benchmarks/preconditioner.py --sets {sets}`. Spread of the eigenvalues of
Λ + Σ_i Kⁱᵀ M Kⁱ relative to Λ + υ C, the inverse covariance of a, and relative to Λ + κ C + c K_eᵀK_e
([derivation](../../docs/derivation.md), section 5): the closer to 1, the fewer conjugate gradient steps.

{table}
"""

if __name__ == "__main__":
    sys.exit(main())
