"""A page a study: data, command, weights, picture, scores, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.datasets.catalogue import ENTRIES
from experiments.job import Record
from experiments.studies.catalogue import ALL
from experiments.studies.findings import Findings
from experiments.studies.picture import draw_weights
from experiments.studies.plan import Study

_WEIGHTS = (
    "*Weight*: sum of the weights of a view's kernels, as part of the sum over all views, mean over splits. "
    "*Posterior deviation*: how sure a single fit is of it. *Over splits*: smallest and largest. *Interval off zero*: "
    "in how many splits the 95 % interval does not contain zero. *Largest*: probability under the posterior that no "
    "other view has a larger weight."
)
_SHARE = " *Share*: part of the view in how the outputs vary over the training samples."
_SCORES = (
    "Mean ± standard deviation over splits, the same for all methods. Bold: the best, and those for which the best "
    "one is better with a probability below 0.95 (Bayesian correlated t-test, whose correlation is the share of test "
    "samples in a split)."
)
_SURELY = "*Better* and *worse* mean with a probability above 0.95 by the same test, *undecided* that neither is."
_ONE_SPLIT = " A single split has neither deviation nor bold figures."


def write_pages(folder: Path, records: Sequence[Record]) -> list[Path]:
    """Write a page and a picture for every study with results."""
    pages = []
    for name, study in ALL.items():
        findings = Findings(study, [record for record in records if record.job.data == name])
        if findings:
            folder.mkdir(parents=True, exist_ok=True)
            pages.append(folder / f"study_{name}.md")
            pages[-1].write_text(_page(folder, study, findings), encoding="utf-8")
    return pages


def _page(folder: Path, study: Study, findings: Findings) -> str:
    """Write one page, and its picture."""
    parts = [f"# {study.title}", study.about, _data(study), f"    python -m experiments studies --data {study.name}"]
    shown = findings.weights()
    if shown:
        picture = f"study_{study.name}.png"
        kind = "features" if isinstance(ENTRIES[study.name].columns, int) else "views"
        parts += [f"## Which {kind} matter, and how sure is that?", " ".join(findings.about_weights())]
        if draw_weights(folder / picture, shown, study.views):
            parts.append(f"![Weights of the views with their intervals]({picture})")
        has_shares = any(weights.shares is not None for weights in shown.values())
        parts += [findings.weight_table().markdown(), _WEIGHTS + (_SHARE if has_shares else "")]
    one_split = any(scenario.test_share is None for scenario in study.scenarios)
    parts += ["## Scores", findings.score_table().markdown(), _SCORES + (_ONE_SPLIT if one_split else "")]
    parts += ["## Reading", _SURELY, "\n".join(f"- {sentence}" for sentence in findings.about_scores())]
    parts += ["## Choices", study.choices]
    return "\n\n".join(part for part in parts if part) + "\n"


def _data(study: Study) -> str:
    """Say what the data are, whose they are, and whom to cite."""
    entry = ENTRIES[study.name]
    if isinstance(entry.columns, int):
        columns = f"{entry.columns} features"
    else:
        columns = "columns by view: " + ", ".join(f"{view} {number}" for view, number in entry.columns.items())
    return (
        f"Data: `{study.name}`, {entry.rows} rows, {columns}; response: {entry.target}. Licence: {entry.licence}. "
        f"Citation: {entry.citation}."
    )
