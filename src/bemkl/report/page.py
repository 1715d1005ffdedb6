"""The whole page: sections, style and script put together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import Any

from bemkl.evaluation import HeldOut
from bemkl.report.calibration import calibration_section
from bemkl.report.confusion import error_section
from bemkl.report.convergence import convergence_section
from bemkl.report.explanation import explanation_section
from bemkl.report.kernels import kernel_section
from bemkl.report.markup import Section, escape
from bemkl.report.overview import overview_section
from bemkl.report.scores import read_scores, score_section
from bemkl.report.settings import settings_section
from bemkl.report.similarity import similarity_section
from bemkl.report.subject import read_subject


def report_page(
    model: Any,
    X: Any,
    *,
    held_out: HeldOut | None = None,
    origin: str = "",
    names: Sequence[str] | None = None,
    title: str = "Report on a multiple kernel model",
    settings: Mapping[str, Any] | None = None,
) -> str:
    """
    Make a page on a fitted model that needs nothing but a browser.

    The page shows which kernels and views matter and how sure that is, convergence, scores with intervals,
    calibration, errors, what each kernel adds to single decisions, how alike kernels are, and all settings. It makes no
    request of any kind; names are shown as they are, also if they hold markup.

    Parameters
    ----------
    model : BEMKLClassifier or BEMKLRegressor
        A fitted model.
    X : array_like, data frame, sparse matrix, dict of these, or kernels
        Samples to explain and to compare the kernels on, in any form that the model takes.
    held_out : HeldOut, optional
        Predictions beside the truth, from `cross_predict` or `predict_held_out`; without them the page has no scores,
        calibration and errors.
    origin : str
        Where they come from, such as "5-fold cross-validation of the training samples".
    names : sequence of str, optional
        Names of the samples of X; numbers without them.
    title : str
        Heading of the page.
    settings : mapping of str to Any, optional
        More facts to show, such as names of files.

    Returns
    -------
    str
        A complete HTML document.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If there are not as many names as samples.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl import BEMKLRegressor
    >>> from bemkl.evaluation import cross_predict
    >>> from bemkl.report import report_page
    >>> x = np.linspace(0.0, 6.0, 40)[:, None]
    >>> y = np.sin(x[:, 0])
    >>> model = BEMKLRegressor().fit(x, y)
    >>> page = report_page(model, x, held_out=cross_predict(model, x, y), origin="5-fold cross-validation")
    >>> page.startswith("<!DOCTYPE html>"), "5-fold cross-validation" in page
    (True, True)
    """
    subject = read_subject(model, X, held_out, origin, names, settings)
    scores = [] if subject.held_out is None else read_scores(subject.held_out)
    explanation, data = explanation_section(subject)
    sections = [
        overview_section(subject, scores),
        kernel_section(subject),
        convergence_section(subject),
        score_section(subject, scores),
        calibration_section(subject),
        error_section(subject),
        explanation,
        similarity_section(subject),
        settings_section(subject),
    ]
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        style=_asset("style.css"),
        script=_asset("script.js"),
        contents="".join(f'<li><a href="#{each.anchor}">{escape(each.title)}</a></li>' for each in sections),
        sections="".join(_markup(each) for each in sections),
        data=_script_data(data),
        version=escape(version("bemkl")),
    )


def _asset(name: str) -> str:
    return files("bemkl.report").joinpath(name).read_text(encoding="utf-8")


def _markup(section: Section) -> str:
    heading = f'<h2 id="{section.anchor}-title">{escape(section.title)}</h2>'
    return (
        f'<section id="{section.anchor}" aria-labelledby="{section.anchor}-title">{heading}{section.body}</section>\n'
    )


def _script_data(data: dict[str, Any]) -> str:
    """Write JSON that cannot end the script element, whatever the names are."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")
