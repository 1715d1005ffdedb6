"""What must hold for the answers of a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.session import QuestionError, Session, constants

_CLOSE = 1e-9
"""How far two ways to the same number may be apart, relative to the largest of the terms that they sum."""
_CLOSE_STD = 1e-6
"""The same for deviations, which are roots of differences."""
_ROUNDING = 1e-9
"""How far a bound may fall, relative to its size; the engine itself warns at less."""


class FaultError(AssertionError):
    """Something does not hold."""


def hold(truth: Any, what: str, detail: str = "") -> None:
    """Refuse what is not true, of an array any entry; an empty one is true."""
    if not np.all(truth):
        raise FaultError(what, detail)


def finite(what: str, values: Any) -> Any:
    """Refuse numbers that are not finite."""
    values = np.asarray(values, dtype=np.float64)
    hold(np.isfinite(values), f"{what} not finite")
    return values


def close(what: str, one: Any, other: Any, size: Any = 0.0, tolerance: float = _CLOSE) -> None:
    """Refuse numbers that differ by more than rounding."""
    one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    hold(one.shape == other.shape, what, f"shapes {one.shape} and {other.shape}")
    allowed = tolerance * (np.maximum(np.abs(one), np.abs(other)) + size) + 1e-300
    gap = np.abs(one - other)
    worst = float((gap / allowed).max()) if gap.size else 0.0
    hold((gap <= allowed) | ~np.isfinite(allowed), what, f"{worst:.3g} times the tolerance")


def judge_fit(session: Session) -> None:
    """Look at the attributes of a fitted model."""
    model = session.names["model"]
    for name in ("kernel_weights_", "kernel_weights_std_", "lower_bound_", "dual_coef_", "intercept_"):
        if hasattr(model, name):
            finite(name, getattr(model, name))
    hold(np.asarray(model.kernel_weights_std_) >= 0.0, "a deviation of a weight is negative")
    if hasattr(model, "lower_bounds_"):
        bounds = finite("lower_bounds_", model.lower_bounds_)
        fall = np.diff(bounds, prepend=bounds[:1])
        hold(fall >= -_ROUNDING * (1.0 + np.abs(bounds)), "the bound fell", f"by {-fall.min():.3g} of {bounds[-1]:.6g}")
        hold(len(bounds) == model.n_iter_, "not one bound an iteration")
        hold(bounds[-1] == model.lower_bound_, "lower_bound_ is not the last bound")
    low, high = finite("weight_intervals", session.ask("model.weight_intervals(0.9)"))
    hold(low <= high, "an interval of a weight is upside down")
    if hasattr(model, "summary"):
        session.ask("model.summary()")


def judge_answers(session: Session) -> None:
    """Ask about the samples of training, about some of them alone, and about new ones."""
    ask = _QUESTIONS[session.case["estimator"]]
    among_others = ask(session, "X")
    for number, query in enumerate(session.case["queries"]):
        if query["first"]:
            alone = ask(session, f"new{number}")
            for what, (values, _) in alone.items():
                whole, size = among_others[what]
                tolerance = _CLOSE_STD if "std" in what else _CLOSE
                sizes = size[: len(values)]
                close(f"{what} of a sample depends on others", values, whole[: len(values)], sizes, tolerance)
            continue
        try:
            ask(session, f"new{number}")
        except QuestionError as raised:
            session.note(raised)


def judge_data(session: Session) -> None:
    """Compare the samples with what they were before."""
    for name, before in constants(session.case):
        now = session.names[name]
        numbers = isinstance(now, np.ndarray)
        hold(np.array_equal(now, before, equal_nan=True) if numbers else repr(now) == repr(before), "data were changed")


def magnitude(model: Any, X: Any) -> Any:
    """
    Return how large the terms are that a decision is the sum of, one number a sample.

    Differences within the rounding of these are none. No public method has them, so this reads the fitted parts.
    """
    found = []
    for stack in model._blocks(X):
        total = np.zeros(stack.values.shape[1])
        for fitted in model._fitted:
            weights = np.abs(fitted.kernel_weights)[:, None, None]
            products = np.abs(stack.values) @ np.abs(fitted.dual).T
            total += (weights * products).sum(axis=(0, 2))
        found.append(total)
    return np.concatenate(found) * np.max(model._scale) + np.abs(model.intercept_).max()


def noise_of_kernels(model: Any, X: Any) -> Any:
    """
    Return how far rounding of the kernels may move a deviation, one number a sample.

    What is rounding in a kernel of huge entries is a direction that no sample of training has, with the deviation of
    the prior. Centring leaves small entries with the rounding of large ones.
    """
    blocks = [sum(_noise(fitted, stack, model._source) for fitted in model._fitted) for stack in model._blocks(X)]
    return np.concatenate(blocks) * np.max(model._scale)


def _noise(fitted: Any, stack: Any, source: Any) -> Any:
    groups = source.bank.groups_ if hasattr(source, "bank") else []
    scalings = [scaling for group in groups for scaling in group.scalings or ()]
    centred = [scaling.column_means if hasattr(scaling, "column_means") else [0.0] for scaling in scalings]
    sizes = np.abs(stack.values)
    for kernel, means in zip(sizes, centred, strict=False):
        kernel += np.abs(means).max()
    if hasattr(fitted, "predictors"):
        # A variance of a process is a sum of weighted entries: a deviation has the root of its rounding.
        return np.sqrt(1e-15 * (fitted.kernel_weights[:, None, None] * sizes).sum(axis=(0, 2)))
    weights = np.sqrt(fitted.weights.second.diagonal())[:, None, None]
    deviations = fitted.posterior.sample.diagonal**-0.5
    return 1e-15 * (weights * (sizes @ deviations.T)).sum(axis=(0, 2))


def _sums(session: Session, data: str, decision: Any) -> Any:
    """Compare a decision with the sum of its contributions, and return the size of its terms."""
    model = session.names["model"]
    size = magnitude(model, session.names[data])
    size = size.reshape(-1, *[1] * (decision.ndim - 1))
    parts = finite("contributions", session.ask(f"model.contributions({data})"))
    intercept = model.intercept_[0] if decision.ndim == 1 else model.intercept_
    close("contributions and intercept_ do not sum to the decision", parts.sum(axis=1) + intercept, decision, size)
    combined = finite("combined_kernel", session.ask(f"model.combined_kernel({data})"))
    if combined.ndim == 2:
        total = combined @ model.dual_coef_ + model.intercept_
        total = total[:, 0] if decision.ndim == 1 else total
        close("combined_kernel and dual_coef_ do not give the decision", total, decision, size)
    return size


Answers = dict[str, tuple[Any, Any]]


def _classifier(session: Session, data: str) -> Answers:
    model = session.names["model"]
    decision = finite("decision_function", session.ask(f"model.decision_function({data})"))
    size = _sums(session, data, decision)
    probability = finite("predict_proba", session.ask(f"model.predict_proba({data})"))
    hold((probability >= 0.0) & (probability <= 1.0), "a probability is not between 0 and 1")
    labels = session.ask(f"model.predict({data})")
    if model._several:
        hold(labels == (decision > 0.0), "predict is not the sign of the decision")
    else:
        hold(np.abs(probability.sum(axis=1) - 1.0) < _CLOSE, "probabilities do not sum to one")
        chosen = (decision > 0.0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)
        hold(labels == model.classes_[chosen], "predict is not the largest decision")
    if data == "X":
        _score(session)
    # The score that a probability is of has a deviation of at least 1.
    rounding = noise_of_kernels(model, session.names[data])[:, None]
    return {"decision_function": (decision, size), "predict_proba": (probability, 1.0 + rounding / _CLOSE)}


def _regressor(session: Session, data: str) -> Answers:
    mean = finite("predict", session.ask(f"model.predict({data})"))
    size = _sums(session, data, mean)
    again, std = session.ask(f"model.predict({data}, return_std=True)")
    close("predict with and without return_std differ", again, mean, size)
    hold(finite("std", std) >= 0.0, "a deviation is negative")
    low, high = session.ask(f"model.predict_interval({data}, coverage=0.5)")
    hold((finite("lower end", low) <= again) & (again <= finite("upper end", high)), "a mean is outside its interval")
    if data == "X":
        _score(session)
    rounding = noise_of_kernels(session.names["model"], session.names[data]).reshape(size.shape)
    return {"predict": (mean, size), "std": (std, std + rounding / _CLOSE_STD)}


def _score(session: Session) -> None:
    """Score the samples of training, where there are scores."""
    if len(session.case["target"]["values"]) > 1:
        finite("score", session.ask("model.score(X, y)"))


def _tasks(session: Session, data: str) -> Answers:
    model, samples, name = session.names["model"], session.names[data], "task" if data == "X" else f"{data}_task"
    task = "" if session.case["task"]["apart"] else f", task={name}"
    found = session.ask(f"model.predict({data}{task})")
    std = session.ask(f"model.predict_std({data}{task})")
    if isinstance(found, dict):
        for key, values in found.items():
            finite("predict_std", std[key])
            if np.asarray(values).dtype.kind == "f":
                finite("predict", values)
        return {}
    hold(finite("predict_std", std) >= 0.0, "a deviation is negative")
    if np.asarray(found).dtype.kind == "f":
        finite("predict", found)

    def rounding(here: Any, rows: Any) -> Any:
        blocks = [_noise(here.fitted, stack.dense(), here.source) for stack in here.source.blocks(rows)]
        return here.scale * np.concatenate(blocks)

    return {"predict_std": (std, std + model._each_task(samples, session.names[name], rounding) / _CLOSE_STD)}


_QUESTIONS: dict[str, Callable[[Session, str], Answers]] = {
    "BEMKLClassifier": _classifier,
    "BEMKLRegressor": _regressor,
    "BEMKLMultiTask": _tasks,
}
