"""
Fit the paper's 403 kernels on the breast-cancer data that scikit-learn carries, and print what was learned.

Thirteen kernels on all thirty features together and on each feature alone, sparse kernel weights, 70 % of the samples
for training (paper, section 6.1). Run it with `make demo`.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from bemkl.distributions import PointMass
from bemkl.inference import SPARSE, Block, Priors, Probit, Problem, predict, run
from bemkl.kernels import DenseStack, paper_kernels


def main() -> None:
    """Load, fit, predict and print."""
    data = load_breast_cancer()
    # +1 is malignant, as in the paper's source; scikit-learn codes it as 0.
    X_train, X_test, y_train, y_test = train_test_split(
        data.data, np.where(data.target == 0, 1, -1), train_size=398, random_state=0
    )
    mean, deviation = X_train.mean(axis=0), X_train.std(axis=0)
    X_train, X_test = (X_train - mean) / deviation, (X_test - mean) / deviation

    started = time.perf_counter()
    kernels, names = paper_kernels(X_train, X_train, data.feature_names)
    new_kernels, _ = paper_kernels(X_test, X_train, data.feature_names)
    built = time.perf_counter()
    problem = Problem(
        [Block(DenseStack(kernels), Probit(y_train, margin=1.0))],
        Priors(kernel=SPARSE, intermediate=PointMass.from_std(0.1)),
    )
    result = run(problem, tol=1e-4)
    fitted = time.perf_counter()
    probability = predict(problem, result.state, DenseStack(new_kernels)).probability[:, 0]
    predicted = time.perf_counter()

    machine = SVC(kernel="precomputed").fit(kernels.mean(axis=0), y_train)
    accuracy = np.mean(np.where(probability > 0.5, 1, -1) == y_test)
    print(f"{len(names)} kernels, {len(y_train)} training and {len(y_test)} test samples")
    print(
        f"test accuracy    {accuracy:.3f}   (support vector machine on the mean kernel: "
        f"{machine.score(new_kernels.mean(axis=0), y_test):.3f})"
    )
    print(f"test log loss    {log_loss(y_test, probability):.3f}")
    print(f"lower bound      {result.lower_bound:.1f} after {result.n_iter} iterations")
    print(
        f"seconds          {built - started:.1f} kernels, {fitted - built:.1f} fit, {predicted - fitted:.1f} prediction"
    )
    print_leading(names, result.state.weights.moments(0))


def print_leading(names: list[str], weights, count: int = 10) -> None:
    """Print the kernels with the largest weights, and how sure we are of them."""
    deviation = np.sqrt(weights.covariance.diagonal())
    width = max(len(name) for name in names)
    print(f"\n{'kernel':<{width}}  weight    std  95 % interval")
    for m in np.argsort(-np.abs(weights.mean))[:count]:
        low, high = weights.mean[m] + 1.96 * deviation[m] * np.array([-1.0, 1.0])
        print(f"{names[m]:<{width}}  {weights.mean[m]:6.3f}  {deviation[m]:5.3f}  {low:6.3f} to {high:6.3f}")


if __name__ == "__main__":
    main()
