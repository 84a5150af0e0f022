"""A text that is a quantity, and nothing else: sign, number, factor and unit, each understood."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from testbed.answers.expressions import value_of
from testbed.answers.languages import POLITE_IS
from testbed.answers.quantities.notation import plain_notation
from testbed.answers.quantities.number_words import WORDS, factor_of, part_of, value_of_words
from testbed.answers.quantities.units import Unit, is_percent, unit_of

_LONGEST = 120  # characters of a quantity
_ABOUT = re.compile(
    r"(?:≈|~|=|:|大?[约約]|およそ|약|(?:about|approximately|approx\.?|around|roughly|circa|ca\.|exactly|precisely)(?=\s|\d))\s*",
    re.IGNORECASE,
)
_POLITE = re.compile(rf"(?:{POLITE_IS})$")
_NAMED = re.compile(r"[A-Za-z](?:_\{?\w{1,8}\}?)?\s*(?==[^=]+$)|[A-Za-z]\s*(?=≈)")  # x = 5
_SIGN = re.compile(r"([-+−]|(?:minus|negative|plus)\s+)\s*", re.IGNORECASE)
_MONEY = re.compile(r"(US\$|[$€£¥₹₩]|(?:USD|EUR|GBP|RMB|CNY)\b)\s*")
_LITERAL = re.compile(r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,3})?|\.\d+")
_AFTER_SCALE = re.compile(r"\b(thousand|million|billion|trillion),\s+")
_MIXED = re.compile(r"(\d+)\s+(\d+)\s*/\s*(\d+)")
_SHORT_FACTORS = {"k": 1e3, "K": 1e3, "bn": 1e9, "mn": 1e6, "mln": 1e6, "mio": 1e6}
_MONEY_FACTORS = {"M": 1e6, "m": 1e6, "MM": 1e6, "B": 1e9, "b": 1e9, "T": 1e12}
_WIDE_FACTORS = dict(zip("百千万萬亿億兆천만억", (1e2, 1e3, 1e4, 1e4, 1e8, 1e8, 1e12, 1e3, 1e4, 1e8), strict=True))
_WIDE_SCALED = re.compile(rf"([\d.,]*\d)\s*([{''.join(_WIDE_FACTORS)}]{{1,3}})")
_GLUED = re.compile(r"(.*?[\d.])\s*([A-Za-z]{1,3})")
_FACTORIAL = re.compile(r"(\d{1,2})!")
_RANGE = re.compile(r"-?[\d.,]+\s*[-–—~]\s*-?[\d.,]+|[\d.,]+\s*:\s*[\d.,]+|.*\d,\d{1,2}(?!\d).*")
_DATE = re.compile(r"\d+(?:[-/]\d+){2,}|\d+(?:\.\d+){2,}")
_DECADE = re.compile(r"[12]\d\d0\s?'?s")
_OF_ONE = re.compile(r"(half|(?:a|one|two|three)\s+\w+\s+of)\s+an?", re.IGNORECASE)  # "half a metre"
_BEFORE_UNIT = re.compile(
    r"(?<=[\d)}.π])\s*(?=[A-Za-z°%‰µμΩ$€£¥₹₩℃℉])|(?<=[\d百千万萬亿億兆천만억])\s*(?=[\u3041-\ud7a3])|(?<=[A-Za-z])\s+(?=\S)"
)


@dataclass(frozen=True)
class Quantity:
    """A number with its unit; None if it has none.

    Attributes:
        value: In the unit.
        unit: The unit.
    """

    value: float
    unit: Unit | None = None

    @property
    def percent(self) -> bool:
        """True if it is a percentage."""
        return is_percent(self.unit)


def quantity(text: str) -> Quantity | None:
    """Reads a text as a quantity: ``3 million``, ``minus five``, ``$1,000``, ``28\\%``, ``\\frac{1}{2} m``.

    A hedge such as "about" does not change its value. None unless all of the text is understood.
    """
    return plain_quantity(plain_notation(text))


def plain_quantity(text: str) -> Quantity | None:
    """Returns the `quantity` of a text in plain notation."""
    plain = text.strip().strip("*_`\"'").strip()
    if len(plain) > _LONGEST:
        return None
    plain = plain[:-1].rstrip() if plain.endswith(".") and not plain.endswith("..") else plain
    plain = _POLITE.sub("", plain) if not plain.isascii() else plain
    for lead in (_NAMED, _ABOUT):
        match = lead.match(plain)
        plain = plain[match.end() :] if match else plain
    return _signed(plain)


def _signed(text: str) -> Quantity | None:
    whole = _measured(text)
    if whole is not None:
        return whole
    sign = _SIGN.match(text)
    if sign is None:
        return None
    rest = _measured(text[sign.end() :])
    negative = sign[1].strip().lower() in ("-", "−", "minus", "negative")
    return None if rest is None else Quantity(-rest.value if negative else rest.value, rest.unit)


def _measured(text: str) -> Quantity | None:
    """A quantity without a sign in words: with money before it, or a unit behind it, or without a unit."""
    if _DECADE.fullmatch(text):
        return None
    money = _MONEY.match(text)
    if money:
        body = text[money.end() :].strip()
        value = _number(body, _MONEY_FACTORS)
        return None if value is None else Quantity(value, unit_of(money[1]))
    value = _number(text)
    if value is not None:
        return Quantity(value)
    for match in _splits(text):
        unit = unit_of(match[1])
        share = _OF_ONE.fullmatch(match[0])
        number = share[1].removesuffix("of") if share else match[0]
        value = None if unit is None else _number(number, _MONEY_FACTORS if match[1] in "$€£¥₹₩" else {})
        if value is not None:
            return Quantity(value, unit)
    return None


def _splits(text: str) -> list[tuple[str, str]]:
    """The ways to cut a text into a number and a unit, the longest unit first."""
    places = {match.start() for match in _BEFORE_UNIT.finditer(text)}
    return [(text[:place].strip(), text[place:].strip()) for place in sorted(places)]


def _number(text: str, factors: dict[str, float] | None = None) -> float | None:
    """The number that a text is, in digits, words or a formula, with its factors."""
    text = text.strip()
    if not text or _RANGE.fullmatch(text) or _DATE.fullmatch(text):
        return None
    mixed = _MIXED.fullmatch(text)
    if mixed and int(mixed[3]):
        return int(mixed[1]) + int(mixed[2]) / int(mixed[3])
    factorial = _FACTORIAL.fullmatch(text)
    if factorial:
        return float(math.factorial(int(factorial[1])))
    if text[0].isdigit() or text[0] in ".-+":
        return _with_factor(text, factors or {})
    if text[0].isascii() and text[0].isalpha():
        words = _AFTER_SCALE.sub(r"\1 ", text.lower()).replace("-", " ").split()
        return value_of_words(words) if words[-1] in WORDS or len(words) > 1 or words[0] in WORDS else None
    return value_of(text)


def _with_factor(text: str, factors: dict[str, float]) -> float | None:
    value = value_of(text)
    if value is not None:
        return value
    head, _, tail = text.partition(" ")
    if tail.lower().startswith("and ") and _LITERAL.fullmatch(head):
        part = value_of_words(["zero", *tail.lower().replace("-", " ").split()])
        return None if part is None or part >= 1 else float(head.replace(",", "")) + part
    if (scaled := _WIDE_SCALED.fullmatch(text)) and _LITERAL.fullmatch(scaled[1]):
        return float(scaled[1].replace(",", "")) * math.prod(_WIDE_FACTORS[char] for char in scaled[2])
    factor = (factor_of(tail.lower().split()) or part_of(tail.lower())) if tail else None
    if factor is None and (glued := _GLUED.fullmatch(text)):
        head, factor = glued[1], (_SHORT_FACTORS | factors).get(glued[2])
    if factor is None or not _LITERAL.fullmatch(head.lstrip("-+")):
        return None
    return float(head.replace(",", "")) * factor


def value_in(one: Quantity, other: Quantity) -> float | None:
    """The value of a quantity in the unit of another; None if they measure different things."""
    if one.unit is None or other.unit is None or one.unit == other.unit:
        return one.value
    if one.unit.measures != other.unit.measures:
        return None
    return one.value * one.unit.size / other.unit.size
