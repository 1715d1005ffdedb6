"""What the results of a study say: tables, and sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.job import Record
from experiments.pairing import ScoreTable
from experiments.studies.catalogue import OURS
from experiments.studies.plan import Scenario, Score, Study
from experiments.studies.splitting import COMPLETE, WITHOUT
from experiments.studies.weights import ViewWeights
from experiments.tables import Table, spread

_SURE = 0.95
_PROBABILISTIC = ("log_loss", "log_density")
_ONLY = f"{OURS}, only "


class Findings:
    """Results of one study."""

    def __init__(self, study: Study, records: Sequence[Record]) -> None:
        self.study = study
        known = {scenario.name: scenario for scenario in study.scenarios}
        self._records: dict[str, list[Record]] = {name: [] for name in known}
        for record in sorted(records, key=lambda record: record.job.replication):
            name = record.job.settings.get("scenario")
            if name in known and record.job.method in known[name].methods:
                self._records[name].append(record)
        self._scenarios = [scenario for scenario in study.scenarios if self._records[scenario.name]]
        self._scores = {name: ScoreTable(here) for name, here in self._records.items()}

    def __bool__(self) -> bool:
        """Return whether there are any results."""
        return bool(self._scenarios)

    def weights(self) -> dict[str, ViewWeights]:
        """Return the weights of ours."""
        found = {}
        for name in self.study.pictured:
            ours = ViewWeights.from_records([r for r in self._records[name] if r.job.method == OURS])
            if ours is not None:
                found[name] = ours
        return found

    def weight_table(self) -> Table:
        """Write the weights of the views."""
        shown = self.weights()
        has_shares, has_words = any(w.shares is not None for w in shown.values()), any(self.study.views.values())
        first = ["view", "what it is"] if has_words else ["features"]
        header = [*first, "weight", "posterior deviation", "over splits", "interval off zero", "largest"]
        rows = []
        for name, weights in shown.items():
            for view in weights.order:
                means = weights.means[:, view]
                rows.append(
                    [
                        *([name] if len(shown) > 1 else []),
                        weights.views[view],
                        *([self.study.views.get(weights.views[view], "–")] if has_words else []),
                        f"{means.mean():.3f}",
                        f"{weights.deviations[:, view].mean():.3f}",
                        f"{means.min():.3f} to {means.max():.3f}" if weights.n_splits > 1 else "–",
                        f"{weights.n_sure[view]} of {weights.n_splits}",
                        f"{weights.largest[:, view].mean():.2f}",
                        *([f"{weights.shares[:, view].mean():.2f}"] if weights.shares is not None else []),
                    ]
                )
        scenario, share = ["scenario"] if len(shown) > 1 else [], ["share"] if has_shares else []
        return Table([*scenario, *header, *share], rows)

    def score_table(self) -> Table:
        """Write the scores of all methods."""
        several, rows = len(self.study.scenarios) > 1, []
        for scenario in self._scenarios:
            methods = self._methods(scenario)
            columns = [self._cells(scenario, methods, name, score) for name, score in self.study.scores.items()]
            seconds = [spread(self._values(scenario, method, "seconds"), 1) for method in methods]
            rows += [
                [*([scenario.name] if several else []), *row] for row in zip(methods, *columns, seconds, strict=True)
            ]
        headers = [score.header for score in self.study.scores.values()]
        return Table([*(["scenario"] if several else []), "method", *headers, "CPU seconds"], rows)

    def about_weights(self) -> list[str]:
        """Say which views matter, and how sure that is."""
        several = len(self.study.pictured) > 1
        return [_about_weights(name, weights, several) for name, weights in self.weights().items()]

    def about_scores(self, most: int = 2) -> list[str]:
        """Say how ours compares."""
        sentences = [
            self._comparison(scenario, name, score)
            for scenario in self._scenarios
            for name, score in self._compared(most).items()
            if self._scores[scenario.name].has(self.study.name, OURS)
        ]
        others = self._about_single_views(), self._about_intervals(), self._about_missing_view(), self._about_drugs()
        return [*sentences, *(sentence for about in others for sentence in about)]

    def _compared(self, most: int) -> dict[str, Score]:
        """Return the scores that sentences are about."""
        first, *others = self.study.scores
        names = [first, *(name for name in others if name in _PROBABILISTIC)][:most]
        return {name: self.study.scores[name] for name in names}

    def _methods(self, scenario: Scenario) -> list[str]:
        return [method for method in scenario.methods if self._scores[scenario.name].has(self.study.name, method)]

    def _values(self, scenario: Scenario, method: str, score: str) -> np.ndarray:
        return self._scores[scenario.name].values(self.study.name, method, score)

    def _cells(self, scenario: Scenario, methods: Sequence[str], name: str, score: Score) -> list[str]:
        """Write one score of several methods, in bold where splits can tell the best ones."""
        values = [self._values(scenario, method, name) for method in methods]
        if not score.ranked or scenario.test_share is None or max(map(len, values)) < 2:
            return [spread(here, score.digits, score.factor) for here in values]
        return self._scores[scenario.name].cells(
            self.study.name, methods, name, test_share=scenario.test_share, digits=score.digits, factor=score.factor
        )

    def _comparison(self, scenario: Scenario, name: str, score: Score) -> str:
        """Say what ours is surely better and worse than."""
        place = f"*{scenario.name}*, " if len(self.study.scenarios) > 1 else ""
        ours = spread(self._values(scenario, OURS, name), score.digits, score.factor)
        start = f"{place}{score.words}: ours {ours}{score.unit}"
        groups: dict[str, list[str]] = {}
        others = [method for method in self._methods(scenario) if method != OURS]
        for other in others:
            better = self._scores[scenario.name].probability_better(
                self.study.name, OURS, other, name, scenario.test_share or 0.0
            )
            if np.isfinite(better):
                sure = (
                    "better than" if better > _SURE else "worse than" if better < 1.0 - _SURE else "undecided against"
                )
                groups.setdefault(sure, []).append(f"`{other.removeprefix(f'{OURS}, ')}`")
        if groups:
            return f"{start}; {'; '.join(f'{sure} {_and(groups[sure])}' for sure in sorted(groups))}."
        means = [score.factor * float(self._values(scenario, other, name).mean()) for other in others]
        span = f"; the others from {min(means):.{score.digits}f} to {max(means):.{score.digits}f}" if means else ""
        return f"{start}{span}. One split cannot tell which method is better."

    def _about_single_views(self) -> list[str]:
        """Say which view predicts best and worst without the others, which is not what its weight says."""
        name, score = next(iter(self.study.scores.items()))
        sentences = []
        for scenario in self._scenarios:
            single = [method for method in self._methods(scenario) if method.startswith(_ONLY)]
            if scenario.name in self.study.pictured and scenario.test_share and len(single) > 1:
                means = {method: float(self._values(scenario, method, name).mean()) for method in single}
                best, worst = max(single, key=means.__getitem__), min(single, key=means.__getitem__)
                place = f"*{scenario.name}*: alone" if len(self.study.scenarios) > 1 else "Alone"
                sentences.append(
                    f"{place}, {best.removeprefix(_ONLY)} predicts best ({score.written(means[best])}) and "
                    f"{worst.removeprefix(_ONLY)} worst ({score.written(means[worst])})."
                )
        return sentences

    def _about_intervals(self) -> list[str]:
        if "coverage" not in self.study.scores:
            return []
        found = [self._values(scenario, OURS, "coverage") for scenario in self._scenarios]
        return [
            f"The 95 % intervals of ours cover {100.0 * values.mean():.1f} % of the test responses."
            for values in found
            if len(values)
        ]

    def _about_missing_view(self) -> list[str]:
        """Say what it costs that test samples lack a view."""
        if not {COMPLETE, WITHOUT} <= self._scores.keys():
            return []
        before, after = (self._scores[name].values(self.study.name, OURS, "accuracy") for name in (COMPLETE, WITHOUT))
        if not len(before) or len(before) != len(after):
            return []
        change = 100.0 * (after - before)
        losses = [self._scores[name].values(self.study.name, OURS, "log_loss").mean() for name in (COMPLETE, WITHOUT)]
        return [
            f"From the same fits, taking the protein view from the test samples changes the accuracy of ours by "
            f"{change.mean():+.1f} points in the mean ({change.min():+.1f} to {change.max():+.1f} over splits), and "
            f"the log loss from {losses[0]:.3f} to {losses[1]:.3f}."
        ]

    def _about_drugs(self) -> list[str]:
        """Say how many drugs are predicted better than by the training mean."""
        records = [record for here in self._records.values() for record in here if record.job.method == OURS]
        details = [record.outcome.details for record in records if "errors" in record.outcome.details]
        if not details:
            return []
        errors, base = (np.sum([detail[name] for detail in details], axis=0) for name in ("errors", "errors_of_mean"))
        return [
            f"Over all folds, ours predicts {int((errors < base).sum())} of {len(errors)} drugs better than the mean."
        ]


def _about_weights(name: str, weights: ViewWeights, several: bool) -> str:
    first, last = weights.order[0], weights.order[-1]
    means, splits = weights.means.mean(axis=0), weights.n_splits
    place = f"*{name}*: the" if several else "The"
    span = f", {weights.means[:, first].min():.2f} to {weights.means[:, first].max():.2f} over splits"
    sure = [view for view in weights.order if weights.n_sure[view] == splits]
    unsure = [view for view in weights.order if weights.n_sure[view] < splits]
    certain = (
        "the 95 % interval of every weight is off zero in every split"
        if not unsure
        else f"the 95 % interval is off zero in every split for {_listed(weights, sure)}, and not for "
        f"{_listed(weights, unsure)}"
    )
    return (
        f"{place} largest weight is that of {weights.views[first]}, {means[first]:.2f} of the sum of all (posterior "
        f"deviation {weights.deviations[:, first].mean():.2f}{span if splits > 1 else ''}), and it is the largest one "
        f"with a posterior probability of {weights.largest[:, first].mean():.2f}; the smallest is that of "
        f"{weights.views[last]}, {means[last]:.2f}; {certain}."
    )


def _listed(weights: ViewWeights, positions: Sequence[int]) -> str:
    return _and([weights.views[view] for view in positions]) if positions else "none"


def _and(names: Sequence[str]) -> str:
    """Join names as a sentence does."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
