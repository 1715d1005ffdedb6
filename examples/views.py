"""
Three views of the same tumours, some of them incomplete: from a data frame to a calibrated probability.

scikit-learn's breast-cancer table has the mean, the standard error and the worst value of ten properties of cell
nuclei. Here these are three views, and every fourth sample lacks the view of the worst values. Needs pandas and
matplotlib: `make figures` runs it and draws docs/images/views.png.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import cross_val_score, train_test_split

from bemkl import BEMKLClassifier, KernelBank, KernelSpec
from bemkl.plots import plot_calibration, plot_contributions, plot_similarity, plot_weights


def main(picture: str) -> None:
    """Fit, explain, check the probabilities, draw."""
    data = load_breast_cancer(as_frame=True)
    table, diagnosis = data.data.copy(), data.target_names[data.target]
    views = {
        "mean": [name for name in table if name.startswith("mean")],
        "error": [name for name in table if name.endswith("error")],
        "worst": [name for name in table if name.startswith("worst")],
    }
    lacking = np.random.default_rng(0).random(len(table)) < 0.25
    table.loc[lacking, views["worst"]] = np.nan
    print(f"{len(table)} samples, {lacking.sum()} of them without the view of the worst values")

    bank = KernelBank(
        [KernelSpec("gaussian", views, {"width": [2.0, 6.0]}), KernelSpec("polynomial", views, {"degree": [1, 2]})],
        standardise=True,
        scaling="spherical",
    )
    X_train, X_test, y_train, y_test = train_test_split(table, diagnosis, test_size=0.5, random_state=0)
    model = BEMKLClassifier(bank, tol=1e-4)
    print(f"cross-validated accuracy {cross_val_score(model, X_train, y_train, cv=5).mean():.3f}")
    model.fit(X_train, y_train)
    probability = model.predict_proba(X_test)[:, 1]
    truth = y_test == model.classes_[1]
    print(f"test accuracy {model.score(X_test, y_test):.3f}, log loss {log_loss(truth, probability):.3f}, ", end="")
    print(f"Brier score {brier_score_loss(truth, probability):.3f}\n")
    print(model.summary())
    one = int(np.abs(probability - 0.8).argmin())
    row = X_test.iloc[[one]]
    print(f"\none sample: {model.classes_[1]} with probability {probability[one]:.3f}, truly {y_test[one]}")

    _, axes = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    names = model.kernel_names_
    plot_weights(model.kernel_weights_, model.kernel_weights_std_, names, ax=axes[0, 0])
    plot_contributions(model.contributions(row)[0], names, intercept=model.intercept_[0], ax=axes[0, 1])
    plot_calibration(truth, probability, ax=axes[1, 0])
    plot_similarity(bank.fit_transform(X_train), ax=axes[1, 1])
    for ax, title in zip(
        axes.flat,
        ["Which kernels matter?", "Why this prediction?", "Can the probabilities be trusted?", "Which kernels agree?"],
        strict=True,
    ):
        ax.set_title(title, fontsize=10)
    plt.savefig(picture, dpi=80)


if __name__ == "__main__":
    main(*sys.argv[1:])
