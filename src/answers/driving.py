"""VLADBench (arXiv 2503.21505): traffic signs, lanes and road users, each task (``category3``) by its rule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.answers.columns import as_list, truth
from testbed.answers.texts import final_text, open_answer
from testbed.answers.verdict import Columns, Verdict

# The groups of tasks, with the weights of their special number, their right answers, and their forms.
GROUPS: Mapping[str, Sequence[str]] = {
    "Road_Traffic_Signals": ("Traffic_Light", "Pavement_Marking", "Traffic_Sign"),
    "Road_Passage_Provisions": ("Right_Of_Way",),
    "Foreground": (
        *("VRU_Recognition", "Vehicle_Recognition", "Vehicle_Status", "Lane_Recognition"),
        "Obstruction_Recognition",
    ),
    "Background": ("Light", "Weather"),
    "Signal_Element_Relation": ("Sign_Sign_Relation", "Sign_Lane_Relation", "Light_Lane_Relation"),
    "Lane_Element_Relation": ("Lane_Speed_Relation", "Lane_Change_Relation"),
    "Intention_Judgment": ("VRU_Cutin", "Vehicle_Cutin", "VRU_Cross", "Long_Short_Parking"),
    "Behavior_Understanding": ("Vehicle_Bahavior", "VRU_Bahavior"),
    "Ego_Action_Reasoning": (
        *("Key_Obsturction_Detection", "Spatial_Temporal_Reasoning", "Risk_Prediction"),
        "Drive_Efficiency",
    ),
    "Meta_Action_Decision": ("Longitudinal", "Lateral"),
}
PLACES = ("Vehicle_Recognition", "VRU_Recognition", "Obstruction_Recognition")
RELATIONS = ("Light_Lane_Relation", "Sign_Sign_Relation", "Sign_Lane_Relation")
CHANGE, SPEED = "Lane_Change_Relation", "Lane_Speed_Relation"
STATEMENTS = (
    *("VRU_Cutin", "Vehicle_Cutin", "VRU_Cross", "Key_Obsturction_Detection"),
    *("Spatial_Temporal_Reasoning", "Risk_Prediction"),
)
WEIGHTS: Mapping[str, tuple[float, float, float]] = {
    **dict.fromkeys((*PLACES, *RELATIONS, CHANGE, SPEED), (0.3, 0.5, 0.2)),
    **dict.fromkeys(("VRU_Cutin", "Vehicle_Cutin", "VRU_Cross", "Risk_Prediction"), (0.7, 0.1, 0.2)),
    "Key_Obsturction_Detection": (0.8, 0.0, 0.2),
    "Spatial_Temporal_Reasoning": (0.4, 0.4, 0.2),
}
OTHERS = (0.0, 0.8, 0.2)  # weights of the other tasks

_PLACE = "located in the image?"  # in a question for a box
_EDGES = ":[]()' ."
_OPTIONS = re.compile(r"\[([^\]]+)\]")
_SIDE = r"\s*([^\],]*\d+[^\],]*)\s*"
_BOX = re.compile(rf"\[{','.join([_SIDE] * 4)}\]")
_PAIR = re.compile(r"\[\s*(-?\d+)\s*,\s*(-?\d+)\s*\]")
_NUMBERS = re.compile(r"(-?\d+(?:/\d+)*)")
_CORRESPONDS = re.compile(r"corresponds to No.([+-]?\d+)")
_CORRESPONDING = re.compile(r"corresponding to.*is\s+(-?\d+(?:/\d+)*)")
_OVERLAP = 0.5
_SCALE = 1000


@dataclass(frozen=True)
class Reading:
    """The parts that are read of an answer.

    Attributes:
        said: The option, number or box; None if there is none.
        score: From 0 to 1.
        as_asked: True if the answer has the form that was asked for.
        listed: False for an answer that names several options, which counts in no comparison.
        overlap: Of a box with the right one; None of other answers.
    """

    said: str | None
    score: float
    as_asked: bool = False
    listed: bool = True
    overlap: float | None = None


def is_statement(columns: Columns) -> bool:
    """Checks whether the right answer is yes or no."""
    return _stripped(truth(columns)).lower() in ("yes", "no")


def read(columns: Columns, text: str) -> Reading:
    """Reads an answer by the rule of its task, as VLMEvalKit does."""
    task = columns.get("category3", "")
    if task in RELATIONS:
        return _relation(truth(columns), text)
    if task == SPEED:
        return _speeds(truth(columns), text)
    if task in PLACES and _PLACE in columns.get("question", "").lower():
        return _place(columns, text)
    return _option(columns, text, task in STATEMENTS)


def published_driving(columns: Columns, text: str) -> Verdict:
    """The score of `read`."""
    found = read(columns, text)
    return Verdict(found.said, found.score, "none" if found.said is None else "rule")


def driving(columns: Columns, text: str) -> Verdict:
    """The same of what an answer marks or states; boxes and speeds need no brackets."""
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    if columns.get("category3") not in (*PLACES, SPEED):
        return published_driving(columns, answer)
    final = final_text(text)[0] or ""
    return published_driving(columns, final if "[" in final else f"[{answer}]")


def _stripped(text: str) -> str:
    return text.strip(_EDGES)


def _option(columns: Columns, text: str, statement: bool) -> Reading:
    asked, right = columns.get("question", "").lower(), truth(columns)
    right = (_stripped(right) if statement else right).lower()
    said = _stripped(re.sub(r'[*\n"]', "", text.rpartition("correct answer is:")[2])).lower()
    if "', '" in said:
        return Reading(said, 0.0, listed=False)
    as_asked = (said.replace(";", "") if statement else said) in asked
    options = _options(asked)
    hit = said == right
    if not hit and right in said and right in options:
        options.remove(right)
        hit = not any(option in said for option in options)
    return Reading(said or None, float(hit), as_asked)


def _options(question: str) -> list[str]:
    """The options in the last brackets of a question."""
    found = _OPTIONS.findall(question)
    if not found:
        return []
    if "'" not in found[-1]:
        return list(found[-1].split(", "))
    return [item.strip().strip("'") for item in found[-1].split("', '")]


def _place(columns: Columns, text: str) -> Reading:
    """The overlap of the only box with the right one, both in thousandths of the picture's sides."""
    boxes = _BOX.findall(text)
    try:
        sides = [float(re.sub(r"[^0-9.]", "", side)) for side in boxes[0]] if len(boxes) == 1 else [0.0] * 4
        width, height = (float(side) for side in as_list(columns.get("dimension", ""))[:2])
        lengths = (width, height, width, height)
        corners = zip(as_list(truth(columns))[:4], lengths, strict=True)
        right = [int(_SCALE * int(corner) / length) for corner, length in corners]
    except (ValueError, ZeroDivisionError, OverflowError):
        return Reading(None, 0.0, overlap=0.0)
    sides = [side * _SCALE for side in sides] if sum(sides) < 4 else sides
    overlap = _overlap([int(side) for side in sides], right)
    said = ", ".join(f"{side:g}" for side in sides) if len(boxes) == 1 else None
    return Reading(said, float(overlap > _OVERLAP), len(boxes) == 1, overlap=overlap)


def _overlap(one: Sequence[int], other: Sequence[int]) -> float:
    """The intersection of boxes, whose last pixels belong to them, over their union."""
    across = max(0, min(one[2], other[2]) - max(one[0], other[0]) + 1)
    down = max(0, min(one[3], other[3]) - max(one[1], other[1]) + 1)
    areas = sum((right - left + 1) * (bottom - top + 1) for left, top, right, bottom in (one, other))
    union = areas - across * down
    return across * down / union if union else 0.0


def _relation(right: str, text: str) -> Reading:
    """The share of the right numbers, unless a wrong one is among them; one said twice counts once (twice there)."""
    as_asked = False
    if "corresponds to" in text:
        match = _CORRESPONDS.search(text)
        said = match[1] if match else ""
    elif "corresponding to" in text:
        match = _CORRESPONDING.search(text)
        said = match[1] if match else ""
    else:
        found = _NUMBERS.findall(text)
        said, as_asked = found[-1] if found else "", bool(found)
    numbers, wanted = said.split("/") if said else [], right.split("/")
    wrong = any(number not in wanted for number in numbers)
    return Reading(said or None, 0.0 if wrong else len(set(numbers)) / len(wanted), as_asked)


def _speeds(right: str, text: str) -> Reading:
    """Half for each of the lowest and the highest speed."""
    found, wanted = _PAIR.findall(text), _PAIR.findall(right)
    if len(found) != 1 or not wanted:
        return Reading(None, 0.0)
    same = sum(one == other for one, other in zip(found[0], wanted[0], strict=True))
    return Reading(", ".join(found[0]), same / 2, True)
