"""A small model of every kind that can be saved, and everything that it can be asked."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bemkl import BEMKLClassifier, BEMKLMultiTask, BEMKLRegressor, KernelBank, KernelSpec, paper_bank

X = np.random.default_rng(0).normal(size=(20, 2))
Y = np.arange(20) % 3
NAMES = np.array(["a", "b", "c"])[Y]
TASKS = np.repeat(["a", "b"], 10)
KERNELS = np.stack([X @ X.T, np.exp(-np.square(X[:, None] - X).sum(axis=-1))], axis=-1)
SEQUENCES = {"text": ["GAT" * (i % 3 + 1) + "C" * (i % 2) for i in range(20)], "size": X}


def bank(**settings):
    return KernelBank([KernelSpec("gaussian", "each", {"width": [1.0]}), KernelSpec("linear")], **settings)


def spectra():
    return KernelBank([KernelSpec("spectrum", ["text"], {"length": 2}), KernelSpec("linear", ["size"])])


# For each kind of model: how it is fitted, and new samples that fit it.
MODELS = {
    "shared": (lambda: BEMKLClassifier(bank(), tol=1e-3).fit(X, Y), X[:3]),
    "own, nonnegative": (lambda: BEMKLClassifier(bank(), multiclass="ovr", weights="nonnegative").fit(X, Y), X[:3]),
    "pooled": (lambda: BEMKLClassifier(bank(), multiclass="pooled", tol=1e-3).fit(X, Y), X[:3]),
    "multinomial": (lambda: BEMKLClassifier(bank(), multiclass="multinomial", tol=1e-3).fit(X, Y > 0), X[:3]),
    "unlabelled": (lambda: BEMKLClassifier(bank(), unlabeled=2, tol=1e-3).fit(X, Y), X[:3]),
    "kernels": (lambda: BEMKLClassifier("precomputed", landmarks=6, random_state=0).fit(KERNELS, Y), KERNELS[:3]),
    "several labels": (lambda: BEMKLClassifier(weights="spike_slab", tol=1e-3).fit(X, np.eye(3)[Y]), X[:3]),
    "regression": (lambda: BEMKLRegressor(bank(scaling="centred"), intermediate_std="learn").fit(X, X[:, 0]), X[:3]),
    "factorized": (lambda: BEMKLRegressor(bank(standardise=True), weights="factorized").fit(X, X), X[:3]),
    "sequences": (lambda: BEMKLRegressor(spectra()).fit(SEQUENCES, X[:, 0]), {"text": ["GATC", "C"], "size": X[:2]}),
    "process": (lambda: BEMKLRegressor(bank(), posterior="marginal").fit(X, X), X[:3]),
    "processes": (lambda: BEMKLClassifier("precomputed", posterior="marginal").fit(KERNELS, Y), KERNELS[:3]),
    "features": (lambda: BEMKLClassifier(posterior="marginal", landmarks=6, random_state=0).fit(X, Y > 0), X[:3]),
    "tasks": (lambda: BEMKLMultiTask(bank(scaling="spherical"), tol=1e-3).fit(X, X[:, 0], task=TASKS), X[:3]),
    "processes of tasks": (
        lambda: BEMKLMultiTask(bank(), sharing="pooled", posterior="marginal").fit(X, X[:, 0], task=TASKS),
        X[:3],
    ),
}
# What differs from these in its parameters or in what is around it.
MORE_MODELS = MODELS | {
    "binary": (lambda: BEMKLClassifier(paper_bank(), kernel_prior="sparse", tol=1e-3).fit(X, Y > 0), X),
    "strings": (lambda: BEMKLClassifier(tol=1e-3).fit(X, NAMES), X),
    "precomputed": (lambda: BEMKLClassifier("precomputed", tol=1e-3).fit(X @ X.T, Y), X @ X.T),
    "landmarks": (lambda: BEMKLClassifier(landmarks=10, random_state=0, tol=1e-3).fit(X, Y), X),
    "process kernel": (lambda: BEMKLRegressor(KernelBank([KernelSpec(RBF(2.0))]), tol=1e-3).fit(X, X), X),
    "pipeline": (lambda: make_pipeline(StandardScaler(), BEMKLRegressor(tol=1e-3)).fit(X, X[:, 0]), X),
}


def answers(model, samples):
    """Yield what a model says to all questions that it knows."""
    of_samples = ("predict", "predict_proba", "decision_function", "predict_interval")
    of_samples += ("contributions", "combined_kernel")
    if isinstance(model, BEMKLMultiTask):
        samples, of_samples = dict.fromkeys(model.tasks_[:2], samples), ("predict", "predict_std")
    for question in of_samples:
        if hasattr(model, question):
            yield getattr(model, question)(samples)
    for question in ("summary", "weight_intervals"):
        if hasattr(model, question):
            yield np.asarray(getattr(model, question)())
