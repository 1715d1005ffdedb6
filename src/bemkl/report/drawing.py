"""Small pictures in SVG. Colours come from the style sheet, so that they suit light, dark and paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bemkl.arrays import Array
from bemkl.report.markup import escape

_RIGHT, _TOP, _BOTTOM = 10.0, 8.0, 40.0
_LETTER = 6.4


@dataclass(frozen=True, slots=True)
class Frame:
    """The area of a chart: from values to places."""

    x_range: tuple[float, float]  # values at the left and right ends
    y_range: tuple[float, float]  # values at the bottom and top ends
    width: float = 360.0  # width in units of the picture
    height: float = 270.0  # height

    @property
    def left(self) -> float:
        """Where the area begins, after the numbers and the label of the axis."""
        return 24.0 + _LETTER * max((len(tick_label(value)) for value in ticks(*self.y_range)), default=1)

    def x(self, value: float) -> float:
        """Return the place of a value from left to right."""
        low, high = self.x_range
        return round(self.left + (value - low) / (high - low) * (self.width - self.left - _RIGHT), 1)

    def y(self, value: float) -> float:
        """Return the place of a value from top to bottom."""
        low, high = self.y_range
        return round(self.height - _BOTTOM - (value - low) / (high - low) * (self.height - _BOTTOM - _TOP), 1)


def spread(values: Sequence[float] | Array, margin: float = 0.05) -> tuple[float, float]:
    """Choose the range of an axis."""
    low, high = float(np.min(values)), float(np.max(values))
    room = margin * (high - low) or 0.5 * abs(high) or 1.0
    return low - room, high + room


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Choose round numbers between two values."""
    size = 10.0 ** np.floor(np.log10((high - low) / most))
    step = next(size * factor for factor in (1.0, 2.0, 5.0, 10.0, 20.0) if (high - low) / (size * factor) < most)
    places = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1)
    # Adding zero makes a negative zero positive.
    return [float(round(place * step, 12)) + 0.0 for place in places]


def chart(frame: Frame, marks: Sequence[str], x_label: str, y_label: str, description: str) -> str:
    """Put marks between axes."""
    bottom, left = frame.height - _BOTTOM, frame.left
    lines = [f'<path class="axis" d="M{left} {_TOP}V{bottom}H{frame.width - _RIGHT}"/>']
    for value in ticks(*frame.x_range):
        lines.append(f'<path class="axis" d="M{frame.x(value)} {bottom}v4"/>')
        lines.append(f'<text x="{frame.x(value)}" y="{bottom + 15}" text-anchor="middle">{tick_label(value)}</text>')
    for value in ticks(*frame.y_range):
        lines.append(f'<path class="grid" d="M{left} {frame.y(value)}H{frame.width - _RIGHT}"/>')
        lines.append(f'<text x="{left - 5}" y="{frame.y(value) + 4}" text-anchor="end">{tick_label(value)}</text>')
    middle = (left + frame.width - _RIGHT) / 2.0
    lines.append(f'<text x="{middle}" y="{frame.height - 6}" text-anchor="middle">{escape(x_label)}</text>')
    turn = f"translate(11 {(_TOP + bottom) / 2.0}) rotate(-90)"
    lines.append(f'<text transform="{turn}" text-anchor="middle">{escape(y_label)}</text>')
    return (
        f'<svg class="chart" viewBox="0 0 {frame.width:g} {frame.height:g}" role="img" '
        f'aria-label="{escape(description)}">{"".join(lines)}{"".join(marks)}</svg>'
    )


def figure(picture: str, caption: str) -> str:
    """Put words below a picture."""
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def line(frame: Frame, x: Sequence[float] | Array, y: Sequence[float] | Array, kind: str = "curve") -> str:
    """Join points by a line."""
    places = " ".join(f"{frame.x(a)},{frame.y(b)}" for a, b in zip(x, y, strict=True))
    return f'<polyline class="{kind}" points="{places}"/>'


def dots(frame: Frame, x: Sequence[float] | Array, y: Sequence[float] | Array) -> str:
    """Draw many small points as one element."""
    places = "".join(f"M{frame.x(a)} {frame.y(b)}h0" for a, b in zip(x, y, strict=True))
    return f'<path class="dots" d="{places}"/>'


def upright_intervals(frame: Frame, x: Sequence[float], y: Sequence[float], ends: Sequence[tuple[float, float]]) -> str:
    """Draw points with intervals that stand upright."""
    marks = []
    for a, b, (low, high) in zip(x, y, ends, strict=True):
        marks.append(f'<path class="interval" d="M{frame.x(a)} {frame.y(low)}V{frame.y(high)}"/>')
        marks.append(f'<circle class="point" cx="{frame.x(a)}" cy="{frame.y(b)}" r="3.5"/>')
    return "".join(marks)


def tick_label(value: float) -> str:
    """Write the number of a tick."""
    return f"{value:.6g}".replace("e+0", "e").replace("e-0", "e-").replace("-", "−")
