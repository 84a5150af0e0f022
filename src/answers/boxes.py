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


def iou(one: Box, other: Box) -> float:
    """The intersection of two boxes over their union; 0 where the union is empty."""
    across = max(0.0, min(one[2], other[2]) - max(one[0], other[0]))
    down = max(0.0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = sum((right - left) * (bottom - top) for left, top, right, bottom in (one, other))
    union = areas - across * down
    return across * down / union if union > 0 else 0.0


def within_polygon(point: Point, corners: Sequence[Point]) -> bool:
    """Checks whether a line from a point to the right crosses the sides of a polygon an odd number of times."""
    x, y = point
    inside = False
    for (first, top), (second, bottom) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if min(top, bottom) < y <= max(top, bottom):
            crossing = (y - top) * (second - first) / (bottom - top) + first
            inside ^= first == second or x <= crossing
    return inside
