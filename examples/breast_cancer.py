"""
Fit the paper's 403 kernels on the breast-cancer data that scikit-learn carries, and print what was learned.

Thirteen kernels on all thirty features together and on each feature alone, sparse kernel weights, 70 % of the samples
for training (paper, section 6.1). Run it with `make demo`; `make figures` also draws docs/images/breast_cancer.png.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from bemkl import BEMKLClassifier, paper_bank
from bemkl.distributions import PointMass
from bemkl.inference import (
    SPARSE,
    Block,
    Free,
    NewtonMeans,
    NewtonWeights,
    Plain,
    Priors,
    Probit,
    Problem,
    run,
)


def main(picture: str | None = None) -> None:
    """Load, fit, predict and print."""
    data = load_breast_cancer()
    labels = data.target_names[data.target]
    X_train, X_test, y_train, y_test = train_test_split(data.data, labels, train_size=398, random_state=0)
    # A dict of columns is a table with names; a data frame would do as well.
    train, test = (dict(zip(data.feature_names, X.T, strict=True)) for X in (X_train, X_test))

    times = [time.perf_counter()]
    model = BEMKLClassifier(paper_bank(), kernel_prior="sparse", intermediate_std=0.1, tol=1e-4).fit(train, y_train)
    times.append(time.perf_counter())
    probability = model.predict_proba(test)
    times.append(time.perf_counter())

    baseline = mean_kernel_accuracy(train, y_train, test, y_test)
    fit, apply = np.diff(times)
    print(f"{len(model.kernel_names_)} kernels, {len(y_train)} training and {len(y_test)} test samples")
    print(
        f"test accuracy   {model.score(test, y_test):.3f}   (support vector machine on the mean kernel: {baseline:.3f})"
    )
    print(f"test log loss   {log_loss(y_test, probability, labels=model.classes_):.3f}")
    print(f"lower bound     {model.lower_bound_:.1f} after {model.n_iter_} iterations")
    print(f"seconds         {fit:.1f} for kernels and fit, {apply:.1f} for the probabilities\n")
    print_leading(model)
    if picture:
        draw(model, train, y_train, picture)


def mean_kernel_accuracy(train: Any, y_train: np.ndarray, test: Any, y_test: np.ndarray) -> float:
    """Return the accuracy of a support vector machine on the plain mean of all kernels."""
    bank = paper_bank()
    machine = SVC(kernel="precomputed").fit(bank.fit_transform(train).dense().values.mean(axis=0), y_train)
    return float(machine.score(bank.transform(test).dense().values.mean(axis=0), y_test))


def print_leading(model: BEMKLClassifier, count: int = 5) -> None:
    """Print the leading kernels; the table is the same with and without pandas."""
    largest = np.argsort(-np.abs(model.kernel_weights_))[:count]
    width = max(len(model.kernel_names_[m]) for m in largest)
    lows, highs = model.weight_intervals()
    print(f"{'kernel':<{width}}  weight    std  95 % interval")
    for m in largest:
        weight, deviation, low, high = model.kernel_weights_[m], model.kernel_weights_std_[m], lows[m], highs[m]
        print(f"{model.kernel_names_[m]:<{width}}  {weight:6.3f}  {deviation:5.3f}  {low:6.3f} to {high:.3f}")


def draw(model: BEMKLClassifier, train: Any, y_train: np.ndarray, picture: str) -> None:
    """Draw the leading kernels with their intervals, and the bound with the paper's updates beside it."""
    import matplotlib.pyplot as plt

    from bemkl.plots import plot_weights

    sweeps = 200
    stack = paper_bank().fit_transform(train).dense()
    signs = np.where(y_train == model.classes_[1], 1, -1)
    priors = Priors(kernel=SPARSE, intermediate=PointMass.from_std(0.1))
    block = Block(stack, Probit(signs))
    bounds = [
        run(Problem([block], priors, weights, pair), max_iter=sweeps, tol=None).lower_bounds
        for weights, pair in ((NewtonWeights(), NewtonMeans()), (Free(), Plain()))
    ]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 3.6), layout="constrained", gridspec_kw={"width_ratios": [1.2, 1]}
    )
    plot_weights(model.kernel_weights_, model.kernel_weights_std_, model.kernel_names_, most=12, ax=left)
    iterations = np.arange(1, sweeps + 1)
    right.plot(iterations, bounds[0], color="#0072b2", label="Newton steps (default)")
    right.plot(iterations, bounds[1], color="#d55e00", linestyle="--", label="the paper's updates")
    right.set_ylim(bottom=bounds[1][4])
    right.set_xlabel("iteration")
    right.set_ylabel("exact lower bound")
    right.set_title("Convergence", fontsize=10)
    right.legend(loc="lower right")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
