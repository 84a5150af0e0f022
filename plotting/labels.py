"""Labels beside points of a figure: requested ones and those of extreme points, without overlaps.

Positions are computed here rather than by the browser, so that they are the same in each format of a figure. The
plot is assumed to be as small as the legend may make it. All positions are in axis coordinates: in a larger
drawing, labels only move apart.
"""

from __future__ import annotations

import fnmatch
import html
import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.plotting.page import scaled

log = logging.getLogger("testbed")

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Box = tuple[float, float, float, float]  # left, top, right, bottom, in pixels

FEW, OUTLYING = 12, 4  # up to FEW points are all labelled; of more, OUTLYING on each side of the line
MOST_CHARACTERS = 40
# Pixels: font size, height of a label with its margin, radius of a point with its margin.
SIZE, HEIGHT, RADIUS = 11, 17, 6
# Widths in Helvetica and Arial relative to the font size, slightly rounded up; USUAL for other letters.
WIDTHS = {"'ijl|": 0.28, ' !,./:;I[\\]ft()-`r{}"': 0.36, "&ABCDEHKNPRSUVXYw": 0.76, "GOQMmW%@": 1.03}
USUAL, BOLD = 0.61, 1.08
GAPS = (3, 12, 26, 44)  # pixels between a point and its label, nearest first
FURTHER = (66, 92, 124, 162, 208, 264, 330)  # the last five only for requested labels
SIDES = (  # error bars are beside points
    *((1, -1), (-1, -1), (1, 1), (-1, 1), (0, -1), (0, 1), (1, 0), (-1, 0)),
    *((1, -0.5), (-1, -0.5), (1, 0.5), (-1, 0.5), (0.5, -1), (-0.5, -1), (0.5, 1), (-0.5, 1)),
)
LINED = 5  # a label farther than this from its point gets a line to it; in a larger drawing it is farther still
LINE_STEP = 6  # pixels between the points that represent a line
LEGEND_ROW, LEGEND_TEXT, LEGEND_MARK = 22, 14, 46  # pixels of the legend: row height, font size, space beside a text


def add_names(
    figure: Figure,
    x: Any,
    y: Any,
    names: Sequence[str],
    over: Any = None,
    pinned: Sequence[str] = (),
    first: Sequence[int] | Array = (),
    number: int = 1,
) -> None:
    """Writes labels beside points of a finished figure, whose axis ranges are set.

    Args:
        figure: The figure.
        x: Positions [n] of all points on the axis; logarithms on a logarithmic axis.
        y: Positions [n], likewise.
        names: Labels of the points [n].
        over: Distance of each point above a line [n]; None: there is no line.
        pinned: Names or patterns of points that are always labelled.
        first: Points to label before the extreme ones.
        number: Number of the panel.
    """
    panel = _Panel(figure, number)
    x, y = np.asarray(x, float), np.asarray(y, float)
    points = panel.pixels(x, y)
    there: Array = np.asarray(np.isfinite(points).all(axis=1))
    asked = {place for place, name in enumerate(names) if there[place] and _is_asked(name, pinned)}
    order = list(dict.fromkeys([*sorted(asked), *map(int, first), *extremes(x, y, over, there)]))
    texts = {place: _short(names[place]) for place in order}
    sizes = {place: (text_width(text, place in asked), HEIGHT) for place, text in texts.items()}
    found = places(points, panel.lines(), order, sizes, asked, panel.size)
    if left := [names[place] for place in sorted(asked - found.keys())]:
        log.warning("no room in a figure for the labels of %s", ", ".join(left))
    for place, centre in found.items():
        width, height = sizes[place]
        across, down = abs(np.asarray(centre) - points[place]) - (width / 2, height / 2)
        text = html.escape(texts[place], quote=False)
        ax, ay = panel.on_axes(centre)
        figure.add_annotation(
            x=x[place],
            y=y[place],
            ax=ax,
            ay=ay,
            **dict.fromkeys(("xref", "axref"), panel.axes[0]),
            **dict.fromkeys(("yref", "ayref"), panel.axes[1]),
            text=f"<b>{text}</b>" if place in asked else text,
            font={"size": scaled(SIZE), "color": "black" if place in asked else "#444444"},
            arrowhead=0,
            arrowwidth=scaled(0.8),
            arrowcolor="#888888" if max(across, down) > LINED else "rgba(0, 0, 0, 0)",
            standoff=scaled(RADIUS - 1),
            borderpad=0,
        )


def extremes(x: Any, y: Any, over: Any, there: Any) -> list[int]:
    """Selects the points to label if there is room: all of a few; of many the highest, the lowest and outliers.

    The web page selects the same. The most important points come first.
    """
    index = np.flatnonzero(there)

    def by(values: Any) -> list[int]:
        return [int(position) for position in index[np.argsort(-np.asarray(values, float)[index], kind="stable")]]

    highest = by(y)
    if len(index) <= FEW:
        return highest
    farthest = by(x)
    outlying = [] if over is None or not np.isfinite(np.asarray(over, float)[index]).any() else by(over)
    ends = [highest[0], farthest[0], *outlying[:1], *outlying[-1:], highest[-1]]
    return list(dict.fromkeys([*ends, *outlying[1:OUTLYING], *outlying[1 - OUTLYING : -1]]))


def places(
    points: Array,
    drawn: Array,
    order: Sequence[int],
    sizes: Mapping[int, tuple[float, float]],
    asked: Collection[int],
    area: tuple[float, float],
) -> dict[int, tuple[float, float]]:
    """Places labels: never over another label, a point or a line, and never outside.

    Args:
        points: All points [n, 2] in pixels; NaN if not in the figure.
        drawn: Points [m, 2] along lines.
        order: The points to label, the most important first.
        sizes: The width and height of each label.
        asked: The points whose labels may be farther away or, as a last resort, over lines or points.
        area: The width and height of the plot.

    Returns:
        Point → the centre of its label, for those that fit.
    """
    visible = points[np.isfinite(points).all(axis=1)]
    boxes: list[Box] = []
    lines: list[Array] = []
    found: dict[int, tuple[float, float]] = {}
    for place in order:
        far = (*GAPS, *FURTHER)
        tries: list[tuple[Sequence[float], Array, list[Array]]] = [((*GAPS, *FURTHER[:2]), visible, [drawn])]
        if place in asked:
            tries += [(far, visible, [drawn]), (far, visible, []), (far, visible[:0], [])]
        for some, obstacles, avoided in tries:
            free = (
                (centre, box, line)
                for centre, box, line in _candidates(points[place], sizes[place], some)
                if _is_free(box, line, boxes, [*lines, *avoided], obstacles, area)
            )
            if (chosen := next(free, None)) is not None:
                found[place], box, line = chosen
                boxes.append(box)
                lines.append(line)
                break
    return found


def text_width(text: str, bold: bool = False, size: float = SIZE) -> float:
    """Estimates the width of a text in pixels, rounded up."""
    ems = sum(next((width for letters, width in WIDTHS.items() if letter in letters), USUAL) for letter in text)
    return ems * size * (BOLD if bold else 1) + 4


def _candidates(
    point: Array, size: tuple[float, float], gaps: Sequence[float]
) -> Iterator[tuple[tuple[float, float], Box, Array]]:
    width, height = size
    for gap in gaps:
        for across, down in SIDES:
            away = (RADIUS + gap) * (0.7 if across and down else 1)
            x = float(point[0]) + across * (away + width / 2)
            y = float(point[1]) + down * (away + height / 2)
            end = np.array([x - across * width / 2, y - down * height / 2])
            line = point + (end - point) * np.linspace(0, 1, max(2, int(gap / 4)))[:, None]
            yield (x, y), (x - width / 2, y - height / 2, x + width / 2, y + height / 2), line


def _is_free(
    box: Box, line: Array, boxes: Sequence[Box], lines: Sequence[Array], points: Array, area: tuple[float, float]
) -> bool:
    if box[0] < 0 or box[1] < 0 or box[2] > area[0] or box[3] > area[1]:
        return False
    if any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in boxes):
        return False
    if any(_holds(placed, line, 0) for placed in boxes) or any(_holds(box, placed, 1) for placed in lines):
        return False
    return not _holds(box, points, RADIUS - 1)


def _holds(box: Box, points: Array, margin: float) -> bool:
    x, y = points[:, 0], points[:, 1]
    across = (x > box[0] - margin) & (x < box[2] + margin)
    return bool((across & (y > box[1] - margin) & (y < box[3] + margin)).any())


def _is_asked(name: str, pinned: Sequence[str]) -> bool:
    return any(name == text or fnmatch.fnmatchcase(name, text) for text in pinned)


def _short(name: str) -> str:
    half = MOST_CHARACTERS // 2
    return name if len(name) <= MOST_CHARACTERS else f"{name[: half - 1]}…{name[-half:]}"


class _Panel:
    """A panel of a figure at its smallest possible size, in pixels of a screen: in print everything is smaller.

    Args:
        figure: The figure.
        number: From 1.
    """

    def __init__(self, figure: Figure, number: int) -> None:
        suffix = "" if number == 1 else str(number)
        self.axes = f"x{suffix}", f"y{suffix}"
        self._figure = figure
        x, y = figure.layout[f"xaxis{suffix}"], figure.layout[f"yaxis{suffix}"]
        self._logarithmic = x.type == "log"
        (low, high), margin = x.domain or (0, 1), figure.layout.margin
        across = (figure.layout.width - margin.l - margin.r) * (high - low)
        bottom, top = y.domain or (0, 1)
        self.size = across / scaled(1.0), _least_height(figure) * (top - bottom) / scaled(1.0)
        self._begin = np.array([x.range[0], y.range[1]])  # at the left and at the top
        self._per_pixel = (np.array([x.range[1], y.range[0]]) - self._begin) / self.size

    def pixels(self, x: Any, y: Any) -> Array:
        """Positions on the axes in pixels, [n, 2]."""
        return np.asarray((np.column_stack([x, y]) - self._begin) / self._per_pixel)

    def on_axes(self, pixels: tuple[float, float]) -> tuple[float, float]:
        """The inverse of `pixels`."""
        x, y = self._begin + np.asarray(pixels) * self._per_pixel
        return float(x), float(y)

    def lines(self) -> Array:
        """Points along the lines that are drawn [n, 2]."""
        found = [np.empty((0, 2))]
        for trace in self._figure.data:
            if trace.mode == "lines" and not trace.fill and (trace.xaxis or "x") == self.axes[0]:
                x, y = np.asarray(trace.x, float), np.asarray(trace.y, float)
                if trace.line.shape == "hv":
                    x, y = np.append(np.repeat(x, 2)[1:], x[-1:]), np.repeat(y, 2)
                ends = self.pixels(np.log10(x) if self._logarithmic else x, y)
                for one, other in pairwise(ends):
                    steps = max(2, int(np.hypot(*(other - one)) / LINE_STEP))
                    found.append(one + (other - one) * np.linspace(0, 1, steps)[:, None])
        return np.concatenate(found)


def _least_height(figure: Figure) -> float:
    """The height of the plot with as many legend rows as possible; only plotly knows the actual number."""
    layout = figure.layout
    widths, rows = [], 0
    for name in dict.fromkeys(trace.name for trace in figure.data if trace.name and trace.showlegend is not False):
        parts = name.split("<br>")
        rows = max(rows, len(parts))
        widths.append(scaled(LEGEND_MARK + max(text_width(part, size=LEGEND_TEXT) for part in parts)))
    room = layout.width - layout.margin.l - layout.margin.r
    in_row = max(1, int(room / max(widths, default=1)))
    legend = scaled(LEGEND_ROW) * rows * math.ceil(len(widths) / in_row)
    below = abs(layout.legend.y or 0)
    return float(max(scaled(120.0), (layout.height - layout.margin.t - legend - scaled(20)) / (1 + below)))
