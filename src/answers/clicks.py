"""Clicks on screenshots: whether the point that an answer names is in the box of the right element.

The right answer is a box in pixels, and the column ``picture_size`` has the size of the picture (``640x480``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed.answers.boxes import Box, Point, contains
from testbed.answers.columns import listed, truth
from testbed.answers.texts import final_text
from testbed.answers.verdict import UNREAD, Columns, Verdict

_PUBLISHED = re.compile(r"x=([\d.]+), y=([\d.]+)")
_NAMED = re.compile(r"\bx\s*[=:]\s*(-?\d+(?:\.\d+)?)\W{1,8}y\s*[=:]\s*(-?\d+(?:\.\d+)?)", re.IGNORECASE)
_BRACKETED = re.compile(r"[\[(]\s*(-?\d+(?:\.\d+)?(?:\s*,\s*-?\d+(?:\.\d+)?){1,3})\s*[\])]")


@dataclass(frozen=True)
class Clicks:
    """The form of places in a benchmark of clicks.

    Attributes:
        box: Makes the right box from its four numbers.
        per_mille: True if points are in thousandths of width and height; else they are in pixels, or in [0, 1].
    """

    box: Callable[[Sequence[float]], Box]
    per_mille: bool = False

    def published(self, columns: Columns, text: str) -> Verdict:
        """The first ``x=…, y=…``; without it the corner at the top left. A point outside the picture is wrong."""
        found = _PUBLISHED.search(text)
        try:
            point = (float(found[1]), float(found[2])) if found else (0.0, 0.0)
        except ValueError:  # 1.2.3
            return UNREAD
        return self._verdict(columns, point, "point" if found else "none")

    def default(self, columns: Columns, text: str) -> Verdict:
        """The last ``x = …, y = …``, else the last pair in brackets, or the centre of four numbers."""
        final, why = final_text(text)
        if final is None:
            return Verdict(None, 0.0, why)
        named, bracketed = _NAMED.findall(final), _BRACKETED.findall(final)
        numbers = [float(number) for number in named[-1] or ()] if named else []
        if not numbers and bracketed:
            numbers = [float(number) for number in bracketed[-1].split(",")]
        if len(numbers) == 4:
            numbers = [(numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2]
        if len(numbers) != 2:
            return UNREAD
        return self._verdict(columns, (numbers[0], numbers[1]), "point")

    def _verdict(self, columns: Columns, point: Point, method: str) -> Verdict:
        size, right = picture_size(columns), self._right(columns)
        said = f"{point[0]:g}, {point[1]:g}" if method == "point" else None
        if size is None or right is None:
            return Verdict(said, 0.0, method)
        width, height = size
        if self.per_mille:
            point = (point[0] / 1000, point[1] / 1000)
        elif point[0] > 1 or point[1] > 1:
            point = (point[0] / width, point[1] / height)
        left, top, end, bottom = right
        box = (left / width, top / height, end / width, bottom / height)
        return Verdict(said, float(contains(box, point)), method)

    def _right(self, columns: Columns) -> Box | None:
        """The right box; a side at -1 is at 0."""
        try:
            sides = self.box([float(side) for side in listed(truth(columns)) or ()])
        except ValueError:
            return None
        left, top, right, bottom = (0.0 if side == -1 else side for side in sides)
        return left, top, right, bottom


def picture_size(columns: Columns) -> tuple[int, int] | None:
    """Width and height of the picture in pixels; None where they are not known."""
    width, _, height = columns.get("picture_size", "").partition("x")
    sides = (int(width), int(height)) if width.isdecimal() and height.isdecimal() else (0, 0)
    return sides if all(sides) else None
