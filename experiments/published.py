"""Figures that the paper prints (Gönen, ICML 2012, Tables 1 to 5)."""

from __future__ import annotations

from dataclasses import dataclass

Spread = tuple[float, float]
"""Mean and standard deviation."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One set and one prior of Table 1."""

    seconds: Spread  # training time
    accuracy: Spread  # test accuracy, in per cent
    kernels: Spread  # number of selected kernels


@dataclass(frozen=True, slots=True)
class BenchmarkSet:
    """One set of Table 1."""

    n_train: int  # number of training samples, N
    n_kernels: int  # number of kernels, P
    sparse: Cell  # figures under the prior that favours sparse weights
    dense: Cell  # figures under the other one


TABLE1 = {
    "breast": BenchmarkSet(
        478,
        130,
        Cell((18.86, 0.24), (96.80, 1.02), (34.35, 2.46)),
        Cell((18.84, 0.43), (96.98, 0.86), (98.95, 1.32)),
    ),
    "bupaliver": BenchmarkSet(
        241, 91, Cell((3.83, 0.03), (68.41, 4.28), (18.40, 2.62)), Cell((3.81, 0.04), (70.72, 3.83), (70.70, 1.13))
    ),
    "heart": BenchmarkSet(
        189,
        377,
        Cell((13.69, 0.08), (80.80, 4.01), (41.85, 4.26)),
        Cell((13.58, 0.09), (81.36, 4.70), (181.40, 8.93)),
    ),
    "ionosphere": BenchmarkSet(
        245,
        442,
        Cell((22.72, 0.05), (92.03, 1.72), (41.90, 4.42)),
        Cell((22.76, 0.12), (92.03, 1.77), (219.05, 7.77)),
    ),
    "pima": BenchmarkSet(
        537,
        117,
        Cell((21.15, 0.23), (75.02, 2.28), (23.20, 2.02)),
        Cell((20.94, 0.22), (74.96, 2.08), (79.55, 2.93)),
    ),
    "sonar": BenchmarkSet(
        144,
        793,
        Cell((51.34, 0.19), (76.88, 3.95), (15.30, 3.40)),
        Cell((51.51, 0.10), (82.81, 4.12), (372.80, 7.78)),
    ),
    "wdbc": BenchmarkSet(
        398,
        403,
        Cell((41.31, 0.21), (95.70, 2.32), (35.65, 2.28)),
        Cell((41.44, 0.16), (95.76, 1.65), (215.50, 4.81)),
    ),
    "wpbc": BenchmarkSet(
        135,
        429,
        Cell((12.72, 0.11), (75.25, 1.01), (28.25, 2.75)),
        Cell((12.67, 0.23), (73.64, 2.66), (220.10, 9.83)),
    ),
}
"""Table 1 by set."""

TABLE2 = {"Damoulas & Girolami (2008)": (68.1, 1.2), "ovr": (71.5, 0.1), "shared": (71.2, 0.2)}
"""Test accuracy on protein folds, in per cent."""

TABLE3 = {"Gehler & Nowozin (2009)": (85.5, 3.0), "ovr": (85.6, 1.2), "shared": (85.9, 1.2)}
"""Test accuracy on Flowers17, in per cent."""

TABLE4 = {
    "Titsias & Lázaro-Gredilla (2011)": (0.952, 0.107, 40.0),
    "ovr": (0.969, 0.068, 67.0),
    "shared": (0.969, 0.069, 68.9),
}
"""Area under the curve, equal error rate and test accuracy, in per cent, on Flowers102."""

TABLE5 = {"Varma & Babu (2009)": (71.1, 0.6), "ovr": (72.7, 0.1), "shared": (73.1, 0.1)}
"""Test accuracy on Caltech101, in per cent."""
