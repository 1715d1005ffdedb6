"""
Predictions with kernel weights at their maximum, averaged over their Laplace posterior, and by exact sampling.

    PYTHONPATH=tests .venv/bin/python benchmarks/averaging.py [--splits 8] [--draws 24] [--sweeps 2000] [--output FILE]

Weights, amplitude, bias and noise are drawn together, and each draw conditions the predictor anew. The sampler is that
of the tests.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from collapsed_gibbs import Problem, sample_weights_too, weights_under
from problems import load
from scipy.special import logsumexp, ndtr
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from bemkl import KernelBank, KernelSpec
from bemkl.kernels import DenseStack
from bemkl.marginal.climb import Climb, climb
from bemkl.marginal.effects import Effects, kinds_of
from bemkl.marginal.fit import Training
from bemkl.marginal.model import Model, Unit
from bemkl.marginal.observed import Observed, ObservedLabels, ObservedResponses
from bemkl.registry import FUNCTION_PRIORS, find

SPECS = [
    KernelSpec("gaussian", "each", {"width": 1.0}),
    KernelSpec("gaussian", "all", {"width": [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]}),
    KernelSpec("polynomial", "all", {"degree": [1, 2, 3]}),
]
SETS = ("sonar", "heart", "wpbc", "bupaliver", "yacht")
PAGE = """# Averaging over kernel weights

Made by `PYTHONPATH=tests .venv/bin/python benchmarks/averaging.py --splits {splits} --draws {draws} --sweeps {sweeps}`
with `BEMKL_DATA` set to a folder of the data sets. 70 % for training; Gaussian kernels of seven widths and three
polynomial ones on all columns, and a Gaussian one on each. Log loss of labels left out, for yacht minus the log density
of standardised responses; means over {splits} splits. *Averaged* is over {draws} draws of the Laplace posterior of
weights, amplitude, bias and noise. *Difference* is averaged less maximum, with the standard error of its mean: below
zero, averaging is better. *Calibrated* has the calibration of the fit in both, *plain* in none. *Sampled* is exact
sampling of the paper's model with the spreads of the fit, {sweeps} sweeps; *apart* is the mean absolute difference of
its probabilities from the plain ones at the maximum.

{table}
"""
HEAD = ("set", "prior", "kernels", "calibrated: at the maximum", "averaged", "difference")
HEAD += ("plain: at the maximum", "averaged", "difference", "sampled", "apart")


class Split(NamedTuple):
    """Training kernels and kernels of new samples, targets of both, and names of the kernels."""

    train: np.ndarray
    new: np.ndarray
    y: np.ndarray
    y_new: np.ndarray
    names: tuple[str, ...]


def split(name: str, seed: int) -> Split:
    """Take 70 % for training."""
    X, y = load(name)
    train, test = np.split(np.random.default_rng(seed).permutation(len(X)), [int(0.7 * len(X))])
    bank = KernelBank(SPECS, standardise=True, scaling="spherical")
    kernels = bank.fit_transform(X[train]).dense().values
    return Split(kernels, bank.transform(X[test]).dense().values, y[train], y[test], tuple(bank.kernel_names_))


def model_of(problem: Split, prior: str, observed: Observed) -> Model:
    """Put the model together as an estimator does."""
    functions, columns = zip(*(name.split(" on ") for name in problem.names), strict=True)
    kinds = kinds_of(columns, functions, [column != "all features" for column in columns])
    training = Training(DenseStack(problem.train), columns, observed)
    kernels, sizes = training.kernels(), np.ones(len(columns))
    make = find("function_prior", prior, FUNCTION_PRIORS)
    prior, places = make(training, kernels, sizes / len(sizes)), slice(0, len(sizes))
    units = [Unit(prior, seen, observed.criterion, places, observed.signal) for seen in observed.likelihoods]
    return Model.of(units, Effects.of(kinds), sizes)


def densities(model: Model, found: Climb, drawn: np.ndarray, observed: Observed, problem: Split) -> np.ndarray:
    """Return log densities of new targets for each draw, calibrated and plain, shape (2, n_draws, n_new)."""
    sites, rows = found.place.look.sites, []
    output = observed.output(found.place.look.posteriors, model.own(found.place.parameters))
    for parameters in drawn:
        look, weights = model.look(parameters, sites), model.weights(parameters)
        predictor, cross = look.priors[0].predictor(look.posteriors[0].condition), np.tensordot(weights, problem.new, 1)
        mean = cross @ predictor.dual + predictor.intercept
        variance = predictor.variance(cross, np.full(len(mean), weights.sum()))[:, None]
        if isinstance(observed, ObservedLabels):
            positive = output.predict(mean, variance).probability
            sure = np.where(problem.y_new > 0.0, positive[:, 0], 1.0 - positive[:, 0])
            rows.append([np.log(sure), np.log(ndtr(problem.y_new * (mean / np.sqrt(1.0 + variance))[:, 0]))])
        else:
            deviation = np.sqrt(variance[:, 0] + np.exp(model.own(parameters)[0]))
            rows.append([norm.logpdf(problem.y_new, mean[:, 0], d) for d in (output.stretch * deviation, deviation)])
    return np.moveaxis(np.array(rows), 1, 0)


def losses(problem: Split, prior: str, seed: int, options: argparse.Namespace) -> list[float]:
    """Return calibrated and plain losses at the maximum and averaged, the sampler's, and how far that is away."""
    labels = bool(np.all(np.abs(problem.y) == 1.0))
    observed = (ObservedLabels if labels else ObservedResponses)(problem.y[:, None])
    model = model_of(problem, prior, observed)
    found, rng = climb(model, max_iter=200, tol=1e-4), np.random.default_rng(seed)
    place, root = found.place, np.linalg.cholesky(found.place.covariance(model))
    drawn = place.parameters + rng.normal(size=(options.draws, len(root))) @ root.T
    maximum = densities(model, found, place.parameters[None], observed, problem)[:, 0]
    averaged = logsumexp(densities(model, found, drawn, observed, problem), axis=1) - np.log(options.draws)
    table = [-values.mean() for pair in zip(maximum, averaged, strict=True) for values in pair]
    if prior != "samples" or not labels or not options.sweeps:
        return [*table, np.nan, np.nan]
    exact = Problem(problem.train, problem.new, problem.y)
    positive = sample_weights_too(exact, *weights_under(model, place.spreads), rng, sweeps=options.sweeps).mean(axis=0)
    right = np.where(problem.y_new > 0.0, positive, 1.0 - positive)
    return [*table, -np.log(right).mean(), np.abs(right - np.exp(maximum[1])).mean()]


def cells(found: np.ndarray) -> list[str]:
    """Show the losses of all splits, shape (n_splits, 6)."""
    shown: list[str] = []
    for maximum, averaged in (found[:, :2].T, found[:, 2:4].T):
        error = (averaged - maximum).std(ddof=1) / np.sqrt(len(found))
        shown += [f"{maximum.mean():.3f}", f"{averaged.mean():.3f}"]
        shown.append(f"{(averaged - maximum).mean():+.4f} ± {error:.4f}")
    return shown + ["" if np.isnan(column).any() else f"{column.mean():.3f}" for column in found[:, 4:].T]


def main() -> None:
    """Compare on all sets, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--sweeps", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "averaging.md")
    options = parser.parse_args()
    lines, labels = [list(HEAD), ["---"] * len(HEAD)], {prior: [] for prior in FUNCTION_PRIORS}
    with threadpool_limits(1):
        for name, prior in product(SETS, FUNCTION_PRIORS):
            problems = [split(name, seed) for seed in range(options.splits)]
            found = [losses(problem, prior, seed, options) for seed, problem in enumerate(problems)]
            labels[prior] += found if name != "yacht" else []
            lines.append([name, prior, str(len(problems[0].names)), *cells(np.array(found))])
            print(" | ".join(lines[-1]), flush=True)
    lines += [["all labels", prior, "", *cells(np.array(found))] for prior, found in labels.items()]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    options.output.write_text(PAGE.format(**vars(options), table=table), encoding="utf-8")


if __name__ == "__main__":
    main()
