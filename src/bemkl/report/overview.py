"""The first part of the page: the answer in a few words and numbers."""

from __future__ import annotations

import numpy as np

from bemkl.report.markup import NO_BREAK, Section, escape, number, paragraph, percent, plural
from bemkl.report.scores import MEANINGS, Score
from bemkl.report.subject import Subject
from bemkl.report.weights import Row, count_certain, view_shares, weight_rows

_NAMED, _LEAST_SHARE = 3, 0.005


def overview_section(subject: Subject, scores: list[Score]) -> Section:
    """Say what was fitted, what matters most and how well it predicts."""
    facts = [
        ("Task", subject.targets, "classification" if subject.is_classifier else "regression"),
        ("Training samples", str(subject.n_train), _explained(subject)),
    ]
    facts.append(("Kernels", str(len(subject.model.kernel_names_)), _used(subject)))
    if len(set(subject.views)) < len(subject.views):
        facts.append(("Views", str(len(set(subject.views))), ""))
    facts += [(_heading(score), number(score.value), _interval(score)) for score in _leading(scores)]
    cards = "".join(
        f"<div><dt>{escape(name)}</dt><dd><b>{escape(value)}</b><small>{escape(note)}</small></dd></div>"
        for name, value, note in facts
    )
    sentences = paragraph(" ".join([_fitted(subject), _matters(subject)]))
    return Section("summary", "Summary", f'{sentences}<dl class="facts">{cards}</dl>')


def _fitted(subject: Subject) -> str:
    model = subject.model
    end = "The fit converged" if model.converged_ else "The fit did not converge"
    own = " Each class has kernel weights of its own." if len(subject.weight_labels) > 1 else ""
    return (
        f"{type(model).__name__}: {subject.task} with {plural(len(model.kernel_names_), 'kernel')} and "
        f"{plural(subject.n_train, 'training sample')}. {end} after {plural(model.n_iter_, 'iteration')}.{own}"
    )


def _matters(subject: Subject) -> str:
    rows = weight_rows(subject)
    shares = view_shares(rows)
    if not sum(shares.values()):
        return "All kernel weights are zero: no kernel matters."
    certain = _certain(subject, rows)
    if len(shares) == 1:
        return certain
    first = [item for item in sorted(shares.items(), key=lambda item: -item[1])[:_NAMED] if item[1] >= _LEAST_SHARE]
    named = ", ".join(f"{name} ({percent(share)})" for name, share in first)
    what = "views" if len(shares) < len(subject.views) else "kernels"
    return f"The {what} with the largest shares in how the decisions vary: {named}. {certain}"


def _certain(subject: Subject, rows: list[Row]) -> str:
    if subject.never_negative:
        return "No kernel weight can be negative."
    n_certain, n_all = count_certain(rows), plural(len(rows), "kernel weight")
    return f"{n_certain} of {n_all} {'differs' if n_certain == 1 else 'differ'} from zero with 95 % probability."


def _explained(subject: Subject) -> str:
    landmarks = subject.model.landmarks_
    return "" if landmarks is None else f"{plural(len(landmarks), 'landmark')} among them"


def _used(subject: Subject) -> str:
    if hasattr(subject.model, "kernel_inclusion_"):
        return f"{len(subject.model.selected_kernels_)} on with a probability above one half"
    if any(fitted.relevance is not None and fitted.relevance.views is not None for fitted in subject.fits):
        return f"{len(subject.model.selected_kernels_)} of views with p below 0.05"
    return f"{len(subject.model.selected_kernels_)} with more than 1{NO_BREAK}% of the largest weight"


def _leading(scores: list[Score]) -> list[Score]:
    chosen = [score for score in scores if score.name in ("accuracy", "auc", "r2", "rmse")]
    return [score for score in chosen if np.isfinite(score.value)]


def _interval(score: Score) -> str:
    if not score.has_interval:
        return "too few errors for an interval"
    return f"95{NO_BREAK}% interval {number(score.low)} to {number(score.high)}"


def _heading(score: Score) -> str:
    name = MEANINGS[score.name][0]
    return name[0].upper() + name[1:]
