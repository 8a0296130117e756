"""The plots of the page of results, drawn by matplotlib, as SVG that stands in the page and takes its colours from it.

A plot's colours are names: matplotlib draws with a colour that nothing else has, and the SVG gets the page's variable
in its place (`--ours`), which is another one in the dark. Text stays text, in the page's font.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any
from zlib import crc32

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, NullLocator

from benchmarks.results import Spread, TargetResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, THEIRS, TARGET, TEXT, FAINT, LINE, GOOD, BAD = (f"#0102{number:02x}" for number in range(3, 11))
_VARIABLES = {
    OURS: "ours", THEIRS: "theirs", TARGET: "target",
    TEXT: "text", FAINT: "faint", LINE: "line", GOOD: "good", BAD: "bad",
}  # fmt: skip
OUR_NAME, THEIR_NAME = "pykbroker", "Apache Kafka"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pykbroker",
    "font.size": 9,
    "text.color": TEXT,
    "axes.edgecolor": LINE,
    "axes.labelcolor": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "legend.frameon": False,
    "path.simplify": False,
}
_WIDTH_IN = 11.0
_PX_PER_IN = 104
_BAR_IN = 0.46
_BARS_LEFT, _BARS_RIGHT = 0.28, 0.64
"""Where the bars are in the width: measure and figure stand left of them, numbers right of them."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure of a measure, as two bars. Either is None where it was not measured."""

    measure: str
    figure: str
    ours: Spread | None
    theirs: Spread | None
    target: TargetResult | None

    def bound(self) -> float | None:
        """The bound on our median that is met last, in the figure's unit; None without one."""
        if self.target is None:
            return None
        bounds = [self.target.absolute] if self.target.absolute is not None else []
        if self.target.ratio is not None and self.theirs is not None:
            bounds.append(self.target.ratio * self.theirs.median)
        return (max if self.target.higher else min)(bounds, default=None)


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure by what it depends on: what grew, or the percentage of a percentile."""

    figure: str
    ours: Mapping[float, Spread]
    theirs: Mapping[float, Spread]


def number(value: float) -> str:
    """Three digits of it, with separators where it is large."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def must_reach(target: TargetResult) -> str:
    sign = "≥" if target.higher else "≤"
    bounds = [number(target.absolute)] if target.absolute is not None else []
    bounds += [f"{number(target.ratio)} ×"] if target.ratio is not None else []
    return f"{sign} {', '.join(bounds)}"


def ratio(ours: Spread | None, theirs: Spread | None) -> str:
    """Of the medians; empty where it says nothing."""
    return f"{ours.median / theirs.median:.2f} ×" if ours and theirs and theirs.median else ""


def bars_svg(bars: Sequence[Bar], label: str) -> str:
    """Each row has two bars, on an axis of its own from 0 to the most that is in the row."""
    height = 0.5 + _BAR_IN * len(bars)
    with matplotlib.rc_context(_STYLE):
        figure, axes = _new_figure(_WIDTH_IN, height)
        figure.subplots_adjust(_BARS_LEFT, 0.1 / height, _BARS_RIGHT, 1 - 0.42 / height)
        axes.set(xlim=(0, 1), ylim=(len(bars) - 0.45, -0.55), xticks=[], yticks=[])
        axes.spines[["bottom", "left"]].set_visible(False)
        for row, bar in enumerate(bars):
            _draw_bar(axes, row, bar)
        for place, title in ((1.03, "median (least – most)"), (1.45, "ratio"), (1.62, "must reach")):
            axes.text(place, -0.75, title, color=FAINT, va="bottom")
        for place, (name, color) in enumerate(((OUR_NAME, OURS), (THEIR_NAME, THEIRS), ("must reach", TARGET))):
            axes.text(place * 0.32, -0.75, f"■ {name}", color=color, va="bottom")
        return _svg(figure, label)


def _draw_bar(axes: Axes, row: int, bar: Bar) -> None:
    bound = bar.bound()
    values = [each.most for each in (bar.ours, bar.theirs) if each is not None] + ([bound] if bound is not None else [])
    scale = max(values, default=0.0) or 1.0
    axes.text(-0.02, row - 0.17, bar.measure, ha="right", va="center")
    axes.text(-0.02, row + 0.2, bar.figure, ha="right", va="center", color=FAINT)
    for offset, each, color in ((-0.19, bar.ours, OURS), (0.19, bar.theirs, THEIRS)):
        if each is None:
            axes.text(1.03, row + offset, "not measured", color=FAINT, va="center")
            continue
        axes.barh(row + offset, max(each.median, 0.0) / scale, height=0.32, color=color)
        axes.hlines(row + offset, each.least / scale, each.most / scale, color=TEXT, linewidth=1.2)
        for end in (each.least, each.most):
            axes.vlines(end / scale, row + offset - 0.08, row + offset + 0.08, color=TEXT, linewidth=1.2)
        text = f"{number(each.median)}  ({number(each.least)} – {number(each.most)})"
        axes.text(1.03, row + offset, text, color=color, va="center")
    axes.text(1.45, row, ratio(bar.ours, bar.theirs), va="center", weight="bold")
    if bar.target is not None:
        if bound is not None:
            axes.vlines(bound / scale, row - 0.42, row + 0.42, color=TARGET, linewidth=2)
        color = GOOD if bar.target.verdict == "reached" else BAD
        axes.text(1.62, row - 0.17, must_reach(bar.target), va="center")
        axes.text(1.62, row + 0.2, bar.target.verdict, va="center", color=color)


def growth_svg(curves: Sequence[Curve], grows: str, label: str) -> str:
    """One plot for each figure, side by side, by what grows; both axes logarithmic. grows: what does."""
    with matplotlib.rc_context(_STYLE):
        figure, all_axes = _new_row(len(curves))
        for axes, curve in zip(all_axes, curves, strict=True):
            _draw_lines(axes, curve, curve.figure)
            points = sorted({*curve.ours, *curve.theirs})
            if points and points[0] > 0:
                axes.set_xscale("log")
                axes.set_xticks(points, [_short(point) for point in points])
                axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlabel(grows)
        return _svg(figure, label)


def percentiles_svg(curves: Sequence[Curve], label: str) -> str:
    """One plot for each latency, side by side: percentiles from left to right, a logarithmic time upwards."""
    with matplotlib.rc_context(_STYLE):
        figure, all_axes = _new_row(len(curves))
        for axes, curve in zip(all_axes, curves, strict=True):
            points = sorted({*curve.ours, *curve.theirs})
            places = {point: float(place) for place, point in enumerate(points)}
            placed = [{places[point]: each for point, each in side.items()} for side in (curve.ours, curve.theirs)]
            _draw_lines(axes, Curve(curve.figure, *placed), f"latency, {curve.figure}")
            axes.set_xticks(list(places.values()), [f"p{point:g}" for point in points])
            axes.set_xlim(-0.3, len(points) - 0.7)
        return _svg(figure, label)


def _draw_lines(axes: Axes, curve: Curve, title: str) -> None:
    for side, name, color in ((curve.ours, OUR_NAME, OURS), (curve.theirs, THEIR_NAME, THEIRS)):
        if not side:
            continue
        points = sorted(side)
        medians = [side[point].median for point in points]
        axes.plot(points, medians, color=color, marker="o", markersize=3.5, linewidth=1.6, label=name)
        for point in points:
            axes.vlines(point, side[point].least, side[point].most, color=color, linewidth=1)
    least = min((each.least for side in (curve.ours, curve.theirs) for each in side.values()), default=0.0)
    if least > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: number(value))
        axes.yaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(2, 0.5)))
    else:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.set_title(title, loc="left", fontsize=10, color=TEXT)
    axes.legend(loc="best", fontsize=8)


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10 * size or (value >= size and value % size == 0):
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _new_figure(width_in: float, height_in: float) -> tuple[Figure, Axes]:
    """Not by pyplot, which keeps figures and looks for a screen."""
    figure = Figure(figsize=(width_in, height_in))
    return figure, figure.add_subplot()


def _new_row(plots: int) -> tuple[Figure, list[Axes]]:
    """Plots beside each other, three to a row."""
    columns, rows = min(max(plots, 1), 3), -(-max(plots, 1) // 3)
    figure = Figure(figsize=(max(_WIDTH_IN * columns / 3, 5.0), 2.9 * rows), layout="constrained")
    return figure, [figure.add_subplot(rows, columns, place + 1) for place in range(plots)]


def _svg(figure: Figure, label: str) -> str:
    """The figure as an element of a page, without what says where formats are described, and with names of its own."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True)
    svg = file.getvalue()
    svg = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL
    )
    svg = re.sub(r'\sxmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'(id="|#)([mp][0-9a-f]{10})\b', rf"\g<1>{crc32(svg.encode()):x}-\2", svg)
    svg = re.sub(r"'DejaVu Sans'.*?sans-serif", "system-ui, sans-serif", svg)
    for color, name in _VARIABLES.items():
        svg = svg.replace(color, f"var(--{name})")
    viewbox = re.search(r'viewBox="[^"]*"', svg)
    assert viewbox is not None, "matplotlib gives its figures a size"
    width_px = figure.get_figwidth() * _PX_PER_IN
    head = f'<svg class="plot" role="img" aria-label="{escape(label)}" style="max-width: {width_px:.0f}px" '
    return f"{head}{viewbox[0]}{svg[svg.index('>') :]}"
