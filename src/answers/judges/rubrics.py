"""Questions for judges about answers without a single right one: marks, from which a score is computed.

Each `Rubric` is a benchmark's, in our own words; its replies have the form that VLMEvalKit's judge is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.answers.columns import as_list
from testbed.answers.judges.judging import Judging, add_judging
from testbed.answers.judges.replies import object_in
from testbed.answers.verdict import Columns, Verdict

METHOD = "judge"
_PAIR = re.compile(r"\W*(\d+(?:\.\d+)?)(?:\s*/\s*10)?[\s,]+(\d+(?:\.\d+)?)(?:\s*/\s*10)?\W*")
_OUT_OF = re.compile(r":\s*+(\d+(?:\.\d+)?)\s*+/\s*+(\d+(?:\.\d+)?)")
_BEFORE_NAME = re.compile(r"[:,;]")
_NAME_AND_MARK = re.compile(r"([^:：]*+)[:：](.*)", re.DOTALL)
_NAME = re.compile(r"\W*+(\w(?:[\w ]*\w)?)\W*+")
_MARK = re.compile(r"\W*+([0-2])(?:\.0+)?(?:\s*/\s*2)?\W*+")
_TOTAL = "total score"
_BEST = 10  # of LLaVA-Bench


@dataclass(frozen=True)
class Rubric:
    """Questions about an answer, and the reading of the reply.

    Attributes:
        task: What is marked, and how.
        parts: Makes the headings and texts that are shown before the answer.
        form: The form of the reply.
        read: The verdict that a reply gives; None if it cannot be read.
    """

    task: str
    parts: Callable[[Columns], Sequence[tuple[str, str]]]
    form: str
    read: Callable[[Columns, str], Verdict | None]

    def question(self, columns: Columns, text: str) -> str:
        """Asks for the marks."""
        parts = [*self.parts(columns), ("Response", text)]
        shown = "\n\n".join(f"{heading}: {part}" for heading, part in parts if part or heading == "Response")
        return f"{self.task}\n\n{shown}\n\n{self.form}"


def numbers_of(extracted: str | None) -> list[float]:
    """The numbers in what a rubric extracts; empty if there are others or none."""
    try:
        return [float(part) for part in (extracted or "").split()]
    except ValueError:
        return []


def _verdict(numbers: Sequence[float], score: float) -> Verdict:
    return Verdict(" ".join(f"{number:g}" for number in numbers), score, METHOD)


def _of(*names: tuple[str, str]) -> Callable[[Columns], Sequence[tuple[str, str]]]:
    return lambda columns: [(heading, columns.get(column, "")) for heading, column in names]


def _first_line(reply: str) -> str:
    return next((line for line in reply.splitlines() if line.strip()), "")


def _two_marks(columns: Columns, reply: str) -> Verdict | None:
    """LLaVA-Bench: the marks from 1 to 10 of the reference and of the response, in the first line."""
    match = _PAIR.fullmatch(_first_line(reply))
    marks = [float(match[1]), float(match[2])] if match else []
    return _verdict(marks, marks[1] / _BEST) if marks and all(0 < mark <= _BEST for mark in marks) else None


def _components(columns: Columns) -> list[tuple[str, str]]:
    """MIA-Bench: the components of an instruction and what each is worth."""
    names, weights = as_list(columns.get("components", "")), as_list(columns.get("component_weight", ""))
    pairs = zip(names, weights, strict=False)
    worth = [f"{place}. {name} ({weight} points)" for place, (name, weight) in enumerate(pairs, start=1)]
    return [("Instruction", columns.get("question", "")), ("Components", "\n" + "\n".join(worth))]


def _total(columns: Columns, reply: str) -> Verdict | None:
    """MIA-Bench: the share of the points of each component, and of all of them, in the first line."""
    said = _named_points(_first_line(reply))
    if not said or _TOTAL not in said[-1][0] or any(not 0 <= points <= most or not most for _, points, most in said):
        return None
    shares = [points / most for _, points, most in said]
    return _verdict(shares, shares[-1])


def _named_points(line: str) -> list[tuple[str, float, float]]:
    """The name before each ``: points / most``, in lower case, and both numbers."""
    found, end = [], 0
    for match in _OUT_OF.finditer(line):
        name = _BEFORE_NAME.split(line[end : match.start()])[-1]
        found += [(name.strip().lower(), float(match[1]), float(match[2]))] if name else []
        end = match.end()
    return found


@dataclass(frozen=True)
class _Named:
    """Reads a mark from 0 to 2 for each of some names, on lines of their own."""

    names: Sequence[str]

    def __call__(self, columns: Columns, reply: str) -> Verdict | None:
        found: dict[str, float] = {}
        for parts in filter(None, map(_NAME_AND_MARK.fullmatch, reply.splitlines())):
            name, mark = _NAME.fullmatch(parts[1]), _MARK.fullmatch(parts[2])
            if name and mark:
                found[name[1].lower().replace(" ", "_")] = float(mark[1])
        if not set(self.names) <= set(found):
            return None
        marks = [found[name] / 2 for name in self.names]
        return _verdict(marks, sum(marks) / len(marks))


def _key_points(columns: Columns) -> list[tuple[str, str]]:
    listing = "\n".join(f"{place}. {text}" for place, (_, text) in enumerate(points_of(columns), start=1))
    return [("Reference answer", columns.get("answer", "")), ("Key points", "\n" + listing)]


def points_of(columns: Columns) -> list[tuple[str, str]]:
    """OmniMat: the names and texts of the key points, in the column ``key_points``."""
    points = (object_in(cell) or {} for cell in as_list(columns.get("key_points", "")))
    return [(str(point.get("id", "")), str(point.get("description", ""))) for point in points]


def _weights(columns: Columns) -> list[float]:
    points = points_of(columns)
    given: Mapping[str, Any] = object_in(columns.get("scoring_weights", "")) or {}
    if not given:
        return [1 / len(points)] * len(points)
    return [float(given.get(name, 0)) for name, _ in points]


def _precision_and_recall(columns: Columns, reply: str) -> Verdict | None:
    """OmniMat: precision, recall, and their F1 as the score, from the parts and the marks of points in JSON."""
    said = object_in(reply) or {}
    marks = said.get("quality_score")
    if not {"tp_string", "fp_string"} <= set(said) or not isinstance(marks, list):
        return None
    try:
        recall = sum(float(mark) * weight for mark, weight in zip(marks, _weights(columns), strict=True))
    except (TypeError, ValueError):
        return None
    right, wrong = (_parts(said[name]) for name in ("tp_string", "fp_string"))
    precision = right / (right + wrong) if right + wrong else 0.0
    if not 0 <= recall <= 1 + 1e-9:
        return None
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return _verdict([precision, recall], min(f1, 1.0))


def _parts(cell: Any) -> int:
    lines = cell if isinstance(cell, list) else str(cell or "").splitlines()
    return sum(bool(str(line).strip()) for line in lines)


_COMPARE = (
    "Mark two responses to a question about a picture from 1 (worst) to 10 (best): helpful, relevant, correct and"
    " detailed{more}. You do not see the picture, but a description of it. Neither its place nor its length makes a"
    " response better."
)
_COMPARED = _of(("Description of the picture", "caption"), ("Question", "question"), ("Reference response", "gpt4_ans"))
_MARKS_FORM = "Reply first with one line: the mark of the reference response, a blank, the mark of the response."
_QUALITY = (
    "Mark a description of the technical quality of {what} from 0 to 2, by a reference description.\n"
    "- completeness: how much of the reference it has: 2 all or nearly all, 1 a part, 0 nothing.\n"
    "- preciseness: 2 if nothing clearly contradicts the reference, 1 for very few small contradictions, 0 for obvious"
    " ones; other words and small gaps do not matter.\n"
    "- consistency: how well its conclusion follows from what it describes: 2 well, 1 with small gaps, 0 not.\n"
    "- quality_accuracy: its conclusion: {accuracy}."
)
_QUALITIES = ("completeness", "preciseness", "consistency", "quality_accuracy")
_QUALITY_FORM = "Reply with four lines and nothing else:\n" + "\n".join(f"{name}: the mark" for name in _QUALITIES)
_REFERENCE = _of(("Reference description", "description"))
_INSTRUCTED = (
    "How well does this response follow an instruction about a picture? Mark each component of the instruction"
    " strictly, with points up to what it is worth; the total is their sum, out of 10."
)
_INSTRUCTED_FORM = (
    "Reply first with one line such as\nscore of component 1: 1/2, score of component 2: 8/8, total score: 9/10"
)
_MATERIALS = (
    "Grade an answer to a question of materials science by its reference and the key points.\n"
    "- tp_string: the pieces of information in it that match a key point, one a line.\n"
    "- fp_string: those that are wrong, irrelevant, repeated or filling, one a line.\n"
    "- quality_score: for each key point 1 if the answer covers it excellently, 0.5 acceptably, 0.1 poorly, 0 not."
)
_MATERIALS_FORM = (
    'Reply with JSON and nothing else:\n{"tp_string": "…", "fp_string": "…", "quality_score": [a number for each key'
    " point]}"
)

RUBRICS: Mapping[str, Rubric] = {
    "llava_bench": Rubric(_COMPARE.format(more=""), _COMPARED, _MARKS_FORM, _two_marks),
    "llava_bench_ko": Rubric(_COMPARE.format(more=", and in good Korean"), _COMPARED, _MARKS_FORM, _two_marks),
    "mia_bench": Rubric(_INSTRUCTED, _components, _INSTRUCTED_FORM, _total),
    "medical_quality": Rubric(
        _QUALITY.format(
            what="a medical image",
            accuracy="2 if it is the reference's (good, usable or reject), 1 if it is next to it, 0 if it is opposite",
        ),
        _REFERENCE,
        _QUALITY_FORM,
        _Named(_QUALITIES),
    ),
    "medical_comparison": Rubric(
        _QUALITY.format(
            what="two medical images, compared",
            accuracy="2 if the same image is better as in the reference, 0 if the other one, or it makes no sense",
        ),
        _REFERENCE,
        _QUALITY_FORM,
        _Named(_QUALITIES),
    ),
    "materials": Rubric(_MATERIALS, _key_points, _MATERIALS_FORM, _precision_and_recall),
}

for _name, _rubric in RUBRICS.items():
    add_judging(_name, Judging(_rubric.question, _rubric.read, "always", graded=True, scorings=[_name]))
