"""`bemkl compare`: does the combination pay?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bemkl.commands.evaluate import folds_option
from bemkl.commands.inputs import FILE_OPTIONS, preparation, read_training, take_sources, with_options
from bemkl.commands.output import json_option, print_json, print_table, progress
from bemkl.commands.settings import MODEL_OPTIONS, take_settings

if TYPE_CHECKING:
    from bemkl.arrays import Array
    from bemkl.evaluation import HeldOut

_LOSSES = ("log_loss", "brier", "calibration_error", "eer", "rmse")
_ROUNDING = 1e-9
_DECIDES = {"classification": "log_loss", "regression": "rmse"}


@click.command()
@with_options(*FILE_OPTIONS, *MODEL_OPTIONS, folds_option)
@json_option
def compare(folds: int, as_json: bool, **options: Any) -> None:
    """
    Compare with single views, all columns together and the mean kernel, on the same folds.

    All are the same Bayesian model. The last column is the probability that the combination of all views is better,
    in log loss or in root mean squared error, by the Bayesian correlated t-test over folds.
    """
    from bemkl.evaluation import cross_predict, variants

    sources, settings = take_sources(options), take_settings(options)
    gathered = read_training(sources, settings.task)
    before = preparation(sources, settings.bank, gathered.X)
    compared = variants(gathered.X, lambda X: settings.estimator(gathered.task, X), before)
    seed, found = settings.parameters["random_state"], {}
    with progress("fits", folds * len(compared)) as advance:
        for variant in compared:
            held_out = cross_predict(variant.model, variant.X, gathered.y, n_folds=folds, seed=seed, advance=advance)
            found[variant.name] = held_out
    score = _DECIDES[gathered.task]
    better = _probabilities(list(found.values()), score, 1.0 / folds)
    if as_json:
        scores = {name: {"scores": one.scores(), "folds": one.scores_by_fold()} for name, one in found.items()}
        print_json(
            {
                "task": gathered.task,
                "decided by": score,
                "methods": scores,
                "better": dict(zip(found, better, strict=True)),
                "left_out": gathered.matched.everything_left_out(),
            }
        )
        return
    column = f"all together better ({score})"
    rows = [{"method": name} | one.scores() | {column: p} for (name, one), p in zip(found.items(), better, strict=True)]
    print_table(f"{len(gathered.names)} samples, {folds} folds", rows)


def _probabilities(found: list[HeldOut], score: str, test_share: float) -> list[float]:
    """Return for each method the probability that the first one is better."""
    import numpy as np

    from bemkl.evaluation import correlated_bayes

    first, *others = ([one[score] for one in held_out.scores_by_fold()] for held_out in found)
    sign = -1.0 if score in _LOSSES else 1.0
    differences = [_without_rounding(sign * (np.array(first) - np.array(other))) for other in others]
    found_out = [correlated_bayes(gain, test_share, rope=0.0) for gain in differences]
    # What is level in all folds is as likely the one as the other.
    return [float("nan"), *(one.right + 0.5 * one.rope for one in found_out)]


def _without_rounding(differences: Array) -> Array:
    """Make differences zero that come from the order of sums only."""
    import numpy as np

    return np.where(np.abs(differences) < _ROUNDING, 0.0, differences)
