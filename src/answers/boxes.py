"""Boxes and points in pictures."""

from __future__ import annotations

from collections.abc import Sequence

Box = tuple[float, float, float, float]  # left, top, right, bottom
Point = tuple[float, float]


def contains(box: Box, point: Point) -> bool:
    """Checks whether a point is in a box or on its edge."""
    left, top, right, bottom = box
    return left <= point[0] <= right and top <= point[1] <= bottom


def contains_centre(box: Box, other: Box) -> bool:
    """Checks whether the centre of another box is in a box."""
    left, top, right, bottom = other
    return contains(box, ((left + right) / 2, (top + bottom) / 2))


def of_corners(sides: Sequence[float]) -> Box:
    """A box from its left, top, right and bottom sides."""
    left, top, right, bottom = sides
    return left, top, right, bottom


def of_size(sides: Sequence[float], last: float = 0) -> Box:
    """A box from left, top, width and height; ``last`` is 1 if its last pixels are its edge."""
    left, top, width, height = sides
    return left, top, left + width - last, top + height - last
