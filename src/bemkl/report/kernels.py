"""The part of the page on kernels and views: intervals as pictures, and the table of all weights."""

from __future__ import annotations

from collections.abc import Sequence

from bemkl.report.markup import Section, decimals_for, escape, fixed, number, paragraph, percent, plural, scrolling
from bemkl.report.strips import Interval, interval_strips
from bemkl.report.subject import Subject
from bemkl.report.weights import Row, count_certain, view_intervals, view_rows, view_shares, weight_rows

_SHOWN, _SHOWN_OF_MANY, _MOST_SETS, _MOST_VIEWS, _MOST_ROWS = 20, 8, 12, 200, 4000
_TITLES = {
    "kernel": "kernel",
    "view": "view",
    "class": "class",
    "weight": "weight",
    "std": "deviation",
    "low": "low",
    "high": "high",
    "share": "share %",
    "inclusion": "inclusion",
    "evidence": "evidence lost",
    "loss": "log density lost",
    "loss_std": "standard error",
    "p": "p",
}
_TESTS = ("evidence", "loss", "loss_std", "p")


def kernel_section(subject: Subject) -> Section:
    """Show which kernels and views matter, and how sure that is."""
    rows = weight_rows(subject)
    parts = [
        paragraph(
            "A weight says how strongly a kernel enters the decisions: its mean and 95 % interval under the posterior. "
            "The share says how much of the variation of the decisions on the training samples goes through it. "
            "Kernels that are alike divide a weight among them, and each then looks small: look at the sum over their "
            "view, too."
        )
    ]
    if len(set(subject.views)) < len(subject.views):
        parts += ["<h3>Views</h3>", _views(subject, rows), _tests(subject)]
    parts += ["<h3>Kernels</h3>", _kernels(subject, rows)]
    parts += ["<h3>All weights</h3>", _table(subject, rows)]
    return Section("kernels", "Kernels and views", "".join(parts))


def _views(subject: Subject, rows: list[Row]) -> str:
    found = view_intervals(subject, rows)
    several = len(found) > 1
    panels = []
    for label, intervals in list(found.items())[:_MOST_SETS]:
        share = view_shares(rows, label)
        noted = [Interval(each.name, each.value, each.low, each.high, percent(share[each.name])) for each in intervals][
            :_MOST_VIEWS
        ]
        panels.append((label, _folded(noted, "sum of weights; share", _SHOWN_OF_MANY if several else _SHOWN, "view")))
    note = "Sum of the weights of the kernels on a view, with its 95 % interval, and the view's share. "
    return paragraph(note + _cut(len(found)), "note") + _panels(panels)


def _tests(subject: Subject) -> str:
    """Say what is lost without each view, where the fit has left them out."""
    rows = view_rows(subject)
    if "p" not in rows[0]:
        return ""
    head = "".join(f'<th scope="col">{_TITLES[name]}</th>' for name in ("view", *_TESTS))
    cells = ["".join(f"<td>{number(row[name])}</td>" for name in _TESTS) for row in rows]
    body = "".join(
        f'<tr><th scope="row">{escape(row["view"])}</th>{numbers}</tr>'
        for row, numbers in zip(rows, cells, strict=True)
    )
    caption = "What is lost without each view"
    note = (
        "Each view was left out in turn while all others could answer for it. Lost are evidence and, on average, log "
        "density of a sample that is predicted by the others. p is how likely a view without influence looks as good "
        "by chance."
    )
    content = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return paragraph(note, "note") + scrolling(content, caption)


def _kernels(subject: Subject, rows: list[Row]) -> str:
    labels = subject.weight_labels
    most = _SHOWN_OF_MANY if len(labels) > 1 else _SHOWN
    panels, texts = [], []
    for label in labels[:_MOST_SETS]:
        mine = [row for row in rows if row["class"] == label]
        shown = [
            Interval(row["kernel"], row["weight"], row["low"], row["high"], percent(row["share"]))
            for row in mine[:most]
        ]
        panels.append((label, _folded(shown, "weight; share", most, "kernel")))
        rest = mine[most:]
        if rest:
            largest = max(abs(row["weight"]) for row in rest)
            texts.append(f"No other weight exceeds {largest:g} in absolute value." if len(labels) == 1 else "")
    note = f"The kernels with the largest weights. {_certain(subject, rows)} {''.join(texts)} "
    return paragraph(note + _cut(len(labels)), "note") + _panels(panels)


def _certain(subject: Subject, rows: list[Row]) -> str:
    if subject.never_negative:
        return "No weight can be negative, so no interval reaches zero; how close it comes is what to look at."
    n_certain = count_certain(rows)
    have = "has" if n_certain == 1 else "have"
    return f"Of {plural(len(rows), 'weight')}, {n_certain} {have} a 95 % interval that excludes zero."


def _cut(n_sets: int) -> str:
    return f"The first {_MOST_SETS} of {n_sets} classes are drawn; the table has all." if n_sets > _MOST_SETS else ""


def _folded(intervals: Sequence[Interval], axis: str, most: int, what: str) -> str:
    """Draw the first intervals, and the others where a reader asks for them."""
    decimals = decimals_for([end for each in intervals for end in (each.value, each.low, each.high)], 3)
    first, rest = intervals[:most], intervals[most:]
    content = interval_strips(first, axis, decimals)
    if rest:
        inside = interval_strips(rest, axis, decimals)
        content += f"<details><summary>{plural(len(rest), f'more {what}')}</summary>{inside}</details>"
    return content


def _panels(panels: Sequence[tuple[str, str]]) -> str:
    if len(panels) == 1:
        return panels[0][1]
    inside = "".join(f'<div class="panel"><h4>{escape(label)}</h4>{content}</div>' for label, content in panels)
    return f'<div class="panels">{inside}</div>'


def _table(subject: Subject, rows: list[Row]) -> str:
    columns = [name for name in _TITLES if name in rows[0] and (name != "class" or len(subject.weight_labels) > 1)]
    shown = sorted(rows, key=lambda row: -abs(row["weight"]))[:_MOST_ROWS]
    decimals = {name: decimals_for(row["weight"] for row in rows) for name in ("weight", "std", "low", "high")}
    decimals |= {"share": 2, "inclusion": 3, "evidence": 1, "loss": 4, "loss_std": 4, "p": 4}
    head = "".join(_header(name, "descending" if name == "weight" else "none") for name in columns)
    body = "".join(f"<tr>{''.join(_cell(row, name, decimals) for name in columns)}</tr>" for row in shown)
    caption = (
        "Weights of all kernels" if len(shown) == len(rows) else f"The {_MOST_ROWS} largest of {len(rows)} weights"
    )
    search = (
        '<p class="tools needs-script"><label for="search">Search kernels and views</label> '
        '<input id="search" type="search" autocomplete="off" aria-controls="weights"> '
        f'<span id="found" role="status">{plural(len(shown), "row")}</span></p>'
    )
    content = (
        f'<table id="weights" class="sortable"><caption>{escape(caption)}, largest first. Low and high are the ends of '
        f"the 95 % interval.</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    paper = '<p class="note paper-only">On paper the table has its first 40 rows.</p>' if len(shown) > 40 else ""
    return search + scrolling(content, caption, "tall") + paper


def _header(name: str, order: str) -> str:
    kind = "text" if name in ("kernel", "view", "class") else "number"
    return (
        f'<th scope="col" class="{kind}" aria-sort="{order}" data-kind="{kind}">'
        f'<button type="button">{_TITLES[name]}<span class="arrow" aria-hidden="true"></span></button></th>'
    )


def _cell(row: Row, name: str, decimals: dict[str, int]) -> str:
    if name == "kernel":
        return f'<th scope="row">{escape(row[name])}</th>'
    if name not in decimals:
        return f'<td class="text">{escape(row[name])}</td>'
    value = 100.0 * row[name] if name == "share" else row[name]
    return f"<td>{fixed(value, decimals[name])}</td>"
