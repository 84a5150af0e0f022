"""Numbers in answers, and relaxed accuracy, as the rules `default` have them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from testbed.answers.columns import references, truth
from testbed.answers.quantities.notation import plain_notation
from testbed.answers.quantities.phrases import phrases
from testbed.answers.quantities.quantity import Quantity, quantity, value_in
from testbed.answers.texts import bare, comparable, open_answer, short_answer
from testbed.answers.verdict import Verdict

_WRITTEN = re.compile(
    r"(?<![\w.,])(?:(?:\d{1,3}(?:,\d{3})+|\d+)?\.\d+|\d{1,3}(?:,\d{3})+)(?!\w|[.,]\d)"
)  # numbers that may be written otherwise
_TOLERANCE = 0.05  # of relaxed accuracy
_EQUAL = 1e-9  # relative difference of numbers that are written otherwise
_CONFIDENCES = [*(0.5 + number * ((0.95 - 0.5) / 9) for number in range(9)), 0.95]
_EQUALS = re.compile(r"(?<![<>!=])=(?!=)|≈|\\approx\b")
# Other results than the last: "x = 3 or x = -3"
_RESULT_BEFORE = re.compile(
    r"=[^=,;]{1,60}(?:[,;]|\b(?:or|and|,\s*and)\b|\\text\{\s*(?:or|and)\s*\})\s*(?:or|and)?\s*[A-Za-z]\w{0,8}'?\s*$"
)
_HENCE = re.compile(
    r"[,.;:]\s+(?:and\s+)?(?:so(?!\s+(?:far|that|many|much))|thus|therefore|hence|altogether|in\s+(?:total|all)"
    r"|for\s+a\s+total|(?:the|a)\s+total)\b",
    re.IGNORECASE,
)  # before the result of what was counted
_COMPARED = re.compile(
    r"(?:(?:it(?:'s| is)|is|are)\s+)?(?:not|isn't|never|less than|more than|fewer than|greater than|at least|at most"
    r"|up to|over|under|above|below|between|[<>≤≥≠])\s*",
    re.IGNORECASE,
)
_BOUNDED = re.compile(
    r"\s*(?:\+|\b(?:or|and) (?:more|less|fewer|above|below|over|under|up|higher|lower))$", re.IGNORECASE
)
_FORMULA = re.compile(r"(?:[\d\s^{}()+*/.,-]|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|\\(?:frac|sqrt|pi)(?![A-Za-z]))+")
_TIMES = re.compile(r"\d\s*[xX]\s*\d|[A-Za-z]\s+\d")  # 3 x 4, 5h 30m
_SUFFIXED = re.compile(r"[\d.,]+\s*[kKmMgGbBtT]")  # 3M: a product, or three million
_POWERS = re.compile(r"\d+\s*\^[\d{(^\s)}]+")


def sole_quantity(text: str) -> Quantity | None:
    """Returns the only quantity in a text; for a calculation the one after the last ``=``.

    None unless it is exactly one, and all of its words are understood.
    """
    whole = quantity(text)
    if whole is not None:
        return whole
    results = _EQUALS.split(text)
    if len(results) > 1 and results[-1].strip():
        return None if _RESULT_BEFORE.search(text[: -len(results[-1])].rstrip("=≈ ")) else sole_quantity(results[-1])
    *counted, result = _HENCE.split(text)
    if counted and phrases(result):
        return sole_quantity(result)
    asked, mark, after = text.rpartition("?")
    if mark and after.strip() and not phrases(after) and phrases(asked):  # "6? No."
        return None
    all_phrases = phrases(text)
    read = [phrase for phrase in all_phrases if phrase.quantity is not None]
    said = [phrase.quantity for phrase in read if phrase.quantity is not None and not phrase.negated]
    if not said or len(read) < len(all_phrases):
        return None
    return said[0] if all(same_quantity(number, said[0]) for number in said) else None


def is_another_value(text: str) -> bool:
    """Checks whether a text is certainly not a number: a comparison, a denial, or a formula with variables.

    "less than 5" and ``x^2`` are not 5 and 2; no judge is needed for that.
    """
    plain = bare(plain_notation(text).strip())
    compared, bounded = _COMPARED.match(plain), _BOUNDED.search(plain)
    if compared or bounded:
        return quantity(plain[compared.end() if compared else 0 : bounded.start() if bounded else None]) is not None
    if _TIMES.search(plain) or _SUFFIXED.fullmatch(plain):
        return False
    return bool(_POWERS.fullmatch(plain)) or (
        _FORMULA.fullmatch(plain) is not None and any(char.isalpha() for char in plain) and len(plain) > 1
    )


def same_quantity(one: Quantity, other: Quantity) -> bool:
    """Checks whether two quantities are equal, in units that measure the same, or where one has none."""
    value = value_in(one, other)
    return value is not None and math.isclose(value, other.value, rel_tol=_EQUAL, abs_tol=_EQUAL)


def with_plain_numbers(text: str) -> str:
    """A text with its numbers written in one way: ``10.0`` is ``10``, ``2.50`` is ``2.5``, ``1,000`` is ``1000``."""

    def plain(match: re.Match[str]) -> str:
        whole, point, decimals = match.group().replace(",", "").partition(".")
        decimals = decimals.rstrip("0")
        return f"{whole or '0'}{point if decimals else ''}{decimals}"

    return _WRITTEN.sub(plain, text)


def number(columns: Mapping[str, str], text: str) -> Verdict:
    """Scores exactly the right number, in digits or words, and no other number in the answer."""
    right = quantity(truth(columns))
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    if right is None:
        return Verdict(answer, float(comparable(answer) == comparable(truth(columns))), method)
    said = sole_quantity(answer)
    if said is None:
        return Verdict(
            answer if is_another_value(answer) else None, 0.0, method if is_another_value(answer) else "none"
        )
    return Verdict(f"{said.value:.15g}", float(same_quantity(said, right)), method)


def mean_relative_accuracy(said: float, right: float) -> float:
    """VSI-Bench's accuracy of a number (arXiv 2412.14171): the share of ten tolerances, 50 % to 5 %, that hold."""
    error = abs(said - right) if right == 0 else abs((said - right) / right)
    return sum(error <= 1 - confidence for confidence in _CONFIDENCES) / len(_CONFIDENCES)


def relative(columns: Mapping[str, str], text: str) -> Verdict:
    """Mean relative accuracy of the only number in an answer."""
    right = quantity(truth(columns))
    answer, method = open_answer(text)
    said = None if answer is None else sole_quantity(answer)
    if said is None or right is None:
        return Verdict(None, 0.0, method if answer is None else "none")
    return Verdict(f"{said.value:.15g}", mean_relative_accuracy(said.value, right.value), method)


def relaxed(columns: Mapping[str, str], text: str) -> Verdict:
    """Relaxed accuracy (ChartQA): a number within 5 % of the right one, or an equal text."""
    answer, method = short_answer(text, references(columns))
    if answer is None:
        return Verdict(None, 0.0, method)
    return Verdict(answer, float(any(_relaxed(reference, answer) for reference in references(columns))), method)


def _relaxed(reference: str, answer: str) -> bool:
    said, right = quantity(answer), quantity(reference)
    if said is None or right is None:
        return comparable(answer) == comparable(reference)
    if said.percent == right.percent:
        value = value_in(said, right)
        return value is not None and _near(value, right.value)
    # 5% is 5 as well as 0.05: tables and questions are not consistent about it
    value, target = (said.value, right.value) if said.percent else (right.value, said.value)
    return _near(value, target) or _near(value / 100, target)


def _near(value: float, target: float) -> bool:
    return abs(value - target) <= _TOLERANCE * abs(target)
