"""English number words: ``forty-two``, ``one hundred and five``, ``half a million``, ``three quarters``."""

from __future__ import annotations

from collections.abc import Sequence

_ONES = "zero one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_UNITS = {word: float(value) for value, word in enumerate([*_ONES, *_TEENS])}
_TENFOLD = {word: 10.0 * value for value, word in enumerate(_TENS, start=2)} | {"fourty": 40.0}
_THOUSANDS = ("thousand", "million mln mio mn", "billion bln bn", "trillion tn", "quadrillion")
_SCALES = {
    f"{word}{ending}": 1000.0**power
    for power, words in enumerate(_THOUSANDS, start=1)
    for word in words.split()
    for ending in ("", "s")
}
_FACTORS = {"hundred": 100.0, "hundreds": 100.0, "dozen": 12.0, "dozens": 12.0, "lakh": 1e5, "crore": 1e7, **_SCALES}
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth".split()
_PARTS = {word: 1.0 / value for value, word in enumerate(_ORDINALS, start=3)}
_PARTS |= {"half": 0.5, "quarter": 0.25, "hundredth": 0.01, "thousandth": 0.001}
_PARTS |= {f"{word}s": value for word, value in _PARTS.items()} | {"halves": 0.5}
_ARTICLES = ("a", "an")

WORDS = frozenset({*_UNITS, *_TENFOLD, *_FACTORS, "half", "halves", "quarter", "quarters"})
NUMERALS = frozenset({*_UNITS, *_TENFOLD, "half"})  # a phrase may begin with one of these
INNER = frozenset({*WORDS, *_PARTS, "and", "point", "a", "an"})  # may stand within a phrase


def factor_of(words: Sequence[str]) -> float | None:
    """The product of factors: ``hundred thousand``; None if there is another word."""
    product = 1.0
    for word in words:
        if word not in _FACTORS:
            return None
        product *= _FACTORS[word]
    return product


def part_of(word: str) -> float | None:
    """Returns the value of a fraction's name: ``thirds``; None if it is not one."""
    return _PARTS.get(word)


def value_of_words(words: Sequence[str]) -> float | None:
    """Returns the number that lower-case words mean; None unless all of them together are one number."""
    for split, word in enumerate(words):
        if word == "and" and split and (part := _part(words[split + 1 :])) is not None:
            whole = _cardinal(words[:split])
            return None if whole is None else whole + part
    part = _part(words)
    return part if part is not None else _cardinal(words)


def _part(words: Sequence[str]) -> float | None:
    """A fraction: ``half``, ``a third``, ``three quarters``, ``half a million``."""
    if not words:
        return None
    if len(words) > 2 and words[0] in ("half", "quarter") and words[1] in _ARTICLES:
        factor = factor_of(words[2:])
        return None if factor is None else _PARTS[words[0]] * factor
    *before, last = words
    if last not in _PARTS:
        return None
    if not before or before[0] in _ARTICLES:
        return _PARTS[last] if last in ("half", "quarter") or (before and len(before) == 1) else None
    count = _cardinal(before)
    return None if count is None else count * _PARTS[last]


def _cardinal(words: Sequence[str]) -> float | None:
    if "point" in words:
        return _decimal(words)
    if len(words) > 1 and words[0] in _ARTICLES and words[1] in _FACTORS:
        words = ["one", *words[1:]]
    total, last, place = 0.0, float("inf"), 0
    while place < len(words):
        begun = place
        if words[place] == "and" and place:
            place += 1
        value, place = _below_thousand(words, place)
        if value is None:
            return None
        scale = 1.0
        while place < len(words) and words[place] in _FACTORS:
            scale *= _FACTORS[words[place]]
            place += 1
        if scale >= last or (begun and not value) or (scale == 1 and value * scale >= last):
            return None
        total, last = total + value * scale, scale
        if scale == 1 and place < len(words):
            return None
    return total if words else None


def _below_thousand(words: Sequence[str], place: int) -> tuple[float | None, int]:
    value, place = _below_hundred(words, place)
    if value is None or not value or place >= len(words) or words[place] != "hundred":
        return value, place
    value *= 100
    place += 1
    after = place + 1 if place < len(words) and words[place] == "and" else place
    rest, end = _below_hundred(words, after)
    return (value + rest, end) if rest else (value, place)


def _below_hundred(words: Sequence[str], place: int) -> tuple[float | None, int]:
    word = words[place] if place < len(words) else ""
    if word in _UNITS:
        return _UNITS[word], place + 1
    if word not in _TENFOLD:
        return None, place
    ones = _UNITS.get(words[place + 1], 0.0) if place + 1 < len(words) else 0.0
    return (_TENFOLD[word] + ones, place + 2) if 0 < ones < 10 else (_TENFOLD[word], place + 1)


def _decimal(words: Sequence[str]) -> float | None:
    """Reads ``two point five``, ``zero point zero one``, ``one point five million``."""
    point = words.index("point")
    whole = _cardinal(words[:point]) if point else 0.0
    digits = [word for word in words[point + 1 :] if word in _UNITS and _UNITS[word] < 10]
    factor = factor_of(words[point + 1 + len(digits) :])
    if whole is None or factor is None or not digits or list(words[point + 1 :][: len(digits)]) != digits:
        return None
    return (whole + float("0." + "".join(str(int(_UNITS[word])) for word in digits))) * factor
