"""Benchmarks of mathematics and reasoning, as the rules `default` read their answers.

Where a rule could only recognise right answers but not wrong ones (for texts and formulas, say), it reads nothing: the
answer is left to a judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from testbed.answers.choice import read_choice
from testbed.answers.columns import listed, options, references, truth
from testbed.answers.expressions import value_of
from testbed.answers.numbers import is_another_value, sole_quantity
from testbed.answers.quantities.quantity import Quantity, quantity
from testbed.answers.texts import bare, comparable, final_text, marked, open_answer
from testbed.answers.verdict import UNREAD, Columns, Verdict

_CLOSE = 1e-6  # numbers that differ by no more are equal
_CLOSE_DYNAMATH = 1e-3
_SIGNS = ("", *(f"{sign}^1" for sign in ("angle", "dollar", "euro", "sterling", "yen")))
_DEGREES, _RADIANS = re.compile(r"\\circ|°|\bdegrees?\b"), re.compile(r"\\pi|π|\bpi\b")
_LETTERS = re.compile(r"[A-Z](?:(?:\s*(?:,|/|&|;|\||\+|\band\b)\s*|\s*)[A-Z])*")
_BRACES = re.compile(r"\{([^{}]*)\}")
_SHORT_ANSWER = re.compile(r"""["']short answer["']\s*:\s*(?:"((?:[^"\\]|\\.)*)"|'([^'\n]*)'|([^\s,}"']+))""")


def left_to_judge(columns: Columns, text: str) -> Verdict:
    """Reads nothing, except that there is no answer at all."""
    _, why = final_text(text)
    return Verdict(None, 0.0, why or "none")


def equal(columns: Columns, text: str) -> Verdict:
    """An open answer that is one of the right ones, as a number, a text or a formula; a judge settles any other."""
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    hit = any(same(right, answer) for right in references(columns))
    return Verdict(answer, 1.0, method) if hit else UNREAD


def math_vista(columns: Columns, text: str) -> Verdict:
    """MathVista (arXiv 2310.02255): a letter, an integer, a number rounded as the right one is, or a list."""
    if columns.get("question_type") == "multi_choice":
        right = columns.get("answer_option", truth(columns))
        return _by_letter(*read_choice(text, listed_options(columns)), right)
    kind, right = columns.get("answer_type", ""), truth(columns)
    if kind == "list":
        return _numbers(right, text)
    if kind not in ("integer", "float"):
        return left_to_judge(columns, text)
    number, method, answer = _number(text)
    wanted = value_of(right)
    if number is None or wanted is None:
        return _unread(answer, method)
    digits = len(right.strip().partition(".")[2]) if kind == "float" else 9
    equal = abs(round(number.value, digits) - round(wanted, digits)) < _CLOSE
    return Verdict(f"{number.value:.15g}", float(equal), method)


def math_vision(columns: Columns, text: str) -> Verdict:
    """MATH-Vision (arXiv 2402.14804): a letter, or a number within 1e-6 of the right one."""
    choices = listed_options(columns)
    if choices:
        return _by_letter(*read_choice(text, choices), truth(columns))
    return _as_value(columns, text)


def math_verse(columns: Columns, text: str) -> Verdict:
    """MathVerse (arXiv 2403.14624): a letter of the choices in the question, or a number within 1e-6."""
    right = truth(columns).strip()
    if columns.get("question_type", "multi-choice") == "multi-choice" and right in tuple(ascii_uppercase):
        said = columns.get("question_for_eval") or columns.get("question", "")
        named = re.findall(r"^\s*\(?([A-H])[:.)]\s*(.*?)\s*$", said, re.MULTILINE)
        return _by_letter(*read_choice(text, dict(named) or dict.fromkeys("ABCDE", "")), right)
    return _as_value(columns, text)


def dyna_math(columns: Columns, text: str) -> Verdict:
    """DynaMath (arXiv 2411.00836): the field ``short answer`` of JSON, else as others: a letter, or within 0.001."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    fields = _SHORT_ANSWER.findall(final)
    said = next((field for field in fields[-1] if field), "") if fields else final
    kind = columns.get("answer_type")
    if kind == "multiple choice":
        return _by_letter(*read_choice(said, dict.fromkeys("ABCDE", "")), truth(columns))
    if kind == "float":
        return _as_value(columns, said, _CLOSE_DYNAMATH)
    return left_to_judge(columns, text)


def letters(columns: Columns, text: str) -> Verdict:
    """A letter, or several where the question asks for all that fit (LogicVista, arXiv 2407.04973)."""
    right, choices = letters_of(truth(columns)), options(columns) or dict.fromkeys("ABCDEFGH", "")
    answer, method = open_answer(text)
    several = letters_of(answer or "")
    if len(several) > 1 and set(several) <= set(choices):
        return Verdict(several, float(several == right), method)
    letter, method = read_choice(text, choices)
    return Verdict(letter, float(letter is not None and letter == right), method)


def in_braces(columns: Columns, text: str) -> Verdict:
    """ZeroBench (arXiv 2502.09696): what is in the last braces, else marked as the answer, equals the right one."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    contents = _in_braces(final) or _BRACES.findall(final) or marked(final)[:1]
    answer, _ = open_answer(contents[-1]) if contents else (None, "none")
    if answer is None:
        return UNREAD
    return Verdict(answer, float(same(truth(columns), answer)), "braces")


def _in_braces(text: str) -> list[str]:
    """Returns the content of braces, including inner braces."""
    contents, depth, start = [], 0, 0
    for match in re.finditer("[{}]", text):
        if match.group() == "{":
            start = start if depth else match.end()
            depth += 1
        elif depth:
            depth -= 1
            contents += [] if depth else [text[start : match.start()]]
    return contents


def same(right: str, answer: str) -> bool:
    """Checks whether two answers are the same number, or the same words or formula."""
    wanted, value = value_without_sign(right), value_without_sign(answer)
    if wanted is not None and value is not None and not _scaled(right, answer):
        return abs(value - wanted) < _CLOSE
    return comparable(answer) == comparable(right) or _formula(answer) == _formula(right)


def _scaled(right: str, answer: str) -> bool:
    """Checks whether two numbers cannot be compared directly: percentages with others, degrees with multiples of π."""
    if ("%" in right) != ("%" in answer):
        return True
    return any(_DEGREES.search(one) and _RADIANS.search(other) for one, other in ((right, answer), (answer, right)))


def value_without_sign(text: str) -> float | None:
    """The number that a text is, whatever its sign of percent, degree or dollar; None with another unit."""
    number = quantity(bare(text))
    if number is None or not (number.unit is None or number.unit.measures in _SIGNS):
        return None
    return number.value


def letters_of(text: str) -> str:
    """The letters of a text that is nothing else, such as ``A, C`` or ``(A) and (C)``: ``AC``; else an empty text."""
    plain = re.sub(r"[()\[\]{}\"'`*.]", " ", text).strip()
    return "".join(sorted(set(re.findall(r"[A-Z]", plain)))) if _LETTERS.fullmatch(plain) else ""


def listed_options(columns: Columns) -> dict[str, str]:
    """The letters of the options in the list ``choices`` → their texts."""
    return dict(zip(ascii_uppercase, listed(columns.get("choices", "")) or [], strict=False))


def _formula(text: str) -> str:
    return re.sub(r"\s|\\left|\\right|\\[,;!]|\$", "", text.replace("\\dfrac", "\\frac")).rstrip(".")


def _by_letter(letter: str | None, method: str, right: str) -> Verdict:
    return Verdict(letter, float(letter is not None and letter == right.strip().upper()), method)


def _as_value(columns: Columns, text: str, close: float = _CLOSE) -> Verdict:
    """A number where the right answer is one; of other answers nothing is read."""
    right = truth(columns)
    wanted = value_without_sign(right)
    if wanted is None:
        return left_to_judge(columns, text)
    number, method, answer = _number(text)
    if number is None or _scaled(right, answer):
        return _unread(answer, method) if number is None else UNREAD
    return Verdict(f"{number.value:.15g}", float(abs(number.value - wanted) < close), method)


def _number(text: str) -> tuple[Quantity | None, str, str]:
    """The number that an answer gives, how it was found, and the answer without what is around it."""
    answer, method = open_answer(text)
    return (None, method, "") if answer is None else (sole_quantity(answer), method, answer)


def _unread(answer: str, method: str) -> Verdict:
    """Returns the verdict on an answer without a number: wrong if it certainly means something else, else unread."""
    if answer and is_another_value(answer):
        return Verdict(answer, 0.0, method)
    return Verdict(None, 0.0, "none" if answer else method)


def _numbers(right: str, text: str) -> Verdict:
    wanted = _values(listed(right) or [])
    answer, method = open_answer(text)
    if answer is None or not wanted:
        return Verdict(None, 0.0, method if answer is None else "none")
    lists = re.findall(r"\[[^\[\]]*\]", answer)
    numbers = _values(listed(lists[-1]) or []) if lists else None
    if not numbers:
        return UNREAD
    equal = len(numbers) == len(wanted) and all(abs(a - b) < _CLOSE for a, b in zip(numbers, wanted, strict=True))
    return Verdict(lists[-1], float(equal), method)


def _values(items: Sequence[str]) -> list[float] | None:
    all_values = [value_of(item) for item in items]
    values = [value for value in all_values if value is not None]
    return values if len(values) == len(all_values) else None
