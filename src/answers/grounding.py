"""Boxes and points that answers name, by both sets of rules: GroundingME, RefCOCO and RoboSpatial-Home."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from testbed.answers.boxes import Box, Point, iou, within_polygon
from testbed.answers.clicks import picture_size
from testbed.answers.columns import truth
from testbed.answers.texts import final_text
from testbed.answers.verdict import UNREAD, Columns, Verdict
from testbed.answers.yes_no import yes_no

_ENOUGH = 0.5  # of intersection over union
_NOTHING: Box = (0, 0, 0, 0)  # no such object
_REJECTION = "Rejection"
_OBJECT = re.compile(r'\{.*"bbox_2d".*\}', re.DOTALL)
_OBJECTS = re.compile(r'\{[^{}]*"bbox_2d"[^{}]*\}')
_FOUR = re.compile(r"[\s,]+".join([r"((?:-|(?<!\d))\d+(?:\.\d+)?)"] * 4))
_NUMBER = r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?"
_NUMBERS = re.compile(_NUMBER)
_BRACKETED = re.compile(r"\[\s*" + r"(?:\s*,\s*|\s+)".join([f"({_NUMBER})"] * 4) + r"\s*\]")
_CORNERS = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")
_FENCED = re.compile(r"```[^\n]*\n(.*?)(?:```)?", re.DOTALL)
_IN_PARENTHESES = re.compile(r"\(([-+]?\d+\.?\d*(?:,\s*[-+]?\d+\.?\d*)*?)\)")
_POINT = re.compile(r"[\[(]\s*([-+]?\d*\.?\d+)\s*,\s*([-+]?\d*\.?\d+)\s*[\])]")
_UNIT, _THOUSANDS = 1.5, 1000.0  # the largest numbers of points in units, and in thousandths, of the picture's sides


def grounding_me(columns: Columns, text: str) -> Verdict:
    """GroundingME: the last object with ``bbox_2d``, else the last four numbers; null says that there is no object."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    objects = _OBJECTS.findall(final)
    box = _box_of_object(objects[-1]) if objects else None
    return _same_object(columns, box or _last_four(final))


def published_grounding_me(columns: Columns, text: str) -> Verdict:
    """As VLMEvalKit: an answer without a box says that there is no object."""
    found = _OBJECT.search(text)
    box = (_box_of_object(found[0]) if found else None) or _last_four(text)
    verdict = _same_object(columns, box or _NOTHING)
    return verdict if box else Verdict(None, verdict.score, "none")


def _same_object(columns: Columns, box: Box | None) -> Verdict:
    """Checks whether a box, in pixels or in parts of the sides, overlaps the right one by half of their union."""
    if box is None:
        return UNREAD
    right = _NOTHING if columns.get("subtask_l1") == _REJECTION else _right_box(truth(columns))
    width, height = _side(columns, "width"), _side(columns, "height")
    part = 1 if all(side <= 1 for side in box) else 999
    scaled = tuple(side / part * length for side, length in zip(box, (width, height) * 2, strict=True))
    if right == _NOTHING:
        hit = box == _NOTHING
    else:
        hit = max(iou(right, box), iou(right, (scaled[0], scaled[1], scaled[2], scaled[3]))) >= _ENOUGH
    return Verdict(_shown(box), float(hit), "box")


def _right_box(cell: str) -> Box:
    try:
        return _four(ast.literal_eval(cell)) or _NOTHING
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _NOTHING


def _box_of_object(text: str) -> Box | None:
    try:
        sides = json.loads(text)["bbox_2d"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return _NOTHING if sides is None else _four(sides)


def _four(sides: Any) -> Box | None:
    try:
        numbers = [float(side) for side in sides] if isinstance(sides, list) else []
    except (ValueError, TypeError, OverflowError):
        return None
    return (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else None


def _last_four(text: str) -> Box | None:
    found = _FOUR.findall(text)
    return _four(list(found[-1])) if found else None


def _side(columns: Columns, name: str) -> float:
    try:
        side = float(columns.get(name, ""))
    except ValueError:
        return 1.0
    return side if side > 0 else 1.0


def ref_coco(columns: Columns, text: str) -> Verdict:
    """RefCOCO: the last four numbers in brackets, else the last four; in units, thousandths or pixels."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    boxes = _BRACKETED.findall(final)
    return _referred(columns, list(boxes[-1]) if boxes else _NUMBERS.findall(final)[-4:])


def published_ref_coco(columns: Columns, text: str) -> Verdict:
    """As VLMEvalKit: the first four numbers in brackets, else the first four."""
    box = _BRACKETED.search(text)
    return _referred(columns, list(box.groups()) if box else _NUMBERS.findall(text)[:4])


def _referred(columns: Columns, numbers: Sequence[str]) -> Verdict:
    width, height = _side(columns, "width"), _side(columns, "height")
    box = _four(list(numbers))
    if box is None:
        return UNREAD
    right = _four([columns.get(name, "") for name in _CORNERS])
    if right is None:
        cell = truth(columns)
        given = _BRACKETED.search(cell)
        right = _four(list(given.groups()) if given else _NUMBERS.findall(cell)[:4])
        right = _scaled(right, width, height, _UNIT) if right else None
    hit = right is not None and iou(_within(_scaled(box, width, height), width, height), right) >= _ENOUGH
    return Verdict(_shown(box), float(hit), "box")


def _scaled(box: Box, width: float, height: float, most: float = _THOUSANDS) -> Box:
    """A box in pixels. One whose numbers are above ``most`` is in pixels already."""
    largest = max(abs(side) for side in box)
    if largest > most:
        return box
    part = 1 if largest <= _UNIT else _THOUSANDS
    left, top, right, bottom = box
    return left / part * width, top / part * height, right / part * width, bottom / part * height


def _within(box: Box, width: float, height: float) -> Box:
    """The part of a box in the picture, its corners in order."""
    across = sorted(min(max(side, 0.0), width) for side in (box[0], box[2]))
    down = sorted(min(max(side, 0.0), height) for side in (box[1], box[3]))
    return across[0], down[0], across[1], down[1]


def _shown(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def robo_spatial(columns: Columns, text: str) -> Verdict:
    """RoboSpatial-Home: yes or no, or the last point, which must be in the right polygon."""
    if truth(columns).strip().lower() in ("yes", "no"):
        return yes_no(columns, text)
    final, why = final_text(text)
    found = _POINT.findall(final or "")
    if not found:
        return Verdict(None, 0.0, why or "none")
    return _in_polygon(columns, _unit((float(found[-1][0]), float(found[-1][1])), columns))


def published_robo_spatial(columns: Columns, text: str) -> Verdict:
    """As VLMEvalKit: the text begins with yes or no; or the first point of JSON, else of what is in parentheses."""
    said, right = text.strip(), truth(columns).strip().lower()
    if right in ("yes", "no"):
        return Verdict(said or None, float(said.lower().startswith(right)), "beginning" if said else "none")
    return _in_polygon(columns, _point_of_json(said, columns) or _point_of_text(said, columns))


def _in_polygon(columns: Columns, point: Point | None) -> Verdict:
    if point is None:
        return UNREAD
    try:
        corners = [(float(x), float(y)) for x, y in ast.literal_eval(truth(columns).strip())]
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        corners = []
    return Verdict(_shown(point), float(len(corners) > 2 and within_polygon(point, corners)), "point")


def _unit(point: Point, columns: Columns) -> Point:
    """A point in units of the picture's sides, from units, thousandths or pixels."""
    largest = max(map(abs, point))
    if largest <= _UNIT:
        return point
    width, height = (_THOUSANDS, _THOUSANDS) if largest <= _THOUSANDS else picture_size(columns) or (1, 1)
    return point[0] / width, point[1] / height


def _point_of_json(text: str, columns: Columns) -> Point | None:
    fenced = _FENCED.fullmatch(text.strip())
    items = _literal(fenced[1] if fenced else text)
    for item in [items] if isinstance(items, dict) else items if isinstance(items, list) else []:
        point = (item.get("point_2d") or item.get("point")) if isinstance(item, dict) else None
        try:
            if isinstance(point, list | tuple) and len(point) == 2:
                return _unit((float(point[0]), float(point[1])), columns)
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def _literal(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text.strip())
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _point_of_text(text: str, columns: Columns) -> Point | None:
    """The first pair in parentheses, in units or pixels, or the first pixel of a box of four."""
    width, height = picture_size(columns) or (1, 1)
    for found in _IN_PARENTHESES.findall(text):
        numbers = [float(number) for number in found.split(",")]
        if not all(map(math.isfinite, numbers)):
            continue
        unit = max(map(abs, numbers)) <= _UNIT
        if len(numbers) == 2:
            return (numbers[0], numbers[1]) if unit else (numbers[0] / width, numbers[1] / height)
        if len(numbers) == 4:
            sides = [number * side for number, side in zip(numbers, (width, height) * 2, strict=True)]
            left, top, right, bottom = sides if unit else numbers
            across, down = sorted((round(left), round(right))), sorted((round(top), round(bottom)))
            if across[0] < across[1] and down[0] < down[1]:
                return across[0] / width, down[0] / height
    return None
