"""Coordinate ascent: a first state, sweeps, and the run that repeats them until the bound settles."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from bemkl._numerics.threads import one_pool
from bemkl.arrays import Array, finite_number, whole_number
from bemkl.exceptions import BoundDecreasedWarning, ConvergenceWarning
from bemkl.inference.bound import lower_bound_terms
from bemkl.inference.moments import PairContext
from bemkl.inference.pair import FEW_DIGITS
from bemkl.inference.problem import Problem
from bemkl.inference.state import Posterior, State, first_state, handed_over, resumed
from bemkl.inference.updates import sweep_updates, update_output_target

Watch = Callable[[int, State, float], bool]
"""Looks on: number of the iteration (0 in a rehearsal), posterior and bound in; whether to stop out."""

_ROUNDING = 1e-10
_FEW_DIGITS_OF_TARGETS = float((_ROUNDING / np.finfo(np.float64).eps ** 2) ** (1.0 / 3.0))
"""Ratio c of precisions from which c (c ε)², what rounding takes from the bound a sample, is above `_ROUNDING`: 1e7."""


@dataclass(frozen=True, slots=True, eq=False)
class FitResult:
    """
    Outcome of a run.

    Parameters
    ----------
    state : State
        The last posterior.
    bound_terms : tuple of dict of str to float
        Named terms of the lower bound after each iteration.
    converged : bool
        Whether the bound settled before the iterations ran out.
    interrupted : bool
        Whether the run was stopped from outside.
    """

    state: State
    bound_terms: tuple[dict[str, float], ...]
    converged: bool
    interrupted: bool = False

    @property
    def lower_bounds(self) -> Array:
        """Exact lower bound after each iteration, shape (n_iter,)."""
        return np.array([sum(terms.values()) for terms in self.bound_terms])

    @property
    def lower_bound(self) -> float:
        """Exact lower bound of the last posterior."""
        return float(self.lower_bounds[-1])

    @property
    def n_iter(self) -> int:
        """Number of iterations done."""
        return len(self.bound_terms)


def initialise(
    problem: Problem, rng: np.random.Generator | None = None, *, max_iter: int = 1000, tol: float | None = 1e-4
) -> State:
    """
    Return a first posterior.

    Precisions start at their priors, kernel weights equal, targets where a predictor of zero puts them; the pair (a, G)
    is then fitted to these. Where a likelihood has a rehearsal, its posterior is the start.

    Parameters
    ----------
    problem : Problem
        What is to be fitted.
    rng : numpy.random.Generator, optional
        Draws the kernel weights at random instead, for restarts.
    max_iter : int
        Most iterations of a rehearsal.
    tol : float or None
        Relative change of the bound at which a rehearsal stops.

    Returns
    -------
    State
        The posterior; the same for every call without a generator.
    """
    return _begin(problem, rng, max_iter, tol, None)[0]


def _begin(
    problem: Problem, rng: np.random.Generator | None, max_iter: int, tol: float | None, watch: Watch | None
) -> tuple[State, bool]:
    """Return a first posterior, and whether its rehearsal was stopped from outside."""
    if not isinstance(rng, np.random.Generator | None):
        raise ValueError(
            f"rng: expected a numpy.random.Generator or None, got {rng!r}. Pass np.random.default_rng(seed)."
        )
    if all(block.likelihood.rehearsal is None for block in problem.blocks):
        return first_state(problem, rng), False
    # Fit the easier likelihoods, and hand their posterior over to the real ones.
    easier = [replace(block, likelihood=block.likelihood.rehearsal or block.likelihood) for block in problem.blocks]
    look: Watch | None = None if watch is None else lambda _, state, bound: watch(0, state, bound)
    rehearsed = ascend(replace(problem, blocks=easier), rng=rng, max_iter=max_iter, tol=tol, watch=look)
    return update_output_target(problem, handed_over(problem, rehearsed.state)), rehearsed.interrupted


def sweep(problem: Problem, state: State) -> State:
    """
    Update every factor once.

    Parameters
    ----------
    problem : Problem
        What is fitted.
    state : State
        Current posterior.

    Returns
    -------
    State
        The next posterior.
    """
    for update in sweep_updates(problem).values():
        state = update(problem, state)
    return state


def iterate(
    problem: Problem, state: State | Posterior | None = None, *, fresh: bool = False
) -> Iterator[tuple[State, dict[str, float]]]:
    """
    Sweep without end, and show the posterior after each sweep.

    Parameters
    ----------
    problem : Problem
        What is to be fitted.
    state : State or Posterior, optional
        Where to start; `initialise` makes a state without one.
    fresh : bool
        Whether that state is one that `initialise` made, so that the first sweep may do what it likes.

    Yields
    ------
    state : State
        The posterior after another sweep.
    terms : dict of str to float
        Named terms of its lower bound.

    Raises
    ------
    FloatingPointError
        If the bound is not finite, which only numbers at the end of the floating point range can cause.
    """
    terms: dict[str, float] | None = None
    if state is None:
        state = initialise(problem)
    elif not (fresh and isinstance(state, State)):
        state = resumed(problem, state)
        # A first bold sweep must not fall below somebody's posterior; one that is not finite has nothing to lose.
        with np.errstate(all="ignore"):
            given = lower_bound_terms(problem, state)
        terms = given if np.isfinite(sum(given.values())) else None
    while True:
        state, terms = _climb(problem, state, terms)
        lost = {name: value for name, value in terms.items() if not np.isfinite(value)}
        if lost:
            raise FloatingPointError(
                f"the lower bound is not finite: {lost}. Look for extreme values in the kernels, the targets, "
                "the margin or the starting state."
            )
        yield state, terms


def _climb(problem: Problem, state: State, before: dict[str, float] | None) -> tuple[State, dict[str, float]]:
    """
    Sweep boldly; where that lowers the bound, sweep again with steps that cannot.

    Where numbers are so far apart that the bound has few digits, even these may seem to, or fail: the posterior stays.
    """
    bound = -np.inf if before is None else sum(before.values())
    cautious = replace(problem, pair=problem.pair.cautious, weights=problem.weights.cautious)
    careful = cautious.pair is problem.pair and cautious.weights is problem.weights
    attempts = [problem] if careful else [problem, cautious]
    for attempt in attempts:
        last = attempt is attempts[-1]
        try:
            reached = sweep(attempt, state)
            terms = lower_bound_terms(attempt, reached)
        except np.linalg.LinAlgError:
            if last and (before is None or not _has_few_digits(problem, state)):
                raise
            continue
        if np.isfinite(sum(terms.values())) and not _fell(terms, bound):
            return reached, terms
        if last and (before is None or not _has_few_digits(problem, state)):
            return reached, terms
    assert before is not None, "a first sweep is returned, or has raised"
    return state, before


def _fell(terms: dict[str, float], bound: float) -> bool:
    """Tell whether the bound is lower than it was by more than the rounding of its terms."""
    return sum(terms.values()) < bound - _ROUNDING * sum(abs(value) for value in terms.values())


def _has_few_digits(problem: Problem, state: State) -> bool:
    """
    Tell whether numbers are so far apart that the bound shows rounding.

    Kernels may be large beside the precisions of the sample weights. Targets may be precise beside the intermediate
    outputs: of the G of a sample, the precision along the kernel weights is c = 1 + τ E[eᵀe] / υ times as large as
    across them, so that a mean solved with it is off by c ε, ε the rounding of a number. The bound has τ times the
    square of that, which is c (c ε)² for each sample.
    """
    for index, here in enumerate(state.blocks):
        if here.sample.scale_ratio(here.block.kernels.gram, problem.n_kernels) > FEW_DIGITS:
            return True
        if _target_ratio(here.context(state.weights.moments(index))) > _FEW_DIGITS_OF_TARGETS:
            return True
    return False


def _target_ratio(context: PairContext) -> float:
    """Return how precise targets are beside the intermediate outputs that make them up: τ E[eᵀe] / υ at its largest."""
    square = float(context.weights.second.diagonal().sum())
    return float((context.output_precision / context.intermediate_precision).max() * square)


def ascend(
    problem: Problem,
    state: State | Posterior | None = None,
    *,
    rng: np.random.Generator | None = None,
    max_iter: int = 1000,
    tol: float | None = 1e-4,
    watch: Watch | None = None,
) -> FitResult:
    """
    Sweep until the bound settles, and leave it to the caller to ask whether it did.

    An interrupt from the keyboard ends the run after the last complete iteration; it is raised only where there is none
    yet.

    Parameters
    ----------
    problem : Problem
        What is to be fitted.
    state : State or Posterior, optional
        Where to start: any posterior of the same problem. Without one, `initialise` makes it.
    rng : numpy.random.Generator, optional
        Draws for that start.
    max_iter : int
        Most iterations to do; a rehearsal has as many of its own.
    tol : float or None
        Stop when the bound changes by less than this, relative to its size or, if that is more, to the number of
        observed labels and responses. None asks for exactly `max_iter` iterations.
    watch : callable, optional
        Called after each iteration with its number, the posterior and the bound. A true answer stops the run.

    Returns
    -------
    FitResult
        The last posterior and the bound's path.

    Warns
    -----
    BoundDecreasedWarning
        If the bound fell by more than rounding: a wrong plug-in.
    """
    max_iter = whole_number("max_iter", max_iter, least=1)
    if tol is not None:
        tol = finite_number("tol", tol, least=0.0, allow_least=True)
    history: list[dict[str, float]] = []
    converged, interrupted, previous = False, False, -np.inf
    latest: State | None = None
    try:
        # What leaves the range of floating point shows in the bound, which is looked at after each sweep.
        with one_pool(problem.n_rows), np.errstate(all="ignore"):
            fresh, stopped = state is None, False
            if state is None:
                state, stopped = _begin(problem, rng, max_iter, tol, watch)
            for reached, terms in islice(iterate(problem, state, fresh=fresh), max_iter):
                bound = sum(terms.values())
                _warn_if_fallen(previous, terms)
                converged = tol is not None and abs(bound - previous) <= tol * max(abs(bound), problem.n_observations)
                latest, previous = reached, bound
                history.append(terms)
                interrupted = (watch is not None and watch(len(history), reached, bound)) or stopped
                if converged or interrupted:
                    break
    except KeyboardInterrupt:
        if latest is None or not history:
            raise
        interrupted = True
    assert latest is not None, "max_iter is at least 1"
    return FitResult(latest, tuple(history), converged, interrupted and not converged)


def run(
    problem: Problem, state: State | Posterior | None = None, *, max_iter: int = 1000, tol: float | None = 1e-4
) -> FitResult:
    """
    Sweep until the bound settles, and warn if it does not.

    Parameters
    ----------
    problem : Problem
        What is to be fitted.
    state : State or Posterior, optional
        Where to start: any posterior of the same problem. Without one, `initialise` makes it.
    max_iter : int
        Most iterations to do.
    tol : float or None
        Stop when the bound changes by less than this, relative to its size or, if that is more, to the number of
        observed labels and responses. None asks for exactly `max_iter` iterations.

    Returns
    -------
    FitResult
        The last posterior and the bound's path.

    Warns
    -----
    ConvergenceWarning
        If the iterations ran out, or were interrupted, before the bound settled.
    BoundDecreasedWarning
        If the bound fell by more than rounding: a wrong plug-in.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl.inference import Block, Gaussian, Problem
    >>> from bemkl.kernels import DenseStack, gaussian
    >>> x = np.linspace(0.0, 6.0, 30)[:, None]
    >>> stack = DenseStack(np.stack([gaussian(x, x, width) for width in (0.3, 1.0, 3.0)]))
    >>> result = run(Problem([Block(stack, Gaussian(np.sin(x[:, 0])))]))
    >>> result.converged, bool(np.all(np.diff(result.lower_bounds) > 0.0))
    (True, True)
    """
    result = ascend(problem, state, max_iter=max_iter, tol=tol)
    if tol is not None and not result.converged:
        end = "the run was interrupted" if result.interrupted else "max_iter was reached"
        warnings.warn(
            f"{end} after {result.n_iter} iterations, while the lower bound still changed by more than tol={tol}. "
            "Raise max_iter, or continue from the state of this result.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return result


def _warn_if_fallen(previous: float, terms: dict[str, float]) -> None:
    """Sound the alarm where the bound falls by more than the rounding of its terms."""
    if _fell(terms, previous):
        warnings.warn(
            f"the lower bound fell by {previous - sum(terms.values()):.3g}, more than rounding: an update of a plug-in "
            "is not an ascent step.",
            BoundDecreasedWarning,
            stacklevel=3,
        )
