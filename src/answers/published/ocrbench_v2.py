"""OCRBench v2 (arXiv 2501.00321) as VLMEvalKit scores it: each kind of question, the column ``category``, by its rule.

Cells are read as data and never evaluated.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from testbed.answers.boxes import Box, iou
from testbed.answers.columns import truth
from testbed.answers.html_tables import similarity
from testbed.answers.published.page_metrics import Placed, document_similarity, spotting, text_similarity
from testbed.answers.texts import edit_distance
from testbed.answers.verdict import UNREAD, Columns, Verdict

_FENCED = re.compile(r"```(?:python|json)?\n(.*?)\n```", re.DOTALL | re.IGNORECASE)
_PAIR = re.compile(r"""["']?([\w\s]+)["']?\s*[:=]\s*["']?([^\n,"'{}]+)["']?""")
_ASSIGNED = re.compile(r"^\s*\w+\s*=\s*")
_FOUR = re.compile(r"[\(\[]\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*[\)\]]")
_ITEM = re.compile(r"[\[\(]\s*([^\[\]\(\)]*?)\s*[\]\)]")
_TEXT_TAG = re.compile(r"\\text\{([^{}]*)\}")
_BETWEEN = ("", ".", ". ", ",", ", ", "、", ";", "; ", " ", "和")  # letters of several options
_SHORT_ANSWER = "简答"  # in the question
CHOICE, CASE_SENSITIVE, REGRESSION = "multiple choice", "case sensitive", "regression"  # cells of the column eval
CONTAINED = (
    *("APP agent en", "ASCII art classification en", "math QA en", "reasoning VQA en", "science QA en"),
    *("text recognition en", "document classification en", "cognition VQA en", "diagram QA en"),
)
CONTAINED_CN = ("cognition VQA cn", "reasoning VQA cn")
_LIMIT = 1000  # places are in thousandths of the picture's sides


def ocrbench_v2(columns: Columns, text: str) -> Verdict:
    """The score of the kind of question; 0 for one that OCRBench v2 does not have."""
    rule = _RULES.get(columns.get("category", ""))
    if rule is None or not text:
        return UNREAD
    given = literal(truth(columns))
    answers = given if isinstance(given, list) else [truth(columns) if given is None else given]
    score = rule(columns, answers, text) if answers else 0.0
    return Verdict(text.strip() or None, min(1.0, max(0.0, score)) if text.strip() else 0.0, "whole")


def literal(cell: str) -> Any:
    """A value in Python's notation or JSON's; None if it is not one."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(cell)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _contained(columns: Columns, answers: Sequence[Any], text: str) -> float:
    kind = columns.get("eval")
    if kind == CHOICE:
        return float("".join(filter(str.isalpha, text)) == answers[0])
    if columns.get("category") in CONTAINED_CN and kind != CASE_SENSITIVE:
        return max(_similar(_plain(answer), _plain(text), ",", 4) for answer in answers)
    lower = (lambda part: part) if kind == CASE_SENSITIVE else str.lower
    return max(_similar(_flat(lower(str(answer))), _flat(lower(text)), None, 5) for answer in answers)


def _flat(text: str) -> str:
    return text.strip().replace("\n", " ")


def _similar(right: str, said: str, mark: str | None, few: int) -> float:
    """1 if a right answer of few parts is contained; of more parts 1 − edit distance / length, from 0.5 on."""
    if len(right.split(mark)) < few:
        return float(right in said)
    length = max(len(right), len(said))
    similar = 1 - edit_distance(said, right) / length if length else 1.0
    return similar if similar >= 0.5 else 0.0


def _handwritten(columns: Columns, answers: Sequence[Any], text: str) -> float:
    right = str(answers[0])
    if _SHORT_ANSWER in columns.get("question", ""):
        return text_similarity(text, right)
    forms = [mark.join(right) for mark in _BETWEEN] if len(right) > 1 else [right]
    return float(any(form in text for form in forms))


def _written(columns: Columns, answers: Sequence[Any], text: str) -> float:
    return text_similarity(text, str(answers[0]))


def _formula(columns: Columns, answers: Sequence[Any], text: str) -> float:
    chinese = columns.get("category", "").endswith("cn")
    plain = [_TEXT_TAG.sub(r"\1", part) if chinese else part for part in (text, *map(str, answers))]
    said, *right = (_flat(part).replace(" ", "") for part in plain)
    return float(any(each in said for each in right))


def _count(columns: Columns, answers: Sequence[Any], text: str) -> float:
    if columns.get("eval") != REGRESSION:
        return float(any(_flat(str(answer).lower()) in text for answer in answers))
    found = re.search(r"\d+", text)
    said, scores = int(found[0][:18]) if found else 0, [0.0]
    for each in answers:
        right = int(each) if str(each).strip().isdecimal() else 0
        if 0 < said < 2 * right:
            near = 1 - abs(said - right) / right
            scores.append(near if near > 0.5 else 0.0)
    return max(scores)


def _table(columns: Columns, answers: Sequence[Any], text: str) -> float:
    question, right = columns.get("question", "").lower(), str(answers[0])
    if "html" in question or columns.get("category", "").endswith("cn"):
        flat = text.replace("\n", "")
        start = next((flat.find(tag) for tag in ("<body", "<table") if tag in flat), -1)
        return similarity(_as_table(flat[start:]), _as_table(right.replace("\n", ""))) if start >= 0 else 0.0
    return similarity(_of_markdown(text), _of_markdown(right)) if "markdown" in question else 0.0


def _as_table(text: str) -> str:
    return text if "<table" in text else f"<table>{text}</table>"


def _of_markdown(text: str) -> str:
    lines = text.strip("`markdown").strip("`").strip().split("\n")
    rows = [line.strip().split("|")[1:-1] for line in (lines[0], *lines[2:])]
    return _of_rows([[cell.strip() if set(cell) != {" "} else " " for cell in row] for row in rows])


def _of_rows(rows: Sequence[Sequence[str]]) -> str:
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return "<table>{}</table>".format("".join(f"<tr>{row}</tr>" for row in cells))


def _chart(columns: Columns, answers: Sequence[Any], text: str) -> float:
    fenced = _FENCED.findall(text)
    content = _ASSIGNED.sub("", (max(fenced, key=len) if fenced else text).strip(), count=1)
    content = re.sub(r"#.*", "", content)
    said = _python(content[: content.rfind("}") + 1] or content)
    if not isinstance(said, dict) or not said or not isinstance(answers[0], dict):
        return 0.0
    tables = ([[str(key), " ".join(str(cell))] for key, cell in part.items()] for part in (said, answers[0]))
    return similarity(*map(_of_rows, tables))


def _python(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _document(columns: Columns, answers: Sequence[Any], text: str) -> float:
    return document_similarity(text, str(answers[0]))


def fields_of(text: str) -> dict[str, str]:
    """The fields of JSON or a dictionary in the first fence, or of the text; else what is before and after colons."""
    fenced = _FENCED.search(text)
    content = fenced[1] if fenced else text.strip()
    said = literal(content)
    if said is None:
        said = {key.strip(): value.strip() for key, value in _PAIR.findall(content)}
    return {str(key).strip(): str(value).strip() for key, value in said.items()} if isinstance(said, dict) else {}


def _information(columns: Columns, answers: Sequence[Any], text: str) -> float:
    """The share of all fields, said or right, that have a right value."""
    right = answers[0] if isinstance(answers[0], dict) else literal(str(answers[0]).strip('"'))
    right = literal(right) if isinstance(right, str) else right
    if not isinstance(right, dict):
        return 0.0
    said = fields_of(text)
    values = {str(key): list(value) if isinstance(value, list) else [value] for key, value in right.items()}
    keys = said.keys() | values.keys()
    if not keys or not all(values.values()):
        return 0.0
    hits = [key in said and _plain(said[key]) in map(_plain, values.get(key, ())) for key in keys]
    return sum(hits) / len(hits)


def _plain(value: Any) -> str:
    return _flat(str(value).lower()).replace(" ", "")


def _place(columns: Columns, answers: Sequence[Any], text: str) -> float:
    """The overlap of the last box with the right one."""
    boxes = [[int(side[:9]) for side in box] for box in _FOUR.findall(text)]
    found = [box for box in boxes if max(box) <= _LIMIT]
    return _overlap(found[-1], answers) if found else 0.0


def _overlap(said: Any, right: Any) -> float:
    boxes = [_whole(sides) for sides in (said, right)]
    return iou(boxes[0], boxes[1]) if boxes[0] is not None and boxes[1] is not None else 0.0


def _whole(sides: Any) -> Box | None:
    try:
        left, top, right, bottom = (int(side) for side in list(sides)[:4])
    except (ValueError, TypeError, OverflowError):
        return None
    return left, top, right, bottom


def _with_position(columns: Columns, answers: Sequence[Any], text: str) -> float:
    """Half for the answer and half for the overlap of its box."""
    said = fields_of(text)
    answer = _flat(said["answer"].lower()) if "answer" in said else None
    score = 0.0 if answer is None else max(_similar(_flat(str(each).lower()), answer, None, 5) for each in answers)
    box = _python(said.get("bbox", ""))
    return (score + (_overlap(box, literal(columns.get("bbox", ""))) if isinstance(box, list | tuple) else 0.0)) / 2


def _spotted(columns: Columns, answers: Sequence[Any], text: str) -> float:
    boxes, texts = (literal(columns.get(name, "")) for name in ("bbox", "content"))
    if not isinstance(boxes, list) or not isinstance(texts, list):
        return 0.0
    right: list[Placed] = []
    for sides, content in zip(boxes, texts, strict=False):
        try:
            numbers = [int(side) for side in sides]
            x, y = numbers[0::2], numbers[1::2]
            right.append(((min(x), min(y), max(x), max(y)), str(content)))
        except (ValueError, TypeError, OverflowError):
            continue
    return spotting(_places_said(text), right)


def _places_said(text: str) -> list[Placed]:
    """The different boxes with texts in a list of five, or in brackets."""
    data = _python(text)
    items: list[Any] = list(data) if isinstance(data, list | tuple) else []
    if data is None:
        items = [item.split(",", 4) for item in _ITEM.findall(text)]
    found: dict[Placed, None] = {}
    for item in items:
        if not isinstance(item, list | tuple) or len(item) < 5:
            continue
        sides = [str(side).strip() for side in item[:4]]
        box = _whole(sides)
        if box is not None and all(0 <= side <= _LIMIT for side in box):
            found[box, str(item[4]).replace("\n", "").strip().strip('"').strip("'")] = None
    return list(found)


_Rule = Callable[[Columns, Sequence[Any], str], float]
_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys((*CONTAINED, *CONTAINED_CN), _contained),
    "handwritten answer extraction cn": _handwritten,
    **dict.fromkeys(("formula recognition cn", "formula recognition en"), _formula),
    "text counting en": _count,
    **dict.fromkeys(("table parsing en", "table parsing cn"), _table),
    "chart parsing en": _chart,
    **dict.fromkeys(("document parsing en", "document parsing cn"), _document),
    **dict.fromkeys(("key information extraction en", "key information mapping en"), _information),
    "key information extraction cn": _information,
    "VQA with position en": _with_position,
    **dict.fromkeys(("text translation cn", "fine-grained text recognition en"), _written),
    **dict.fromkeys(("full-page OCR en", "full-page OCR cn"), _written),
    "text grounding en": _place,
    "text spotting en": _spotted,
}
