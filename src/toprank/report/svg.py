"""Axes and marks of the figures as SVG; colours and widths are left to the style sheet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from toprank.plots._style import log_ticks
from toprank.ranking.tie_runs import Floats
from toprank.report.numbers_as_text import count, round_percent, superscript

WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 340, 24, 208
# Where the smallest positive value of an axis with zero lies; zero itself is at its near end.
AFTER_ZERO = 0.07


@dataclass(frozen=True)
class Axis:
    """A scale from values to places in [0, 1], with its ticks.

    "log0" is logarithmic from `low` on and has the zero at its near end: between them there is no value.
    """

    kind: Literal["linear", "log", "log0"]
    low: float
    high: float
    label: str
    ticks: list[tuple[float, str]]

    def place(self, values: ArrayLike) -> Floats:
        """Places of values on the axis."""
        values = np.asarray(values, dtype=np.float64)
        if self.kind == "linear":
            return np.asarray((values - self.low) / (self.high - self.low))
        place = np.log(np.maximum(values, self.low) / self.low) / np.log(self.high / self.low)
        if self.kind == "log":
            return np.asarray(place)
        return np.where(values > 0, AFTER_ZERO + (1 - AFTER_ZERO) * place, 0.0)


@dataclass
class Figure:
    """A plane with two axes on which marks are drawn; `name` tells the page what to mark on it.

    It is about `n_lists` lists from number `first_list` on; the page moves a mark for each.
    """

    name: str
    title: str
    description: str
    x: Axis
    y: Axis
    marks: list[str] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)
    n_lists: int = 1
    first_list: int = 0

    def points(self, x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """Places of points on the page."""
        return LEFT + (RIGHT - LEFT) * self.x.place(x), BOTTOM - (BOTTOM - TOP) * self.y.place(y)

    def line(self, kind: str, x: ArrayLike, y: ArrayLike, label: str = "") -> None:
        """A line through points."""
        self._path(kind, _joined(*self.points(x, y)), label)

    def steps(self, kind: str, x: ArrayLike, y: ArrayLike, label: str = "") -> None:
        """A line that goes right and then up or down at each point."""
        across, down = self.points(x, y)
        moves = (f"H{_short(a)}V{_short(d)}" for a, d in zip(across[1:], down[1:], strict=True))
        self._path(kind, f"M{_short(across[0])},{_short(down[0])}{''.join(moves)}", label)

    def area(self, kind: str, x: ArrayLike, lower: ArrayLike, upper: ArrayLike, label: str = "") -> None:
        """What lies between two lines."""
        x = np.asarray(x)
        there = _joined(*self.points(x, upper))
        back = _joined(*self.points(x[::-1], np.asarray(lower)[::-1]))
        self._path(kind, f"{there}L{back[1:]}Z", label)

    def bars(self, kind: str, edges: Floats, heights: Floats, label: str = "") -> None:
        """A histogram as one outline."""
        x = np.repeat(edges, 2)
        self.area(kind, x, np.zeros(len(x)), np.concatenate([[0.0], np.repeat(heights, 2), [0.0]]), label)

    def _path(self, kind: str, d: str, label: str) -> None:
        self.marks.append(f'<path class="{kind}" d="{d}"/>')
        if label:
            self.legend.append((kind, label))

    @property
    def scales(self) -> dict[str, Any]:
        """What the page needs to find a place: kind and ends of both axes."""
        return {
            name: {"kind": axis.kind, "low": axis.low, "high": axis.high}
            for name, axis in (("x", self.x), ("y", self.y))
        }

    def render(self) -> str:
        """The figure as an svg element, with a group of marks that the page moves."""
        return (
            f'<svg id="figure-{self.name}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(self.title)}. {escape(self.description)}">'
            f"{self._grid()}{''.join(self.marks)}"
            f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}"/>'
            f"{self._markers()}</svg>"
        )

    def _markers(self) -> str:
        only = " only" if self.n_lists == 1 else ""
        return "".join(
            f'<g class="marker list-{i}{only}" hidden=""><line class="guide across"/><line class="guide down"/>'
            f'<circle class="halo" r="6.5"/><circle class="dot" r="4"/></g>'
            for i in range(self.first_list, self.first_list + self.n_lists)
        )

    def _grid(self) -> str:
        parts = []
        for value, text in self.x.ticks:
            x = _short(float(self.points(value, self.y.low)[0]))
            parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{BOTTOM}"/>')
            parts.append(f'<text class="tick middle" x="{x}" y="{BOTTOM + 15}">{escape(text)}</text>')
        for value, text in self.y.ticks:
            y = float(self.points(self.x.low, value)[1])
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{_short(y)}" y2="{_short(y)}"/>')
            parts.append(f'<text class="tick end" x="{LEFT - 5}" y="{_short(y + 4)}">{escape(text)}</text>')
        middle = (LEFT + RIGHT) / 2
        parts.append(f'<text class="label middle" x="{middle}" y="{HEIGHT - 8}">{escape(self.x.label)}</text>')
        parts.append(f'<text class="label" x="4" y="{TOP - 11}">{escape(self.y.label)}</text>')
        return "".join(parts)


def share_axis(label: str, high: float = 1.0) -> Axis:
    """Shares from zero on, in percent."""
    return Axis("linear", 0.0, high, label, [(tick, round_percent(tick)) for tick in linear_ticks(0.0, high)])


def rate_axis(label: str, smallest: float) -> Axis:
    """Rates from the smallest positive one to 1 on a logarithmic axis that has the zero."""
    smallest = min(smallest, 0.1)
    ticks = [tick for tick in log_ticks(smallest, 1.0) if tick >= 2 * smallest]
    return Axis("log0", smallest, 1.0, label, [(0.0, "0"), *((tick, round_percent(tick)) for tick in ticks)])


def count_axis(label: str, total: float) -> Axis:
    """Numbers of rows from 1 on, logarithmic."""
    total = max(total, 2.0)
    return Axis("log", 1.0, total, label, [(tick, count(tick)) for tick in log_ticks(1.0, total) if tick >= 1])


def log_axis(label: str, low: float, high: float) -> Axis:
    """Powers of ten that hold both ends."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    last = max(last, first + 1)
    step = max(1, -(-(last - first) // 6))
    ticks = [(10.0**exponent, f"10{superscript(exponent)}") for exponent in range(last, first - 1, -step)]
    return Axis("log", 10.0**first, 10.0**last, label, ticks)


def linear_axis(label: str, low: float, high: float, text: Callable[[float], str]) -> Axis:
    """A plain axis between two values."""
    return Axis("linear", low, high, label, [(tick, text(tick)) for tick in linear_ticks(low, high)])


def linear_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two values, at most about six."""
    rough = (high - low) / most
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    digits = max(0, 2 - int(np.floor(np.log10(step))))
    return [round(float(tick * step), digits) + 0.0 for tick in np.arange(first, last + 1)]


def _joined(x: Floats, y: Floats) -> str:
    return "M" + "L".join(f"{_short(a)},{_short(b)}" for a, b in zip(x, y, strict=True))


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
