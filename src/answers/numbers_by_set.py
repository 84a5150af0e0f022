"""Numbers, words and shapes of single sets, as the rules `default` read them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from testbed.answers.choice import among, read_choice
from testbed.answers.columns import listed, truth
from testbed.answers.numbers import number, sole_quantity
from testbed.answers.published.numbers_by_set import moves, relative_accuracy, same_in_spatial_457
from testbed.answers.science_prompts import CHOSEN, VIEW_CHANGE
from testbed.answers.texts import comparable, open_answer
from testbed.answers.verdict import UNREAD, Columns, Verdict
from testbed.answers.yes_no import yes_no

_MOVES = re.compile(r"(?:move|rotate)_\w+\s*:\s*-?\d+(?:\.\d+)?")
_FROM_ZERO = {str(place): letter for place, letter in enumerate("ABCD")}


def sp_bench(columns: Columns, text: str) -> Verdict:
    """SPBench: an option, or a number by its mean relative accuracy, by ``question_type``."""
    if columns.get("question_type") in CHOSEN:
        return among(candidates)(columns, text)
    return _relative(columns, text)


def spar_bench(columns: Columns, text: str) -> Verdict:
    """SPAR-Bench: an option, a number by its mean relative accuracy, or moves and turns, by ``task``."""
    task = columns.get("task", "")
    if task == VIEW_CHANGE:
        verdict = moves(columns, _MOVES.findall(text))
        return verdict if verdict.extracted else UNREAD
    return _relative(columns, text) if "_prediction_" in task else among(candidates)(columns, text)


def candidates(columns: Columns) -> Mapping[str, str]:
    """The options in the list ``candidates``, each with its letter; A to F without it."""
    parts = [item.strip().partition(".") for item in listed(columns.get("candidates", "")) or ()]
    return {letter: rest.strip() for letter, dot, rest in parts if dot and len(letter) == 1} or dict.fromkeys(
        "ABCDEF", ""
    )


def _relative(columns: Columns, text: str) -> Verdict:
    answer, method = open_answer(text)
    said = sole_quantity(answer) if answer is not None else None
    if said is None:
        return Verdict(None, 0.0, "none" if answer else method)
    return Verdict(f"{said.value:.15g}", relative_accuracy(said.value, truth(columns)), method)


def omni_3d(columns: Columns, text: str) -> Verdict:
    """Omni3D-Bench: a whole number, yes or no, a word, or a number by its mean relative accuracy."""
    kind, right = columns.get("answer_type"), truth(columns)
    core = text.rpartition("<ans>")[2].partition("</ans>")[0]
    if kind == "float":
        return _relative(columns, core)
    if kind == "int":
        return number(columns, core)
    if comparable(right) in ("yes", "no"):
        return yes_no({**columns, "answer": comparable(right).capitalize()}, core)
    answer, method = open_answer(core)
    return Verdict(answer, float(answer is not None and comparable(answer) == comparable(right)), method)


def spatial_457(columns: Columns, text: str) -> Verdict:
    """Spatial457: the field ``Answer``, or the answer as others have it; a shape of the same kind is right too."""
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    return Verdict(answer, float(same_in_spatial_457(comparable(answer), truth(columns).strip())), method)


def reason_map(columns: Columns, text: str) -> Verdict:
    """ReasonMap-Plus: yes or no (1 or 0 in the table), an option (numbered from 0), or a number, by ``type``."""
    kind, right = columns.get("type", "").lower(), truth(columns).strip()
    if "torf" in kind:
        return yes_no({**columns, "answer": {"1": "Yes", "0": "No"}.get(right, right)}, text)
    if "counting1" in kind:
        letter, method = read_choice(text, dict.fromkeys("ABCD", ""))
        return Verdict(letter, float(letter is not None and letter == _FROM_ZERO.get(right)), method)
    return number(columns, text)


def core_cognition(columns: Columns, text: str) -> Verdict:
    """CoreCognition: yes or no, or the letter of an option, by ``question_type``."""
    right = truth(columns).strip()
    if columns.get("question_type") == "YORN":
        return yes_no({**columns, "answer": right.capitalize()}, text)
    letter, method = read_choice(text, dict.fromkeys("ABCDEF", ""))
    return Verdict(letter, float(letter is not None and letter == right.upper()), method)
