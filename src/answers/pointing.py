"""RefSpatial-Bench (arXiv 2506.04308): points in a picture, of which those in the right region count."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from testbed.answers.columns import truth
from testbed.answers.texts import final_text
from testbed.answers.verdict import UNREAD, Columns, Verdict

Box = tuple[Sequence[int], Sequence[int]]  # the columns and the rows of its pixels

_IN_PARENTHESES = re.compile(r"\(([-+]?\d+\.?\d*(?:,\s*[-+]?\d+\.?\d*)*?)\)")
_IN_BRACKETS = re.compile(r"\[\s*([-+]?\d+\.?\d*,\s*[-+]?\d+\.?\d*)\s*\]")
_OBJECT = re.compile(r"\{[^{}]*\}")
_SHARE, _THOUSANDS = 1.5, 1000.0  # numbers up to these are shares, or thousandths, of the sides
_MOST_PIXELS = 1 << 24  # of a box


class Region:
    """A region of a picture: its size, and lengths of the parts of its rows, outside and inside in turn."""

    def __init__(self, cell: str) -> None:
        size, *runs = cell.split()
        self.width, self.height = (int(side) for side in size.split("x"))
        lengths = np.array(list(map(int, runs)), np.int64)
        flat = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)[: self.width * self.height]
        flat = np.pad(flat, (0, self.width * self.height - len(flat)))
        self._inside = flat.reshape(self.height, self.width)

    def inside(self, box: Box) -> int:
        """Counts the pixels of a box that are inside."""
        return int(self._inside[np.ix_(box[1], box[0])].sum())


def published_pointing(columns: Columns, text: str) -> Verdict:
    """The share of the points that are in the region."""
    try:
        region = Region(truth(columns))
    except (ValueError, IndexError):
        return UNREAD
    boxes = _of_objects(_unfenced(text), region) or _of_text(text, region)
    number = sum(len(across) * len(down) for across, down in boxes)
    if not number:
        return UNREAD
    shown = "; ".join(f"{across[0]}, {down[0]}" for across, down in boxes[:20] if across and down)
    return Verdict(shown, sum(map(region.inside, boxes)) / number, "points")


def pointing(columns: Columns, text: str) -> Verdict:
    """The same of the final part, with points in JSON that stand in a text, or in brackets."""
    final, why = final_text(text)
    if not final:
        return Verdict(None, 0.0, why or "none")
    objects = [part for part in _OBJECT.findall(final) if "point" in part]
    pairs = "" if objects or "(" in final else " ".join(f"({pair})" for pair in _IN_BRACKETS.findall(final))
    return published_pointing(columns, f"[{', '.join(objects)}]" if objects else pairs or final)


def _unfenced(text: str) -> str:
    text = text.strip()
    if not text.startswith("```"):
        return text
    inner = (text.partition("\n")[2] if "\n" in text else text.lstrip("`")).strip()
    return inner.removesuffix("```").strip()


def _of_objects(text: str, region: Region) -> list[Box]:
    """The points in objects with ``point_2d`` or ``point``, in shares, thousandths or pixels."""
    for read in (json.loads, ast.literal_eval):
        try:
            value: Any = read(text)
            break
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            value = None
    found = []
    for item in [value] if isinstance(value, dict) else value if isinstance(value, list) else []:
        point = (item.get("point_2d") or item.get("point")) if isinstance(item, dict) else None
        if not isinstance(point, list | tuple) or len(point) != 2:
            continue
        try:
            x, y = map(float, point)
        except (ValueError, TypeError):
            continue
        most = max(abs(x), abs(y))
        sides = (1.0, 1.0) if most <= _SHARE else (_THOUSANDS, _THOUSANDS) if most <= _THOUSANDS else None
        found.append((x, y) if sides is None else (x / sides[0] * region.width, y / sides[1] * region.height))
    return [_pixel(x, y, region) for x, y in found if x == x and y == y]


def _of_text(text: str, region: Region) -> list[Box]:
    """The points in parentheses, and all of a box of four numbers, in shares or pixels."""
    found: list[Box] = []
    for match in _IN_PARENTHESES.findall(text):
        numbers = [float(number) for number in match.split(",")]
        sides = (region.width, region.height) * 2 if max(map(abs, numbers)) <= _SHARE else (1, 1, 1, 1)
        pixels = [number * side for number, side in zip(numbers, sides, strict=False)]
        if len(numbers) == 2:
            found.append(_pixel(pixels[0], pixels[1], region))
        elif len(numbers) == 4:
            found.append(_box(pixels, region))
    return found


def _box(sides: Sequence[float], region: Region) -> Box:
    left, right = sorted(sides[0::2])
    top, bottom = sorted(sides[1::2])
    if max(map(abs, sides)) > _MOST_PIXELS:
        return [], []
    across, down = range(round(left), round(right)), range(round(top), round(bottom))
    if len(across) * len(down) > _MOST_PIXELS:
        return [], []
    return [_within(x, region.width) for x in across], [_within(y, region.height) for y in down]


def _pixel(x: float, y: float, region: Region) -> Box:
    return [_within(x, region.width)], [_within(y, region.height)]


def _within(place: float, length: int) -> int:
    return round(min(max(place, 0), length - 1))
