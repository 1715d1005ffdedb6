"""Weights of views over the splits of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bemkl.arrays import Array
from experiments.job import Record

NORMAL_95 = 1.959963984540054
"""Half the width of a central 95 % interval, in standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class ViewWeights:
    """
    What several fits say of the views.

    Weights and deviations of each fit are divided by the sum of its absolute weights: their common scale depends on
    the deviation of the intermediate outputs and says nothing of the views.
    """

    views: list[str]  # names of the views
    means: Array = field(repr=False)  # (n_splits, n_views): weights
    deviations: Array = field(repr=False)  # (n_splits, n_views): their posterior standard deviations
    largest: Array = field(repr=False)  # (n_splits, n_views): probabilities of having the largest weight
    # (n_splits, n_views): shares in how the outputs vary over the training samples
    shares: Array | None = field(repr=False)

    @classmethod
    def from_records(cls, records: Sequence[Record]) -> ViewWeights | None:
        """Read the weights from results."""
        details = [record.outcome.details for record in records if "weights" in record.outcome.details]
        if not details:
            return None
        raw = np.array([detail["weights"] for detail in details], dtype=np.float64)
        size = np.abs(raw).sum(axis=1, keepdims=True)
        return cls(
            list(details[0]["views"]),
            raw / size,
            np.array([detail["deviations"] for detail in details]) / size,
            np.array([detail["largest"] for detail in details]),
            np.array([detail["shares"] for detail in details]) if "shares" in details[0] else None,
        )

    @property
    def n_splits(self) -> int:
        """Number of fits."""
        return len(self.means)

    @property
    def order(self) -> list[int]:
        """Positions of the views, largest mean weight first."""
        return [int(position) for position in np.argsort(-self.means.mean(axis=0), kind="stable")]

    @property
    def n_sure(self) -> list[int]:
        """In how many fits the 95 % interval of each view is above or below zero."""
        return [int(number) for number in (np.abs(self.means) > NORMAL_95 * self.deviations).sum(axis=0)]
