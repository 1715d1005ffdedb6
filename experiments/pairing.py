"""Scores of several methods on the same splits: look them up, compare them in pairs, and mark the best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bemkl.arrays import Array
from bemkl.evaluation.comparison import correlated_bayes
from experiments.job import Record
from experiments.tables import spread

LOSSES = frozenset({"log_loss", "brier", "calibration_error", "eer", "rmse", "seconds"})
"""Scores of which less is better."""
_SURE = 0.95


class ScoreTable:
    """Scores by set and method."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._scores: dict[tuple[str, str], dict[int, dict[str, float]]] = {}
        for record in records:
            here = self._scores.setdefault((record.job.data, record.job.method), {})
            here[record.job.replication] = dict(record.outcome.scores) | {"seconds": record.outcome.seconds}

    def has(self, data: str, method: str) -> bool:
        """Say whether a method was run on a set."""
        return (data, method) in self._scores

    def values(self, data: str, method: str, score: str) -> Array:
        """Return the scores of all replications. Shapes: returns (n_replications,)."""
        found = self._scores.get((data, method), {})
        return np.array([found[number].get(score, np.nan) for number in sorted(found)])

    def probability_better(self, data: str, one: str, other: str, score: str, test_share: float) -> float:
        """Return the probability that one method is better than another, from the splits that both have."""
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
        """Write a score of several methods, in bold unless the best of them is surely better."""
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
