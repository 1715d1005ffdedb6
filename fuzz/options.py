"""Values of every parameter of every estimator, as Python expressions."""

from __future__ import annotations

import inspect

from bemkl import BEMKLClassifier, BEMKLMultiTask, BEMKLRegressor
from bemkl.registry import FUNCTION_PRIORS, MULTICLASS, WEIGHTS
from fuzz.draws import Draw

ESTIMATORS = {kind.__name__: kind for kind in (BEMKLClassifier, BEMKLRegressor, BEMKLMultiTask)}

Values = tuple[list[str], list[str], list[str]]
_PRIOR: Values = (
    ["'dense'", "'sparse'", "(1.0, 1.0)", "(10.0, 0.1)", "(0.01, 100.0)", "(1e-3, 1e3)", "[2, 3]"],
    [
        "(1e-100, 1e100)",
        "(1e-300, 1e300)",
        "(1e300, 1.0)",
        "(1.0, 1e300)",
        "(1e10, 1e-10)",
        "(1e-5, 1e-5)",
        "(1e8, 1e8)",
        "(1e20, 1.0)",
    ],
    ["'spars'", "(0.0, 1.0)", "(1.0,)", "None", "(np.nan, 1.0)", "(-1.0, 1.0)", "1.0", "(np.inf, 1.0)"],
)
VALUES: dict[str, Values] = {
    "kernel_prior": _PRIOR,
    "sample_prior": _PRIOR,
    "bias_prior": _PRIOR,
    "noise_prior": _PRIOR,
    "pool_prior": _PRIOR,
    "posterior": (["'mean_field'"] * 3 + ["'marginal'"], [], ["'map'", "None"]),
    "function_prior": ([*map(repr, FUNCTION_PRIORS), "'evidence'"], [], ["'add'", "None"]),
    "weights": ([*map(repr, WEIGHTS)], [], ["'fre'", "None"]),
    "intermediate_std": (
        ["1.0", "0.1", "'learn'", "0.3", "10", "np.float32(0.5)"],
        ["1e-4", "1e4", "1e-8", "1e-80", "1e-120", "1e150"],
        ["0.0", "-1.0", "np.nan", "np.inf", "'lern'", "None"],
    ),
    "margin": (["1.0", "0.0", "0.5", "3"], ["10.0", "1e8", "1e200"], ["True", "-1.0", "np.nan", "'wide'", "None"]),
    "multiclass": ([*map(repr, MULTICLASS)], [], ["'all'", "None"]),
    "unlabeled": (["False"] * 4 + ["-1", "None", "np.nan", "'?'"], [], ["True", "[0]"]),
    "predictive": (["'exact'", "'paper'"], [], ["'wrong'", "None"]),
    "landmarks": (
        ["None", "2", "1", "np.int64(2)", "'kmeans++'", "'pivoted'", "('pivoted', 2)", "('kmeans++', 2)", "[0, 1]"],
        ["np.array([1, 0])", "(0, 1)"],
        ["0", "99", "[0, 0]", "[-1]", "2.5", "'middle'", "[]", "('pivoted', 0)", "[True, False]"],
    ),
    "normalize_y": (["True", "False"], [], []),
    "test_views": (["True", "False"], [], []),
    "sharing": (["'shared'", "'pooled'", "'separate'"], [], ["'none'", "None"]),
    "task_types": (["'auto'", "'auto'", "'regression'"], [], ["'classes'", "{'nobody': 'regression'}", "None"]),
    "acceleration": (["'newton'", "None"], [], ["'squarem'", "True"]),
    "factor_tol": (["1e-10", "None", "1e-3", "1e-6"], ["0.5", "1e-16", "1e-300"], ["-1.0", "2.0", "np.nan", "'low'"]),
    "max_iter": (["1", "2", "5", "20", "40"], [], ["0", "-1", "2.5", "None"]),
    "tol": (["1e-4", "None", "0.0", "1e-8", "1.0"], [], ["-1.0", "np.nan", "'low'"]),
    "n_init": (["1", "1", "1", "3"], [], ["0", "1.5"]),
    "warm_start": (["False", "True"], [], []),
    "random_state": (["0", "1", "None", "np.random.RandomState(3)"], [], ["-1", "'seed'", "1.5"]),
    "verbose": (["0"] * 8 + ["1", "2", "True"], [], ["-1", "'much'"]),
    "n_jobs": (["None"] * 8 + ["1", "2"], [], ["1.5", "'all'"]),
}
"""Values of each parameter: usual, extreme and odd ones."""

_OF_MEAN_FIELD = (
    *("weights", "kernel_prior", "multiclass", "unlabeled", "predictive", "n_init", "warm_start"),
    *("sample_prior", "bias_prior", "noise_prior", "pool_prior", "intermediate_std", "margin", "acceleration"),
)
ALWAYS = ("max_iter",)
"""Parameters that are never left alone: a case should not take long."""


def parameters(estimator: str) -> list[str]:
    """Return the names of an estimator's parameters, but for the kernels, which belong to the data."""
    return [name for name in inspect.signature(ESTIMATORS[estimator]).parameters if name != "kernels"]


def options(draw: Draw, estimator: str) -> dict[str, str]:
    """Draw some options of an estimator; the others keep their defaults."""
    found = {}
    for name in parameters(estimator):
        if name in ALWAYS or draw.maybe(0.3):
            found[name] = draw.pick(name, *VALUES[name])
    pooled = "'pooled'" in (found.get("multiclass"), found.get("sharing"))
    if pooled and draw.maybe(0.9):
        found.pop("weights", None)  # other families cannot be pooled, and are refused
    if found.get("posterior") == "'marginal'" and draw.maybe(0.9):
        for name in _OF_MEAN_FIELD:
            found.pop(name, None)  # the other posterior refuses most of their values
    return found
