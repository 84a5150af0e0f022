"""RefSpatial-Bench (arXiv 2506.04308): points in a picture, of which those in the right region count."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.answers.columns import truth
from testbed.answers.texts import final_text
from testbed.answers.verdict import Verdict

Columns = Mapping[str, str]

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
        self._inside = bytearray(self.width * self.height)
        place = 0
        for number, run in enumerate(map(int, runs)):
            self._inside[place : place + run] = (b"\1" if number % 2 else b"\0") * run
            place += run

    def has(self, x: int, y: int) -> bool:
        """Checks whether a pixel is inside."""
        return bool(self._inside[y * self.width + x])


def published_pointing(columns: Columns, text: str) -> Verdict:
    """The share of the points that are in the region."""
    try:
        region = Region(truth(columns))
    except (ValueError, IndexError):
        return Verdict(None, 0.0, "none")
    points = _of_objects(_unfenced(text), region) or _of_text(text, region)
    if not points:
        return Verdict(None, 0.0, "none")
    hits = sum(region.has(x, y) for x, y in points)
    shown = "; ".join(f"{x}, {y}" for x, y in points[:20])
    return Verdict(shown, hits / len(points), "points")


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


def _of_objects(text: str, region: Region) -> list[tuple[int, int]]:
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


def _of_text(text: str, region: Region) -> list[tuple[int, int]]:
    """The points in parentheses, and all of a box of four numbers, in shares or pixels."""
    found: list[tuple[int, int]] = []
    for match in _IN_PARENTHESES.findall(text):
        numbers = [float(number) for number in match.split(",")]
        sides = (region.width, region.height) * 2 if max(map(abs, numbers)) <= _SHARE else (1, 1, 1, 1)
        pixels = [number * side for number, side in zip(numbers, sides, strict=False)]
        if len(numbers) == 2:
            found.append(_pixel(pixels[0], pixels[1], region))
        elif len(numbers) == 4:
            found += _box(pixels, region)
    return found


def _box(sides: Sequence[float], region: Region) -> list[tuple[int, int]]:
    left, right = sorted(sides[0::2])
    top, bottom = sorted(sides[1::2])
    across, down = range(round(left), round(right)), range(round(top), round(bottom))
    if len(across) * len(down) > _MOST_PIXELS:
        return []
    return [_pixel(x, y, region) for y in down for x in across]


def _pixel(x: float, y: float, region: Region) -> tuple[int, int]:
    return round(min(max(x, 0), region.width - 1)), round(min(max(y, 0), region.height - 1))
