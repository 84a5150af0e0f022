"""Points for a solution by the marking of a competition, as a judge awards them (HiPhO, arXiv 2509.07894)."""

from __future__ import annotations

import re

from testbed.answers.columns import as_list, listed
from testbed.answers.judges.judging import Judging, add_judging
from testbed.answers.judges.replies import stated, unlabelled
from testbed.answers.verdict import Columns, Verdict

METHOD = "judge"
_BOX = re.compile(r"(?!.*(?:\bnot\b|n't))[^\d\\]*(\$?\\boxed\{.*)", re.IGNORECASE)  # after words without numbers
_POINTS = re.compile(
    r"\$?(?:\\boxed\{)?(\d+(?:[.,]\d+)?)\}?\$?(?:\s*(?:/|out of|of)\s*(\d+(?:[.,]\d+)?))?(?:\s*points?)?\.?"
)


def total_points(columns: Columns) -> float:
    """The points of all parts of a question, from the column ``points``; 0 where that is no list of numbers."""
    try:
        return sum(max(float(part), 0.0) for part in as_list(columns.get("points", "0")))
    except ValueError:
        return 0.0


def question(columns: Columns, text: str) -> str:
    """Asks for the points that a solution gets, by the marking in the row, or by its right answers alone."""
    total = total_points(columns)
    marking = "\n".join(_marking(columns.get("marking", "")))
    by = f"Marking:\n{marking}" if marking else "Each right answer gets its points; a wrong one gets none."
    answers = ", ".join(as_list(columns.get("answer", "")))
    points = ", ".join(as_list(columns.get("points", "")))
    return (
        f"How many of {total:g} points does this solution of a physics competition get? Follow the marking; give part"
        " of the points only where it says so. Do not solve the problem.\n\n"
        f"Problem: {columns.get('question', '')}\n\nRight answers: {answers}\nPoints of each: {points}\n\n{by}\n\n"
        f"Solution: {text}\n\nReply with one line and nothing else:\nPoints: a number from 0 to {total:g}"
    )


def _marking(cell: str) -> list[str]:
    """The criteria; of several sets, of which the one that gives most counts, each with its number."""
    items = listed(cell) or ([cell] if cell.strip() else [])
    sets = [listed(item) for item in items]
    if len(sets) < 2 or not all(sets):
        return [criterion for item, own in zip(items, sets, strict=True) for criterion in own or [item]]
    lines = ["There are several sets of criteria; the one that gives most points counts."]
    for number, own in enumerate(sets, start=1):
        lines += [f"Set {number}:", *(own or ())]
    return lines


def read(columns: Columns, reply: str) -> Verdict | None:
    """The share of the points; None for a number above all of them, or out of another total."""
    total = total_points(columns)

    def points(line: str) -> float | None:
        box = _BOX.fullmatch(line)
        plain = re.sub(r"^\W*points?\W*", "", box[1] if box else unlabelled(line), flags=re.IGNORECASE)
        said = _POINTS.fullmatch(plain.strip(" *_`"))
        if said is None or (said[2] and abs(float(said[2].replace(",", ".")) - total) > 1e-9):
            return None
        value = float(said[1].replace(",", "."))
        return value if value <= total else None

    value = stated(reply, points)
    return Verdict(f"{value:g}", value / total, METHOD) if value is not None and total else None


add_judging("points", Judging(question, read, "always", graded=True, scorings=["points"]))
