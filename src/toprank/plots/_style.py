"""How the displays look: colours, line styles, axes, legend. matplotlib is imported on first use."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

# The palette of Okabe and Ito. No display relies on colour alone: dashes and markers, or hatches, differ too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES: tuple[Any, ...] = (
    "solid",
    (0, (5, 2)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (1, 1)),
    (0, (8, 2, 1, 2, 1, 2)),
    (0, (3, 1)),
    (0, (10, 3)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Bands lie over each other, so each has the edges and, but for the first, the hatch of its own.
HATCHES = (None, "//", "\\\\", "..", "||", "--", "++")
GREY = "#666666"
# By their gids, curves already on the axes are counted, and lines for reference are drawn once.
CURVE, REFERENCE = "toprank curve", "toprank reference"


def new_axes(caller: str, ax: Any) -> tuple[Any, Any]:
    """The axes to draw on and their figure; without axes, those of a new figure that pyplot does not know of."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(f"{caller}.plot needs matplotlib; install it by: pip install 'toprank[plot]'")
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(layout="constrained").add_subplot()
    return ax, ax.figure


def curves_on(ax: Any) -> list[Any]:
    """The lines of displays that are on the axes."""
    return [line for line in ax.get_lines() if line.get_gid() == CURVE]


def line_style(ax: Any) -> dict[str, Any]:
    """Colour, dashes and marker that no curve on the axes has yet, for the first seven."""
    number = len(curves_on(ax))
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4,
        "markevery": (0.05 + 0.03 * (number % 4), 0.25),
        "linewidth": 1.5,
        "gid": CURVE,
    }


def band_style(ax: Any, colour: Any) -> dict[str, Any]:
    """How the band of the curve that was drawn last looks: little colour, so that what is below is seen, and edges."""
    from matplotlib.colors import to_rgba

    number = len(curves_on(ax)) - 1
    return {
        "facecolor": to_rgba(colour, 0.16 if number == 0 else 0.07),
        "edgecolor": to_rgba(colour, 0.6 if number == 0 else 0.4),
        "linestyle": DASHES[number % len(DASHES)],
        "hatch": HATCHES[number % len(HATCHES)],
        "linewidth": 0.7,
        "gid": REFERENCE,
    }


def with_user_style(defaults: dict[str, Any], given: dict[str, Any] | None) -> dict[str, Any]:
    """Defaults overridden by what the user gave, under whatever alias matplotlib allows; a gid is ours."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return {**defaults, **normalize_kwargs(given or {}, Line2D), "gid": defaults.get("gid")}


def logarithmic_from_zero(axis: Any, smallest: float, largest: float = 1.0) -> None:
    """Make an axis of rates logarithmic from the smallest positive rate on, with 0 at its near end.

    No rate lies between 0 and the smallest positive one, so the short linear piece that joins them hides nothing. On
    axes that already have such a scale, the smaller of both limits holds.
    """
    smallest = max(smallest, 1e-12)
    if axis.get_scale() == "symlog":
        smallest = min(smallest, axis.get_transform().linthresh)
    set_scale = getattr(axis.axes, f"set_{axis.axis_name}scale")
    set_scale("symlog", linthresh=smallest, linscale=0.4)
    getattr(axis.axes, f"set_{axis.axis_name}lim")(-0.15 * smallest, largest / smallest**0.015)
    set_log_ticks(axis, smallest, largest, zero=True)


def set_log_ticks(axis: Any, low: float, high: float, *, zero: bool = False) -> None:
    """Set labelled ticks, and unlabelled ones at the multiples of powers of ten where there are few powers."""
    ticks = ([0.0] if zero else []) + log_ticks(low, high)
    axis.set_ticks(ticks, tick_labels(ticks))
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))))
    minor = [m * 10.0**e for e in powers for m in range(2, 10)] if len(powers) <= 6 else []
    axis.set_ticks([tick for tick in minor if low <= tick <= high], minor=True)
    axis.set_ticklabels([], minor=True)


def reference(
    ax: Any, x: ArrayLike, y: ArrayLike, what: str, *, label: str | None = None, dashed: bool = False
) -> None:
    """A thin grey line that is drawn once for the axes; `what` names it."""
    gid = f"{REFERENCE} {what}"
    if not any(line.get_gid() == gid for line in ax.get_lines()):
        dashes = (0, (4, 2)) if dashed else (0, (1, 2))
        ax.plot(x, y, color=GREY, linewidth=1, linestyle=dashes, gid=gid, label=label, zorder=1.5)


def with_name(label: str, name: str | None) -> str:
    """An axis label that says whose score it is."""
    return label if name is None else f"{label} of {name}"


def log_ticks(low: float, high: float) -> list[float]:
    """At most about six ticks: powers of ten, or 1, 2 and 5 times them on a short axis."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    short = high / low < 100
    step = max(1, -(-(last - first) // 6))
    ticks = [
        m * 10.0**e for e in range(last, first - 1, -1 if short else -step) for m in ((1, 2, 5) if short else (1,))
    ]
    return sorted(tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9))


def tick_labels(ticks: list[float]) -> list[str]:
    """Plain numbers where all are short, else powers of ten."""
    if all(tick == 0 or 1e-3 <= tick < 1e4 for tick in ticks):
        return [f"{tick:g}" for tick in ticks]
    return ["0" if tick == 0 else _power(tick) for tick in ticks]


def _power(value: float) -> str:
    exponent = int(np.floor(np.log10(value) + 1e-9))
    factor = round(value / 10.0**exponent)
    return f"$10^{{{exponent}}}$" if factor == 1 else f"${factor}\\cdot10^{{{exponent}}}$"


def add_legend(ax: Any, legend: str | None) -> None:
    """Draw the legend: "auto", "above" the axes, inside at a location of matplotlib, or not at all for None."""
    handles, labels = ax.get_legend_handles_labels()
    if legend is None or not handles:
        return
    # what the user has drawn may be a container, which has no gid
    is_reference = [str(getattr(handle, "get_gid", str)()).startswith(REFERENCE) for handle in handles]
    order = np.argsort(is_reference, kind="stable")  # models first
    handles, labels = [handles[i] for i in order], [labels[i] for i in order]
    common = {"fontsize": "small", "borderpad": 0.3, "handlelength": 2.4, "labelspacing": 0.3}
    if legend == "auto":
        legend = "above" if makes_room(ax.figure) else "best"
    if legend == "above":
        anchor = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "frameon": False, "columnspacing": 1.0}
        ax.legend(handles, labels, ncols=_columns(ax, labels), **anchor, **common)
    else:
        ax.legend(handles, labels, loc=legend, framealpha=0.85, **common)


def _columns(ax: Any, labels: list[str]) -> int:
    """How many columns of labels fit above the axes, by an estimate of 0.065 inches a letter and 0.5 for the line."""
    longest = max(len(line) for label in labels for line in label.splitlines())
    width = ax.get_position().width * ax.figure.figure.get_size_inches()[0]
    return max(1, min(3, int(width / (0.065 * longest + 0.5))))


def makes_room(figure: Any) -> bool:
    """Whether the layout of the figure makes room for what is outside the axes."""
    engine = figure.figure.get_layout_engine()  # that of the whole figure, if this one is a part of it
    return engine is not None and engine.adjust_compatible is False
