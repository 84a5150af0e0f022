"""The size of a figure in print: its width in points, letters of readable size, and the same size in a PDF."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import click

from testbed.errors import TestbedError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

WIDTHS = {"column": 234.0, "text": 397.0}  # points: a column of two (ICML, CVPR), the text of one (NeurIPS)
PIXELS = 96 / 72  # of a point, in CSS
TEXT = 15  # pixels: the letters of a figure on a screen
LEAST_TEXT = 8.2  # points: the letters of a figure in print; names of points have 6
_NARROWEST, _WIDEST = 100.0, 2000.0
_width: ContextVar[float | None] = ContextVar("figure width in points", default=None)


def width_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--width."""
    return click.option(
        "--width",
        callback=lambda ctx, param, value: None if value is None else _points(value),
        metavar="column|text|PT",
        help="Draw images for print at this width: a column (234 pt), the text of a page (397 pt) or a number of"
        " points.",
    )(function)


def _points(value: str) -> float:
    """A width in points."""
    if value in WIDTHS:
        return WIDTHS[value]
    try:
        points = float(value)
    except ValueError:
        points = 0.0
    if not _NARROWEST <= points <= _WIDEST:
        raise click.BadParameter(
            f"{value!r} is neither column, text nor a number of points from {_NARROWEST:g} to {_WIDEST:g}"
        )
    return points


def drawn(draw: Callable[[], Figure], width: float | None) -> Figure:
    """Makes a figure as wide as a page wants it.

    Args:
        draw: Makes the figure; its sizes are those of `pixels` and `scaled`.
        width: In points; None for a screen.
    """
    token = _width.set(width)
    try:
        figure = draw()
        if width is not None:
            _thin(figure, scaled(1.0))
            figure.update_layout(meta={"width_pt": width})
        return figure
    finally:
        _width.reset(token)


def printing() -> bool:
    """Checks whether the figure that is being made is for print."""
    return _width.get() is not None


def pixels(width: float) -> float:
    """Returns the width in pixels of a figure that takes so many on a screen."""
    points = _width.get()
    return width if points is None else points * PIXELS


def scaled(size: float) -> float:
    """Letters, margins and rows on the page, from their pixels on a screen."""
    points = _width.get()
    return size if points is None else size * LEAST_TEXT * PIXELS / TEXT


def beside(most: int, least: float) -> int:
    """Returns the number of panels, each at least so many points wide, that fit in a row of a page."""
    points = _width.get()
    return most if points is None else max(1, min(most, int(points // least)))


def is_print(figure: Any) -> bool:
    """Checks whether a figure was drawn for print, so that its PDF has the requested width."""
    return isinstance(figure.layout.meta, dict) and "width_pt" in figure.layout.meta


def require_images(width: float | None, suffixes: Any) -> None:
    """Raises an error if a width was given and no image is drawn: HTML fits the window."""
    if width is not None and not suffixes:
        raise TestbedError("--width is for images; ask for them with --formats pdf, or an --out that ends in .pdf")


def _thin(figure: Figure, factor: float) -> None:
    """Makes marks and lines thinner, as the letters are smaller."""
    for trace in figure.data:
        for part in ("marker.size", "line.width", "error_x.thickness", "error_y.thickness"):
            name, _, of = part.partition(".")
            size = trace[part] if name in trace and of in trace[name] else None
            if size is not None:
                trace[part] = size * factor if isinstance(size, int | float) else [each * factor for each in size]
    for shape in figure.layout.shapes:
        if shape.line.width is not None:
            shape.line.width *= factor
