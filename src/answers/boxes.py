"""Boxes and points in pictures."""

from __future__ import annotations

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
