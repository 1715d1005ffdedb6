"""What must hold between fits: the same data in another order, form or file give the same model."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.forms import SAME
from fuzz.judge import close, finite, hold
from fuzz.problems import Case
from fuzz.session import QuestionError, Session

_SAME_MODEL = 1e-6
"""How far bounds of the same data in another order or form may be apart: iterations enlarge the rounding."""


_KNOWN_KERNELS = 1e-4
"""How large the rounding of kernels may be beside the prior where bounds are compared."""


def fit(session: Session, name: str = "model", data: str = "X", target: str = "y") -> None:
    """Fit a model."""
    rows = session.case["estimator"] == "BEMKLMultiTask" and not session.case["task"]["apart"]
    session.ask(f"{name}.fit({data}, {target}{', task=task' if rows else ''})")


def judge_extras(session: Session) -> None:
    """Ask the few questions that need another fit."""
    for name in session.case["extras"]:
        _EXTRAS[name](session)


def _is_fixed(session: Session) -> bool:
    """Tell whether a fit has nothing to draw, or the same draws each time."""
    options = session.case["options"]
    return options.get("random_state") in ("0", "1") or {"landmarks", "n_init"}.isdisjoint(options)


def _is_multitask(session: Session) -> bool:
    return bool(session.case["estimator"] == "BEMKLMultiTask")


def _same_bits(session: Session, what: str) -> None:
    """Compare the model with another one that has to be the same."""
    model, other = session.names["model"], session.names["other"]
    hold(model.lower_bound_ == other.lower_bound_, what, f"{model.lower_bound_!r} and {other.lower_bound_!r}")
    hold(np.array_equal(model.kernel_weights_, other.kernel_weights_), what)


def _twice(session: Session) -> None:
    if _is_fixed(session):
        _fresh(session)
        fit(session, "other")
        _same_bits(session, "a second fit differs")


def _fresh(session: Session) -> None:
    """Make another model that has not been fitted, and goes its own way."""
    session.ask("__import__('sklearn').base.clone(model)", "other")


def _warm(session: Session) -> None:
    model, options = session.names["model"], session.case["options"]
    if _is_multitask(session) or "landmarks" in options or options.get("n_init", "1") != "1":
        return
    before = model.lower_bound_
    session.ask("__import__('copy').deepcopy(model).set_params(warm_start=True)", "other")
    fit(session, "other")
    after = session.names["other"].lower_bound_
    hold(after >= before - 1e-8 * (1.0 + abs(before)), "a warm start lowers the bound", f"{before!r} to {after!r}")


def _other_order(session: Session) -> None:
    """Fit the same samples backwards: the bound has to be the same, where the path to it is short."""
    case = session.case
    simple = case["source"] == "table" and not _is_multitask(session) and case["hostility"] == "moderate"
    bank = case["bank"] or {}
    if "factor_tol" in case["options"] or "'variance'" in str(bank) or "'centred'" in str(bank):
        return  # factors of few digits depend on the order, and what is left of constant kernels is their rounding
    if not simple or not {"landmarks", "n_init"}.isdisjoint(case["options"]) or "form of y" in case["odd"]:
        return
    if case["options"].get("posterior") == "'marginal'":
        return  # it has no plain iteration
    session.ask("[V0[::-1], Y[::-1]]", "backwards")
    for name, plain in (("straight", "V0, Y"), ("other", "*backwards")):
        session.ask("__import__('sklearn').base.clone(model).set_params(acceleration=None, max_iter=3)", name)
        session.ask(f"{name}.fit({plain})")
    _same_bound(session, "the order of samples changes the bound")


def _same_bound(session: Session, what: str) -> None:
    """
    Compare the bounds of two fits, where the rounding of their kernels is small beside the prior.

    An entry k of a kernel is known up to ε k, ε the rounding of a number, and which way it is rounded depends on the
    order of the samples. Sample weights of the prior's deviation λ^(-1/2) turn that into an error ε k λ^(-1/2) of an
    intermediate output with precision υ, which takes ε² k² υ / λ from the bound: ε² times the ratio that is asked for
    here. Where its root is 1e-4, a hundred samples and kernels take 1e-6 together, what bounds may be apart.
    """
    one, other = session.names["straight"], session.names["other"]
    blocks = [block for model in (one, other) for block in _blocks(model)]
    if any(hasattr(block, "predictors") for block in blocks):
        return  # the evidence of processes has a curvature in it, whose digits depend on the kernels' condition
    ratios = [block.posterior.sample.scale_ratio(block.gram, len(block.weights.mean)) for block in blocks]
    if np.finfo(np.float64).eps * np.sqrt(max(ratios)) <= _KNOWN_KERNELS:
        close(what, one.lower_bound_, other.lower_bound_, 1.0, _SAME_MODEL)


def _blocks(model: Any) -> list[Any]:
    """Return what a model has fitted, one block a likelihood or task."""
    return [task.fitted for task in model._fitted_tasks] if hasattr(model, "_fitted_tasks") else list(model._fitted)


def _as_array(session: Session) -> None:
    """Fit the plain numbers: a form that holds the same ones has to give the same model."""
    case = session.case
    forms = {part["form"] for part in case["parts"]}
    if case["source"] != "table" or _is_multitask(session) or not forms <= set(SAME.values()) or not _is_fixed(session):
        return
    for name, data in (("straight", "X"), ("other", "V0")):
        session.ask("__import__('sklearn').base.clone(model).set_params(acceleration=None, max_iter=3)", name)
        fit(session, name, data)
    _same_bound(session, "the form of X changes the bound")


def _saved(session: Session) -> None:
    session.ask("__import__('tempfile').mkdtemp()", "folder")
    try:
        session.ask("save_model(model, folder + '/model.skops')")
        session.ask("load_model(folder + '/model.skops')", "other")
    finally:
        session.ask("__import__('shutil').rmtree(folder)")
    _same_answers(session, "a saved model differs")


def _pickled(session: Session) -> None:
    session.ask("__import__('pickle').loads(__import__('pickle').dumps(model))", "other")
    _same_answers(session, "a pickled model differs")


def _same_answers(session: Session, what: str) -> None:
    _same_bits(session, what)
    rows = _is_multitask(session) and not session.case["task"]["apart"]
    data = "X, task=task" if rows else "X"
    one, other = session.ask(f"model.predict({data})"), session.ask(f"other.predict({data})")
    pairs = [(one[name], other[name]) for name in one] if isinstance(one, dict) else [(one, other)]
    hold(all(np.array_equal(first, second) for first, second in pairs), what)


def _shared(session: Session) -> None:
    """Fit twice in a context that shares kernels, at last on an array that held other samples before."""
    if not _is_fixed(session):
        return
    X = session.names["X"]
    plain = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"
    with session.ask("shared_kernels()"):
        for data in ("X", *(("changing", "changing") if plain else ("X",))):
            _fresh(session)
            if data == "changing" and "changing" not in session.names:
                session.ask("X[::-1].copy()", "changing")
            elif data == "changing":
                session.names["changing"][:] = X
            fit(session, "other", data)
    _same_bits(session, "shared kernels change the model")


def _selected(session: Session) -> None:
    if _is_multitask(session):
        return
    found = session.ask("select_by_bound(model, {'intermediate_std': [0.3, 1.0], 'max_iter': [2]}, X, y)")
    hold(np.isfinite(found.lower_bounds), "a bound of a candidate is not finite")
    hold(found.best_index == int(np.argmax(found.lower_bounds)), "not the highest bound is selected")


def _by_ids(session: Session) -> None:
    """Fit the plain numbers by order, and in another order by ids: both have to be the same model."""
    case = session.case
    ids, beside = case["ids"]
    plain = all(part["form"] == "V" for part in case["parts"]) or case["source"] == "kernels"
    if case["odd"] or not plain or not _is_fixed(session) or case.get("task", {}).get("apart"):
        return
    session.ask(ids, "ids")
    session.ask(f"ids{beside}", "beside")
    session.ask("np.random.default_rng(N).permutation(N)", "order")
    several = "DataFrame" if np.ndim(case["target"]["values"][0]) else "Series"
    session.ask(f"pd.{several}(Y)", "straight_y")
    # Beside an array without ids the targets lead: their order is that of the samples.
    session.ask(f"pd.{several}(Y).set_axis(beside){'' if 'task' in case else '.iloc[order]'}", "other_y")
    for name, data, task in _data_by_ids(case):
        session.ask("__import__('sklearn').base.clone(model).set_params(acceleration=None, max_iter=3)", name)
        if case["source"] == "table" and case["bank"] and not task and "landmarks" not in case["options"]:
            session.ask(f"__import__('sklearn').pipeline.make_pipeline({name}.kernels, {name})", f"{name}_pipeline")
            session.ask(f"{name}.set_params(kernels='precomputed')")
            session.ask(f"{name}_pipeline.fit({data}, {name}_y)")
        else:
            session.ask(f"{name}.fit({data}, {name}_y{task})")
    _same_bound(session, "rows are not matched by their ids")
    if case["source"] == "kernels" and "landmarks" not in case["options"]:
        new = "[pd.DataFrame(K[:2], columns=beside).iloc[:, order] for K in V0]"
        new += "[0]" * (len(session.names["V0"]) == 1)  # a frame alone is a kernel too
        one, other = session.ask("other.contributions([K[:2] for K in V0])"), session.ask(f"other.contributions({new})")
        hold(np.array_equal(one, other), "columns are not matched by their ids")


def _data_by_ids(case: Case) -> list[tuple[str, str, str]]:
    """Return samples by order, and those of the same model by ids, with the argument for their tasks."""
    if case["source"] == "kernels":
        return [
            ("straight", "list(V0)", ""),
            ("other", "[pd.DataFrame(K, ids, beside).iloc[:, order] for K in V0]", ""),
        ]
    if case["source"] == "views":
        names = [(repr(part["name"]), f"pd.DataFrame(V{place})") for place, part in enumerate(case["parts"])]
        straight = ", ".join(f"{name}: {table}" for name, table in names)
        other = ", ".join(
            f"{name}: {table}.set_axis(ids){'.iloc[order]' * (name != names[0][0])}" for name, table in names
        )
        return [("straight", f"{{{straight}}}", ""), ("other", f"{{{other}}}", "")]
    if "task" in case:
        return [("straight", "V0", ", task=task"), ("other", "V0", ", task=pd.Series(task, ids).iloc[order]")]
    return [("straight", "V0", ""), ("other", "pd.DataFrame(V0, ids)", "")]


def _scored(session: Session) -> None:
    """Ask for scores of all kinds of targets and weights: a number, or a refusal."""
    if _is_multitask(session) or len(session.case["target"]["values"]) < 2:
        return
    for target, weights in session.case["scores"]:
        try:
            finite("score", session.ask(f"model.score(X, {target}, sample_weight={weights})"))
        except QuestionError as raised:
            session.note(raised)


_EXTRAS = {
    "by ids": _by_ids,
    "scored": _scored,
    "twice": _twice,
    "warm": _warm,
    "rows in another order": _other_order,
    "as an array": _as_array,
    "saved": _saved,
    "pickled": _pickled,
    "shared": _shared,
    "selected": _selected,
}
