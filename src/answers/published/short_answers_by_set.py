"""Numbers, words and places as single sets of VLMEvalKit read them: its classes of the same names, each by its rule."""

from __future__ import annotations

import ast
import re

from testbed.answers.boxes import Box, contains_centre
from testbed.answers.columns import truth
from testbed.answers.published.choice import FAILURE
from testbed.answers.verdict import UNREAD, Columns, Verdict

_IN_BRACES = re.compile(r"\{(.*?)\}")
_ROWS = re.compile(r"[Rr]ows?[^{}]*\{(\d+)\}")
_GRID_COLUMNS = re.compile(r"[Cc]olumns?[^{}]*\{(\d+)\}")
_PAIR = re.compile(r"\((\d+),\s*(\d+)\)")
BRACED = ("Subway Connections", "Nested Squares", "Line Plot Intersections", "Circled Letter")
GRIDS = ("Counting Grid - Word Grids", "Counting Grid - Blank Grids")
CONTAINED = ("Olympic Counting - Pentagons", "Olympic Counting - Circles")
CIRCLES = "Touching Circles"

_JSON_ANSWER = re.compile(r'\{\s*"answer"\s*:\s*(.+?)\s*\}')
TRUE_OR_FALSE = frozenset("CF1 CF2 MV1 MV2 MV3 P3 RL2 S1 S2 SS2 VZ1 VZ2".split())
WORDS = frozenset("CS1 CS2 CS3".split())
_TRUE, _FALSE = ("t", "y", "1", "true", "yes"), ("f", "n", "0", "false", "no")
VISFACTOR_WORDS = dict.fromkeys(_TRUE, "T") | dict.fromkeys(_FALSE, "F")
_NUMBER = r"(\d?(?:\.\d+)?)"
_UNIT_BOX = re.compile(rf"{_NUMBER},\s?{_NUMBER},\s?{_NUMBER},\s?{_NUMBER}")
_PHYX_FINAL = re.compile(
    r"\b(?:final\s+answer|correct\s+answer)\b[^:：]*[:：]\s*(.*?)(?=\n\n\n|\Z)", re.IGNORECASE | re.DOTALL
)


def vlm_blind(columns: Columns, text: str) -> Verdict:
    """VLMs are blind: what is in the first braces, or the right answer anywhere, or rows and columns, by the task."""
    right, task = truth(columns), columns.get("task")
    if task in BRACED:
        closed = (line[: line.rfind("}") + 1] for line in text.split("\n"))
        found = next((match for line in closed if (match := _IN_BRACES.search(line))), None)
        return Verdict(found[1], float(found[1] == right), "braces") if found else UNREAD
    if task == CIRCLES:
        return Verdict(text, float(right.lower() in text.lower()), "contained")
    if task in CONTAINED:
        return Verdict(text, float(right in text), "contained")
    return _grid(right, text) if task in GRIDS else UNREAD


def _grid(right: str, text: str) -> Verdict:
    rows, columns, pair = _ROWS.search(text), _GRID_COLUMNS.search(text), _PAIR.search(text)
    said = (rows[1], columns[1]) if rows and columns else pair.groups() if pair else None
    if said is None:
        return UNREAD
    try:
        hit = [int(part) for part in said] == [int(part) for part in right.split(",")]
    except ValueError:
        hit = False
    return Verdict(", ".join(said), float(hit), "rows and columns")


def visfactor(columns: Columns, text: str) -> Verdict:
    """VisFactor: the last ``{"answer": …}`` as true or false, a word, a letter or numbers, by the test."""
    found = _JSON_ANSWER.findall(text)
    said = _without_quotes(found[-1].strip()) if found else ""
    test, right = columns.get("category_id", ""), truth(columns)
    if test in TRUE_OR_FALSE or (test == "VZ3" and not columns.get("additional", "nan").isdigit()):
        word = VISFACTOR_WORDS.get(said.lower())
        return Verdict(word, float(word == right), "true or false" if word else "none")
    if test in WORDS:
        return Verdict(said if found else None, float(said.lower() in right.lower().split(",")), "word")
    read = visfactor_value(test, said or text)
    return Verdict(read, float((read or "") == right), "value" if read else "none")


def visfactor_value(test: str, text: str) -> str | None:
    """The last capital, the last two numbers as a place, or the last number, as a test of VisFactor wants it."""
    if test == "VZ3":
        return next((char for char in reversed(text) if char.isupper()), None)
    numbers = re.findall(r"\d+", text)
    if test == "CF3":
        return f"({numbers[-2]}, {numbers[-1]})" if len(numbers) > 1 else None
    return numbers[-1] if numbers else None


def _without_quotes(text: str) -> str:
    quoted = text[:1] in ("'", '"') and text.endswith(text[:1]) and len(text) > 1
    return text[1:-1] if quoted else text


def unit_box(columns: Columns, text: str) -> Verdict:
    """TDBench: the centre of the only box of numbers from 0 to 1 is in the right one."""
    said, right = _unit_box(text), _unit_box(truth(columns))
    if said is None:
        return UNREAD
    hit = right is not None and contains_centre(right, said)
    return Verdict(", ".join(f"{side:g}" for side in said), float(hit), "box")


def _unit_box(text: str) -> Box | None:
    found = _UNIT_BOX.findall(text.replace("\n", ""))
    if len(found) != 1 or not all(found[0]):
        return None
    left, top, right, bottom = (float(side) for side in found[0])
    return left, top, right, bottom


def phyx(columns: Columns, text: str) -> Verdict:
    """PhyX: the first box, else what follows "final answer:", else the text is the right answer; or a judge settles it.

    In both ``\\dfrac`` is ``\\frac``, and π is 3.14.
    """
    said = _content(text)
    if said == f"{FAILURE}.":
        return Verdict("failure", 0.0, "failure")
    box, final = _box(said), _PHYX_FINAL.search(said)
    core = box if box is not None else final[1] if final else None
    answer = text if core is None else core.replace("\\dfrac", "\\frac").replace("\\pi", "3.14")
    hit = answer.strip().lower() == truth(columns).strip().lower()
    return Verdict(answer.strip(), 1.0, "whole" if core is None else "marked") if hit else UNREAD


def _content(text: str) -> str:
    """The field ``content`` of an answer that is written as a dictionary, as servers with thoughts give it."""
    try:
        fields = ast.literal_eval(text.strip()) if "content" in text and text.lstrip().startswith("{") else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        fields = None
    content = fields.get("content") if isinstance(fields, dict) else None
    return content.strip() if isinstance(content, str) and content else text.strip()


def _box(text: str) -> str | None:
    _, opened, rest = text.partition("\\boxed{")
    depth = 0
    for place, char in enumerate(rest if opened else ""):
        if char == "}" and not depth:
            return rest[:place]
        depth += (char == "{") - (char == "}")
    return None
