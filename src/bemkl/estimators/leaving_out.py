"""What a fit found out about one view by leaving it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bemkl.estimators.fitted import Fitted
from bemkl.marginal.relevance import MOST_GROUPS


@dataclass(frozen=True, slots=True)
class LeftOut:
    """
    What is lost without one view, where all other views may answer for it.

    Parameters
    ----------
    view : str
        Name of the view.
    evidence : float
        Evidence that is lost, in nats.
    loss : float
        What the log density, or log probability, of a sample that is predicted by the other samples loses on average.
    loss_std : float
        Standard error of that average.
    p : float
        Probability that a view without influence looks as good by chance.
    """

    view: str
    evidence: float
    loss: float
    loss_std: float
    p: float


def left_out(view: str, views: Sequence[str], fitted: Sequence[Fitted]) -> LeftOut:
    """Look up a view, given the view of each kernel; refuse views that are not there, and fits that left none out."""
    names = list(dict.fromkeys(views))
    if view not in names:
        raise ValueError(f"view: expected one of {', '.join(map(repr, names))}, got {view!r}.")
    relevance = fitted[0].relevance
    if relevance is None:
        raise ValueError(
            "without: only the marginal posterior knows what is lost without a view. Fit with "
            'posterior="marginal", or fit again without the view and compare predictions on the same folds.'
        )
    if relevance.views is None:
        raise ValueError(f"without: this fit left no view out. {_reason(len(names), fitted[0].n_samples)}")
    place, found = names.index(view), relevance.views
    values = (found.evidence, found.loss, found.loss_deviation, found.probability)
    return LeftOut(view, *(float(each[place]) for each in values))


def _reason(n_views: int, n_samples: int) -> str:
    """Say why views were not left out, and what to do."""
    if n_samples < 2:
        return "It has one sample only, of which the others cannot say anything: pass more samples."
    if n_views < 2:
        return "It has one view only: pass several as a dict, or columns with kernels of their own."
    if n_views > MOST_GROUPS:
        return f"It has {n_views} views, and up to {MOST_GROUPS} are left out in turn: join some of them."
    return 'Views are left out with function_prior="sum", test_views=True and without landmarks: fit with these.'
