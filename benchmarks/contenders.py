"""
One fit of one contender on one problem, in a process of its own: prints one line of JSON.

    python benchmarks/contenders.py "EasyMKL" folder

The folder holds X_train.npy, y_train.npy, X_test.npy, y_test.npy, and the paper's kernels of both, K_train.npy and
K_test.npy, kernels first. Imports, reading, the conversion of ready kernels and a first fit of a tiny problem are not
counted. Needs only what the contender itself needs.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Predict = Callable[[], tuple[np.ndarray | None, np.ndarray | None]]
Fit = Callable[[], tuple[Predict, dict[str, Any]]]
"""Fits, and returns a function that gives scores and probabilities of the test samples, with notes on the fit."""


class Data:
    """Arrays of a folder, or of a tiny problem to warm up with; kernels are read when they are asked for."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        if folder is not None:
            names = "X_train", "y_train", "X_test", "y_test"
            self.X, self.y, self.X_test, self.y_test = (np.load(folder / f"{name}.npy") for name in names)
            return
        rng = np.random.default_rng(0)
        self.X, self.X_test = rng.normal(size=(30, 2)), rng.normal(size=(4, 2))
        self.y, self.y_test = np.sign(self.X[:, 0]), np.sign(self.X_test[:, 0])

    def kernels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernels of training and test samples, kernels first."""
        if self._folder is not None:
            return np.load(self._folder / "K_train.npy"), np.load(self._folder / "K_test.npy")
        squares = (np.square(points[:, None] - self.X).sum(axis=-1) for points in (self.X, self.X_test))
        train, test = (np.stack([np.exp(-width * square) for width in (0.1, 1.0)]) for square in squares)
        return train, test


def bemkl(data: Data, **settings: Any) -> Fit:
    """Return our model, from raw features to the posterior."""
    from bemkl import BEMKLClassifier, paper_bank

    def fit() -> tuple[Predict, dict[str, Any]]:
        model = BEMKLClassifier(paper_bank(), **settings).fit(data.X, data.y)
        notes = {"iterations": model.n_iter_, "bound": model.lower_bound_, "kernels": len(model.selected_kernels_)}
        return lambda: (model.decision_function(data.X_test), model.predict_proba(data.X_test)[:, 1]), notes

    return fit


def ready_kernels(data: Data) -> Fit:
    """Return the computation of the paper's kernels as matrices, which others start from; it predicts nothing."""
    from bemkl import paper_bank

    def fit() -> tuple[Predict, dict[str, Any]]:
        paper_bank().fit_transform(data.X).dense()
        return lambda: (None, None), {}

    return fit


def port(data: Data, **settings: Any) -> Fit:
    """Return the plain port of the paper, from ready kernels."""
    from paper_port import fit as fit_port

    K, K_test = data.kernels()

    def fit() -> tuple[Predict, dict[str, Any]]:
        model = fit_port(K, data.y, **settings)
        return lambda: model.predict(K_test), {"iterations": 200}

    return fit


def mklpy(data: Data, name: str, **settings: Any) -> Fit:
    """Return an algorithm of MKLpy, from ready kernels."""
    import torch
    from MKLpy import algorithms

    train, test = ([torch.from_numpy(kernel) for kernel in kernels] for kernels in data.kernels())
    labels = torch.from_numpy(data.y)

    def fit() -> tuple[Predict, dict[str, Any]]:
        model = getattr(algorithms, name)(**settings).fit(train, labels)
        return lambda: (np.asarray(model.predict(test), dtype=np.float64), None), {}

    return fit


def himalaya(data: Data) -> Fit:
    """Return multiple kernel ridge regression on the labels with 20 random draws, from ready kernels."""
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    settings = {"n_iter": 20, "progress_bar": False}
    K, K_test = data.kernels()

    def fit() -> tuple[Predict, dict[str, Any]]:
        model = MultipleKernelRidgeCV(
            kernels="precomputed", solver="random_search", solver_params=settings, random_state=0, cv=3
        ).fit(K, data.y[:, None])
        return lambda: (model.predict(K_test)[:, 0], None), {}

    return fit


def mean_kernel(data: Data) -> Fit:
    """Return a support vector machine on the mean of ready kernels."""
    from sklearn.svm import SVC

    K, K_test = data.kernels()

    def fit() -> tuple[Predict, dict[str, Any]]:
        model = SVC(kernel="precomputed").fit(K.mean(axis=0), data.y)
        return lambda: (model.decision_function(K_test.mean(axis=0)), None), {}

    return fit


def best_kernel(data: Data) -> Fit:
    """Return a support vector machine on the ready kernel with the best accuracy of three folds."""
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    K, K_test = data.kernels()

    def fit() -> tuple[Predict, dict[str, Any]]:
        scores = [cross_val_score(SVC(kernel="precomputed"), kernel, data.y, cv=3).mean() for kernel in K]
        best = int(np.argmax(scores))
        model = SVC(kernel="precomputed").fit(K[best], data.y)
        return lambda: (model.decision_function(K_test[best]), None), {}

    return fit


def gaussian_process(data: Data) -> Fit:
    """Return a Gaussian process with one Gaussian kernel on standardised features, its width learned."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def fit() -> tuple[Predict, dict[str, Any]]:
        kernel = ConstantKernel() * RBF(np.sqrt(data.X.shape[1]))
        model = make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel)).fit(data.X, data.y)

        def predict() -> tuple[np.ndarray, np.ndarray]:
            probability = model.predict_proba(data.X_test)[:, 1]
            return probability - 0.5, probability

        return predict, {}

    return fit


PLAIN = {"acceleration": None, "max_iter": 200, "tol": None}
CONTENDERS: dict[str, tuple[str, Callable[[Data], Fit]]] = {
    "bemkl, dense": ("own", lambda data: bemkl(data)),
    "bemkl, sparse": ("own", lambda data: bemkl(data, kernel_prior="sparse", intermediate_std=0.1)),
    "bemkl, marginal": ("own", lambda data: bemkl(data, posterior="marginal", test_views=False)),
    "bemkl, dense, 200 plain sweeps": ("own", lambda data: bemkl(data, **PLAIN)),
    "bemkl, sparse, 200 plain sweeps": (
        "own",
        lambda data: bemkl(data, kernel_prior="sparse", intermediate_std=0.1, **PLAIN),
    ),
    "the kernels as matrices": ("own", ready_kernels),
    "port of the paper, 200 sweeps": ("own", lambda data: port(data, deviation=1.0)),
    "MKLpy EasyMKL": ("mklpy", lambda data: mklpy(data, "EasyMKL")),
    "MKLpy AverageMKL": ("mklpy", lambda data: mklpy(data, "AverageMKL")),
    # By default it takes up to 1000 steps, which are minutes here.
    "MKLpy GRAM, 20 steps": ("mklpy", lambda data: mklpy(data, "GRAM", max_iter=20)),
    "himalaya, 20 draws": ("himalaya", himalaya),
    "SVC, mean kernel": ("own", mean_kernel),
    "SVC, best kernel": ("own", best_kernel),
    "Gaussian process": ("own", gaussian_process),
}
"""Environment and function of each contender."""


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Fit once with warm code, and return times, memory and scores."""
    _, make = CONTENDERS[name]
    make(Data(None))()
    data = Data(folder)
    fit = make(data)
    before, cpu, wall = memory(reset=True), time.process_time(), time.perf_counter()
    predict, notes = fit()
    cpu, wall, after = time.process_time() - cpu, time.perf_counter() - wall, memory()
    score, probability = predict()
    result = {"cpu": cpu, "wall": wall, "memory": max(0, after - before), **notes}
    if score is not None:
        result["accuracy"] = float(np.mean(np.sign(score) == data.y_test))
    if probability is not None:
        right = np.clip(np.where(data.y_test > 0, probability, 1.0 - probability), 1e-15, 1.0)
        result["log_loss"] = float(-np.log(right).mean())
    return result


def memory(*, reset: bool = False) -> int:
    """Return the most bytes in memory so far, or since the last reset where the system has one."""
    if sys.platform == "linux":
        if reset:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
