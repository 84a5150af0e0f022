"""Numbers in answers, and relaxed accuracy, as the rules `default` have them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from testbed.answers.columns import references, truth
from testbed.answers.published.words import NUMBER_WORDS
from testbed.answers.texts import bare, comparable, open_answer
from testbed.answers.verdict import Verdict

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(rf"([-+]?)\s*[$€£¥₹]?\s*({_DIGITS})(e[-+]?\d{{1,3}})?\s*(%?)", re.IGNORECASE)
_IN_TEXT = re.compile(rf"(?<![\w.])(?:(?<![\w)])[-+])?(?:{_DIGITS})(?![\w]|\.\d)")
_WORDS = {
    word: float(number)
    for number, word in enumerate(
        [*NUMBER_WORDS, *"eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()]
    )
}
_WRITTEN = re.compile(
    r"(?<![\w.,])(?:(?:\d{1,3}(?:,\d{3})+|\d+)?\.\d+|\d{1,3}(?:,\d{3})+)(?!\w|[.,]\d)"
)  # numbers that may be written otherwise
_TOLERANCE = 0.05  # of relaxed accuracy


def as_number(text: str) -> tuple[float, bool] | None:
    """The number that a text is, and whether it is a percentage: ``1,000``, ``$3.50``, ``-2``, ``5 %``, ``three``."""
    plain = bare(text)
    match = _NUMBER.fullmatch(plain)
    if match is None:
        word = _WORDS.get(plain.lower())
        return None if word is None else (word, False)
    sign, digits, exponent, percent = match.groups()
    value = float(f"{sign}{digits.replace(',', '')}{exponent or ''}")
    return (value, bool(percent)) if math.isfinite(value) else None


def sole_number(text: str) -> float | None:
    """The number in a text; of a calculation the one after the last ``=``. None unless it is exactly one."""
    whole = as_number(text)
    if whole is not None:
        return whole[0]
    found = {float(each.replace(",", "")) for each in _IN_TEXT.findall(text)}
    found |= {_WORDS[word] for word in re.findall(r"[a-z]+", text.lower()) if word in _WORDS}
    if len(found) == 1:
        return found.pop()
    _, equals, result = text.rpartition("=")
    return sole_number(result) if equals else None


def with_plain_numbers(text: str) -> str:
    """A text with its numbers written in one way: ``10.0`` is ``10``, ``2.50`` is ``2.5``, ``1,000`` is ``1000``."""

    def plain(match: re.Match[str]) -> str:
        whole, point, decimals = match.group().replace(",", "").partition(".")
        decimals = decimals.rstrip("0")
        return f"{whole or '0'}{point if decimals else ''}{decimals}"

    return _WRITTEN.sub(plain, text)


def number(columns: Mapping[str, str], text: str) -> Verdict:
    """Exactly the right number, in digits or words, and no other number in the answer."""
    right = as_number(truth(columns))
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    if right is None:
        return Verdict(answer, float(comparable(answer) == comparable(truth(columns))), method)
    value = sole_number(answer)
    if value is None:
        return Verdict(None, 0.0, "none")
    return Verdict(f"{value:.15g}", float(value == right[0]), method)


def relaxed(columns: Mapping[str, str], text: str) -> Verdict:
    """Relaxed accuracy (ChartQA): a number within 5 % of the right one, or an equal text."""
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    return Verdict(answer, float(any(_relaxed(each, answer) for each in references(columns))), method)


def _relaxed(reference: str, answer: str) -> bool:
    found, right = as_number(answer), as_number(reference)
    if found is None or right is None:
        return comparable(answer) == comparable(reference)
    (value, percent), (target, of_target) = found, right
    if percent == of_target:
        return _near(value, target)
    # 5% is 5 as well as 0.05: tables and questions are not consistent about it
    value, target = (value, target) if percent else (target, value)
    return _near(value, target) or _near(value / 100, target)


def _near(value: float, target: float) -> bool:
    return abs(value - target) <= _TOLERANCE * abs(target)
