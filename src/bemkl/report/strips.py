"""Rows of a name, a mark on a common axis and a number: pictures that stay readable on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bemkl.report.drawing import tick_label, ticks
from bemkl.report.markup import escape, fixed, short

_ROOM = 0.03


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its interval."""

    name: str  # what it is the value of
    value: float  # the value
    low: float
    high: float
    note: str = ""  # what stands after the numbers


def interval_strips(intervals: Sequence[Interval], axis: str, decimals: int) -> str:
    """Draw intervals below each other, around a common zero line."""
    low = min(0.0, *(each.low for each in intervals))
    high = max(0.0, *(each.high for each in intervals))
    room = _ROOM * (high - low) or 1.0
    low, high = low - room, high + room

    def place(value: float) -> str:
        return f"{100.0 * (value - low) / (high - low):.2f}%"

    rows = "".join(
        _strip(each, place(0.0), [place(v) for v in (each.value, each.low, each.high)], decimals) for each in intervals
    )
    labels = "".join(
        f'<text x="{place(value)}" y="13" text-anchor="middle">{tick_label(value)}</text>'
        for value in ticks(low, high, 5)
        if 0.02 < (value - low) / (high - low) < 0.98
    )
    scale = f'<svg class="strip" aria-hidden="true">{labels}</svg>'
    foot = f'<tr class="scale"><td></td><td>{scale}</td><td>{escape(axis)}</td></tr>'
    return f'<table class="strips" aria-label="{escape(axis)}"><tbody>{rows}{foot}</tbody></table>'


def bar_strip(value: float, scale: float) -> str:
    """Draw a bar to the left or right of zero."""
    length = 50.0 * abs(value) / scale if 0.0 < abs(value) <= scale else 0.0
    start = 50.0 if value >= 0.0 else 50.0 - length
    kind = "positive" if value >= 0.0 else "negative"
    return (
        '<svg class="strip" aria-hidden="true"><line class="zero" x1="50%" x2="50%" y1="0" y2="18"/>'
        f'<rect class="{kind}" x="{start:.2f}%" width="{length:.2f}%" y="3" height="12"/></svg>'
    )


def _strip(each: Interval, zero: str, places: list[str], decimals: int) -> str:
    value, low, high = (fixed(each_end, decimals) for each_end in (each.value, each.low, each.high))
    at, start, end = places
    words = f"{value}, 95 % interval {low} to {high}"
    picture = (
        f'<svg class="strip" role="img" aria-label="{words}">'
        f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="18"/>'
        f'<line class="interval" x1="{start}" x2="{end}" y1="9" y2="9"/><circle class="point" cx="{at}" cy="9" r="4"/>'
        "</svg>"
    )
    numbers = f'<b>{value}</b> <span class="range">{low} to {high}</span> <span class="note">{escape(each.note)}</span>'
    name = f'<th scope="row" title="{escape(each.name)}">{escape(short(each.name))}</th>'
    return f'<tr>{name}<td>{picture}</td><td class="numbers">{numbers}</td></tr>'
