"""The style of figures: model types by colours that colour-blind readers can distinguish (Okabe & Ito 2008) and
by symbols that survive grey print, and axes on transformed scales with ticks in percent.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from testbed.plotting.page import TEXT, pixels, printing, scaled
from testbed.plotting.stats import transform
from testbed.registry.table import natural_key

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

STANDARD = "Standard training"
MORE_DATA = "Trained with more data"
ONLY_IMAGENET = "ImageNet-1k only"  # according to names, if no type is declared
MERGED_TYPE = "Robustness intervention"
INTERVENTION_TYPES = ("Lp adversarially robust", "Other robustness intervention")
TYPES: dict[str, tuple[str, str]] = {
    STANDARD: ("#0072B2", "circle"),
    ONLY_IMAGENET: ("#3B5BA5", "triangle-down"),
    MORE_DATA: ("#009E73", "square"),
    MERGED_TYPE: ("#E69F00", "diamond"),
    "Other robustness intervention": ("#E69F00", "diamond"),
    "Lp adversarially robust": ("#CC79A7", "triangle-up"),
    "Low Accuracy CNN": ("#56B4E9", "cross"),
    "Random Features": ("#000000", "x"),
    "Linear Classifier on Pixels": ("#8C6D31", "star"),
    "Random Forests": ("#D55E00", "pentagon"),
    "Nearest Neighbors": ("#666666", "hexagon"),
}
# For unforeseen types, in turn.
OTHER_COLOURS = ("#7F3C8D", "#11A579", "#3969AC", "#E73F74", "#80BA5A", "#666666")
OTHER_SYMBOLS = ("star", "hexagram", "bowtie", "star-diamond", "star-square", "hourglass")
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
TITLE, LEGEND_TEXT = 17, 14  # pixels on a screen
LEGEND_ROW, LEGEND_ALLOWANCE = 23, 100  # the same; the second is in the height of every figure
USUAL_LETTER = 0.54  # of its size, the width of a letter
TICKS_MOST = 9
TICKS_ENOUGH = 5
TICKS_GAP = 2.5  # ninths of an axis without a tick, at most
TICK_DECADES = tuple(
    end
    for percent in (50, 10, 1, 0.1, 0.01, 20, 5, 2, 0.5, 0.2, 30, 40)
    for end in dict.fromkeys((percent, 100 - percent))
)
TICK_STEPS = (50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


def type_order(model_type: str) -> tuple[Any, ...]:
    """The sort key of types: as in `TYPES`, then others by name."""
    known = list(TYPES)
    return (known.index(model_type) if model_type in TYPES else len(known), natural_key(model_type))


def faint(colour: str, alpha: float) -> str:
    """Makes a colour ``#rrggbb`` transparent."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha})"


class Mark(NamedTuple):
    """The mark of a model, and what it stands for."""

    group: str
    colour: str
    kind: str
    symbol: str


def type_styles(model_types: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour, symbol and size of the points of each type of a figure, in the order of the legend."""
    styles: dict[str, dict[str, Any]] = {}
    others = 0
    for name in sorted(set(model_types), key=type_order):
        if name in TYPES:
            (colour, symbol), size = TYPES[name], 9
        else:
            colour, symbol = OTHER_COLOURS[others % len(OTHER_COLOURS)], OTHER_SYMBOLS[others % len(OTHER_SYMBOLS)]
            others, size = others + 1, 13
        styles[name] = {
            "color": colour,
            "symbol": symbol,
            "size": size,
            "opacity": 0.8,
            "line": {"width": 0.5, "color": "white"},
        }
    return styles


def add_points(
    figure: Figure,
    model_types: Any,
    x: Any,
    y: Any,
    hover: Sequence[Any],
    template: str,
    place: dict[str, int] | None = None,
    shown: Collection[str] = (),
    marks: Sequence[Mark] | None = None,
    bars: Callable[[Any, str], dict[str, Any]] | None = None,
) -> None:
    """Draws a point for each model, with a trace for each type or for each group of models that share a colour.

    Args:
        figure: The figure.
        model_types: The type of each of n models.
        x: Positions [n].
        y: Positions [n].
        hover: Values for the template, per model.
        template: Hover text of a point, in plotly's format.
        place: Row and column of a panel.
        shown: Types that are already in the legend.
        marks: The mark of each model; None: by type.
        bars: Function from the positions of models and their colour to plotly's error bars.
    """
    import plotly.graph_objects as go

    types, x, y = np.asarray(model_types, dtype=object), np.asarray(x), np.asarray(y)
    for name, index, style in _by_type(types) if marks is None else _by_group(marks):
        figure.add_trace(
            go.Scatter(
                x=x[index],
                y=y[index],
                mode="markers",
                name=name,
                legendgroup=name,
                showlegend=name not in shown,
                marker=style,
                customdata=[hover[position] for position in index.tolist()],
                hovertemplate=template,
                **(bars(index, style["color"]) if bars else {}),
            ),
            **(place or {}),
        )
    kinds = {} if marks is None else {mark.kind: mark.symbol for mark in marks}
    for kind, symbol in kinds.items() if len(kinds) > 1 else ():  # the legend explains the symbols
        style = {"color": "rgba(0, 0, 0, 0)", "symbol": symbol, "size": 9, "line": {"width": 1.5, "color": "#555555"}}
        figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=kind, marker=style), **(place or {}))


_Series = tuple[str, Any, dict[str, Any]]  # legend entry, models, and their marker


def _by_type(types: Any) -> Iterator[_Series]:
    for name, style in type_styles(types).items():
        yield name, np.flatnonzero(types == name), style


def _by_group(marks: Sequence[Mark]) -> Iterator[_Series]:
    sizes = Counter(mark.group for mark in marks)
    for group, _ in sizes.most_common():
        index = np.flatnonzero([mark.group == group for mark in marks])
        symbols = [marks[position].symbol for position in index.tolist()]
        edge = {"width": 0.5, "color": "white"}
        yield (
            group,
            index,
            {"color": marks[index[0]].colour, "symbol": symbols, "size": 9, "opacity": 0.8, "line": edge},
        )


def finish(figure: Figure, title: str, width: int = 900, height: int = 640) -> None:
    """Sets fonts, background, legend and size, the same for all figures."""
    figure.update_layout(
        template="simple_white",
        title={"text": title, "x": 0.5, "xanchor": "center", "font": {"size": scaled(20)}},
        font={"family": FONT, "size": scaled(TEXT)},
        legend={
            **{"orientation": "h", "yanchor": "top", "y": -0.16, "xanchor": "center", "x": 0.5},
            "font": {"size": scaled(LEGEND_TEXT)},
        },
        margin=margins(80, 30, 60, 60),
        width=pixels(width),
        height=scaled(height),
        hoverlabel={"font": {"size": 13}},
    )
    figure.update_xaxes(showgrid=True, gridcolor="#E5E5E5")
    figure.update_yaxes(showgrid=True, gridcolor="#E5E5E5")
    if printing():
        _fit(figure)


def _fit(figure: Figure) -> None:
    """Titles of more lines and a legend below all, for a page that is narrow for the letters."""
    layout = figure.layout
    names = dict.fromkeys(each.name for each in figure.data if each.name and each.showlegend is not False)
    legend = _legend_height(names) if names and layout.showlegend is not False else 0.0
    title, title_lines = _wrapped(layout.title.text, layout.width, scaled(TITLE))
    plot = layout.height - layout.margin.t - layout.margin.b - scaled(LEGEND_ALLOWANCE)
    for axis in figure.select_xaxes():
        first, last = axis.domain or (0, 1)
        axis.title.text = _wrapped(axis.title.text, (layout.width - layout.margin.l) * (last - first), scaled(TEXT))[0]
    for axis in figure.select_yaxes():
        first, last = axis.domain or (0, 1)
        axis.title.text = _wrapped(axis.title.text, plot * (last - first), scaled(TEXT))[0]
    top, bottom = scaled(TITLE) * 1.3 * (title_lines - 1), legend
    height = layout.height + top + bottom - (scaled(LEGEND_ALLOWANCE) if legend else 0)
    figure.update_layout(
        title={"text": title, "font": {"size": scaled(TITLE)}, "y": 1 - scaled(TITLE) / height, "yanchor": "top"},
        legend={
            "orientation": "v",
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
            "tracegroupgap": 0,
            "maxheight": 1,
        },
        margin={"t": layout.margin.t + top, "b": layout.margin.b + bottom},
        height=height,
    )


def resize(figure: Figure, height: float) -> None:
    """Changes the height of a finished figure; in print its title stays at the same distance from the top."""
    below = None if figure.layout.title.y is None else (1 - figure.layout.title.y) * figure.layout.height
    figure.update_layout(height=height, title={"y": None if below is None else 1 - below / height})


def _legend_height(names: Iterable[str]) -> float:
    """The height of a legend of one entry above another, whose rows plotly makes no lower than a mark."""
    lines = [name.count("<br>") + 1 for name in names]
    return sum(max(16.0, 1.3 * scaled(LEGEND_TEXT) * number) + 3 for number in lines) + 10


def _wrapped(text: str | None, room: float, size: float) -> tuple[str | None, int]:
    """A title in as many lines as it takes, and their number."""
    if not text:
        return text, 1
    most = max(8, int(room / (size * USUAL_LETTER)))
    lines = [line for part in text.split("<br>") for line in textwrap.wrap(part, most, break_long_words=False) or [""]]
    return "<br>".join(lines), len(lines)


def margins(left: float, right: float, top: float, bottom: float) -> dict[str, float]:
    """Margins around a plot, from their pixels on a screen."""
    return {"l": scaled(left), "r": scaled(right), "t": scaled(top), "b": scaled(bottom)}


def percent_axis(
    figure: Figure, axis: str, limits: tuple[float, float], scale: str, label: str, place: dict[str, Any]
) -> None:
    """Draws an axis of transformed accuracies with ticks in percent.

    Args:
        figure: The figure.
        axis: ``"x"`` or ``"y"``.
        limits: Range on the transformed scale.
        scale: The transform.
        label: Label of the axis.
        place: Row and column of the panel.
    """
    first, last = next(figure.select_xaxes(**place)).domain or (0, 1)
    ticks = percent_ticks(limits, scale, most_ticks(0.45 if last - first < 1 else 0.8))
    update = figure.update_xaxes if axis == "x" else figure.update_yaxes
    update(
        title_text=label,
        range=list(limits),
        tickvals=list(transform([tick / 100 for tick in ticks], scale)),
        ticktext=[f"{tick:g}" for tick in ticks],
        zeroline=False,
        **place,
    )


def most_ticks(share: float) -> int:
    """Returns the maximum number of ticks of an axis that takes a share of the width of a page."""
    return max(3, min(TICKS_MOST, int(pixels(900) * share / scaled(4 * TEXT)))) if printing() else TICKS_MOST


def percent_ticks(limits: tuple[float, float], scale: str, most: int = TICKS_MOST) -> list[float]:
    """Chooses round percentages between two points of a scale, none nearer than the range divided by ``most``.

    Uses the multiples of the first of 50, 20, 10, 5, 2, 1, and so on that gives enough ticks; on a scale where these
    are too uneven, or leave an end without ticks, the decades first: 50, 10 and 90, 1 and 99, and so on; where these
    leave a gap, any multiple.
    """
    low, high = limits
    apart, enough = (high - low) / most, min(TICKS_ENOUGH, most - 1)
    decades = [(float(transform(percent / 100, scale)), percent) for percent in TICK_DECADES]
    chosen: list[tuple[float, float]] = []
    for step in TICK_STEPS:
        percents = [round(number * step, 2) for number in range(1, round(100 / step))]
        places = [float(transform(percent / 100, scale)) for percent in percents]
        here = [tick for tick in zip(places, percents, strict=True) if low <= tick[0] <= high]
        steps = [b - a for a, b in pairwise([low, *(place for place, _ in here), high])]
        if len(here) >= enough and min(steps[1:-1]) >= apart and max(steps) <= TICKS_GAP * apart:
            return [percent for _, percent in here]
        least = TICKS_MOST if step >= 5 else 4 if step >= 1 else 3
        for place, percent in here if chosen else [*(decade for decade in decades if low <= decade[0] <= high), *here]:
            if any(abs(place - other) < apart for other, _ in chosen):
                continue
            others = [low, high, *(other for other, _ in chosen)]
            gap = min(other for other in others if other >= place) - max(other for other in others if other <= place)
            if gap > TICKS_GAP * apart or len(chosen) < least:
                chosen.append((place, percent))
        ends = sorted([low, high, *(place for place, _ in chosen)])
        if len(here) > most + 1 and len(chosen) >= 4 and max(b - a for a, b in pairwise(ends)) <= TICKS_GAP * apart:
            break  # finer ones are too near each other, and leave no gap to fill
    return sorted(percent for _, percent in chosen)


def points_range(values: Any) -> list[float]:
    """A range for points that are differences in percent, slightly larger than theirs and including zero."""
    return padded([*np.asarray(values).ravel(), 0.0], 0.06)


def padded(values: Any, share: float = 0.07) -> list[float]:
    """A range of values with a relative margin."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = share * (high - low) or 1.0
    return [low - margin, high + margin]
