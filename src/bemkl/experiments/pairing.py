"""Scores of several methods on the same splits: look them up, compare them in pairs, and mark the best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bemkl.arrays import Array
from bemkl.evaluation.comparison import correlated_bayes
from bemkl.experiments.job import Record
from bemkl.experiments.tables import spread

LOSSES = frozenset({"log_loss", "brier", "calibration_error", "eer", "rmse", "seconds"})
"""Scores of which less is better."""
_SURE = 0.95


class ScoreTable:
    """
    Scores by set and method.

    Parameters
    ----------
    records : sequence of Record
        What was done.

    Examples
    --------
    >>> from bemkl.experiments.job import Job, Outcome
    >>> scores = ScoreTable(
    ...     [
    ...         Record(Job("table1", "wdbc", method, split), Outcome({"accuracy": value}, 1.0, ""), {})
    ...         for method, values in {"ours": [0.97, 0.96, 0.98], "mean": [0.93, 0.92, 0.95]}.items()
    ...         for split, value in enumerate(values)
    ...     ]
    ... )
    >>> scores.cells("wdbc", ["ours", "mean"], "accuracy", test_share=0.3, digits=1, factor=100.0)
    ['**97.0±1.0**', '93.3±1.5']
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._scores: dict[tuple[str, str], dict[int, dict[str, float]]] = {}
        for record in records:
            here = self._scores.setdefault((record.job.data, record.job.method), {})
            here[record.job.replication] = dict(record.outcome.scores) | {"seconds": record.outcome.seconds}

    def has(self, data: str, method: str) -> bool:
        """
        Say whether a method was run on a set.

        Parameters
        ----------
        data : str
            Name of the set.
        method : str
            Name of the method.

        Returns
        -------
        bool
            Whether there is a result.
        """
        return (data, method) in self._scores

    def values(self, data: str, method: str, score: str) -> Array:
        """
        Return the scores of all replications.

        Parameters
        ----------
        data : str
            Name of the set.
        method : str
            Name of the method.
        score : str
            Name of the score.

        Returns
        -------
        ndarray of shape (n_replications,)
            The values, in the order of the replications; not a number where a method has no such score.
        """
        found = self._scores.get((data, method), {})
        return np.array([found[number].get(score, np.nan) for number in sorted(found)])

    def probability_better(self, data: str, one: str, other: str, score: str, test_share: float) -> float:
        """
        Return the probability that one method is better than another, from the splits that both have.

        Parameters
        ----------
        data : str
            Name of the set.
        one : str
            Name of a method.
        other : str
            Name of another.
        score : str
            Name of the score.
        test_share : float
            Share of samples in the test set, which is the correlation of the splits.

        Returns
        -------
        float
            The probability under the Bayesian correlated t-test; not a number with fewer than two common splits.
        """
        first, second = self._scores.get((data, one), {}), self._scores.get((data, other), {})
        common = sorted(first.keys() & second.keys())
        sign = -1.0 if score in LOSSES else 1.0
        differences = [sign * (first[k].get(score, np.nan) - second[k].get(score, np.nan)) for k in common]
        if len(common) < 2 or not np.isfinite(differences).all():
            return float("nan")
        return correlated_bayes(differences, test_share, rope=0.0).right

    def cells(
        self,
        data: str,
        methods: Sequence[str],
        score: str,
        *,
        test_share: float,
        digits: int = 3,
        factor: float = 1.0,
    ) -> list[str]:
        """
        Write a score of several methods, in bold unless the best of them is surely better.

        Parameters
        ----------
        data : str
            Name of the set.
        methods : sequence of str
            Names of the methods.
        score : str
            Name of the score.
        test_share : float
            Share of samples in the test set.
        digits : int
            Digits after the point.
        factor : float
            What to multiply by.

        Returns
        -------
        list of str
            Mean and standard deviation for each method.
        """
        means = [
            float(self.values(data, method, score).mean()) if self.has(data, method) else np.nan for method in methods
        ]
        written = [spread(self.values(data, method, score), digits, factor) for method in methods]
        if np.isnan(means).all():
            return written
        best = methods[int(np.nanargmin(means) if score in LOSSES else np.nanargmax(means))]
        lead = [self.probability_better(data, best, method, score, test_share) for method in methods]
        # The best one leads itself with probability one half; without two splits there is no test, and no bold print.
        tested = any(np.isfinite(p) for p, method in zip(lead, methods, strict=True) if method != best)
        return [
            f"**{cell}**" if tested and (method == best or p < _SURE) else cell
            for method, cell, p in zip(methods, written, lead, strict=True)
        ]
