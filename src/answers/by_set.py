"""Answers to single sets whose tables or tasks have forms of their own, as the rules `default` read them."""

from __future__ import annotations

import re

from testbed.answers.boxes import Box, contains_centre
from testbed.answers.choice import multiple_choice, read_choice
from testbed.answers.columns import options, truth
from testbed.answers.published.options_by_set import as_letter
from testbed.answers.published.short_answers_by_set import (
    GRIDS,
    TRUE_OR_FALSE,
    VISFACTOR_WORDS,
    WORDS,
    visfactor_value,
)
from testbed.answers.reasoning import same
from testbed.answers.texts import comparable, final_text, marked, open_answer
from testbed.answers.verdict import Columns, Verdict
from testbed.answers.yes_no import yes_no

_FIRST_LETTER = re.compile(r"\W*([A-D])\b")
_ORDER = re.compile(r"(?<![A-Za-z])[A-Z](?:[\s,>→-]*[A-Z])+(?![A-Za-z])")
_DECIMAL = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")
_BRACED = re.compile(r"\{([^{}]*)\}")


def medq(columns: Columns, text: str) -> Verdict:
    """MedQ-Bench: multiple choice; some tables number the right option from 0."""
    return multiple_choice({**columns, "answer": as_letter(truth(columns))}, text)


def crpe(columns: Columns, text: str) -> Verdict:
    """CRPE: the right answer begins with the letter of an option, whose text is in the question."""
    right = _FIRST_LETTER.match(truth(columns))
    letter, method = read_choice(text, dict.fromkeys("ABCD", ""))
    return Verdict(letter, float(letter is not None and right is not None and letter == right[1]), method)


def lego(columns: Columns, text: str) -> Verdict:
    """LEGO-Puzzles: multiple choice, or the letters of all options in order where ``question_type`` is ``sort``."""
    if columns.get("question_type") != "sort":
        return multiple_choice(columns, text)
    answer, method = open_answer(text)
    orders = _ORDER.findall(answer or "")
    said = re.sub(r"[^A-Z]", "", orders[-1]) if orders else ""
    if sorted(said) != sorted(options(columns)) or not said:
        return Verdict(None, 0.0, "none" if answer else method)
    return Verdict(said, float(said == truth(columns).strip()), method)


def vlm_blind(columns: Columns, text: str) -> Verdict:
    """VLMs are blind: what is in the last braces or marked; two numbers of a grid; yes or no; else the whole answer."""
    right = truth(columns)
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    if columns.get("task") in GRIDS:
        said, wanted = (re.findall(r"\d+", part) for part in (final, right))
        return Verdict(", ".join(said[-2:]) or None, float(said[-2:] == wanted), "numbers" if said else "none")
    if comparable(right) in ("yes", "no"):
        return yes_no({**columns, "answer": comparable(right).capitalize()}, text)
    answer, method = open_answer((_BRACED.findall(final) or marked(final)[:1] or [final])[-1])
    return Verdict(answer, float(answer is not None and same(right, answer)), method)


def visfactor(columns: Columns, text: str) -> Verdict:
    """VisFactor: the field ``answer`` of JSON, else the answer as others have it, in the form that the test wants."""
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    test, right = columns.get("category_id", ""), truth(columns)
    if test in TRUE_OR_FALSE or (test == "VZ3" and right in ("T", "F")):
        word = VISFACTOR_WORDS.get(comparable(answer))
        return Verdict(word, float(word == right), method if word else "none")
    if test in WORDS:
        return Verdict(answer, float(comparable(answer) in map(comparable, right.split(","))), method)
    read = visfactor_value(test, answer)
    return Verdict(read, float(read == right), method if read else "none")


def unit_box(columns: Columns, text: str) -> Verdict:
    """TDBench: the centre of the last four numbers is in the right box; both have numbers from 0 to 1."""
    final, why = final_text(text)
    said, right = _box(final or ""), _box(truth(columns))
    if said is None:
        return Verdict(None, 0.0, why or "none")
    hit = right is not None and contains_centre(right, said)
    return Verdict(", ".join(f"{side:g}" for side in said), float(hit), "box")


def _box(text: str) -> Box | None:
    numbers = [float(number) for number in _DECIMAL.findall(text)[-4:]]
    return (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else None
