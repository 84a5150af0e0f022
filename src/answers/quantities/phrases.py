"""Finds the quantities in a sentence: each number with all the words that change its value.

A phrase that is not understood ("at least five", ``x^2``, "3 or more") is kept without a quantity, so that
callers see that the sentence has an unread number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from testbed.answers.languages import COMPARISONS, SCALES
from testbed.answers.quantities.notation import plain_notation
from testbed.answers.quantities.number_words import INNER, NUMERALS, WORDS, factor_of
from testbed.answers.quantities.quantity import Quantity, plain_quantity

_LONGEST = 4000  # characters of a text in which phrases are looked for
_OPERATORS = frozenset("+ - * / ^ × ÷ = < > ≤ ≥ ≠ ± ~ ≈ – —".split())
_DASHES = frozenset("- – —".split())
_SIGNS = ("minus", "negative")
# "one" is a number after these words, and a pronoun before those.
_COUNTS = frozenset(
    "a is are was were there only just exactly about count counts equals equal get total has have had contains shows"
    " see of be to with for and minus negative = than least most not approximately nearly number".split()
)
_AFTER_PRONOUN = frozenset("can could may might must should would has on at with that who which".split())
_NUMERIC = re.compile(r"[^A-Za-z\u2e80-\U0003ffff]*\d|\\(?:frac|sqrt)|.*[π√]|[A-Z]{0,3}[$€£¥₹₩]\d")
_NAME = re.compile(r"\d+(?:st|nd|rd|th|[dD])\b|\d+-[A-Za-z]{2,}|[A-Za-z_]\w*$")
_FORMULA = re.compile(r"[A-Za-z\\][^\s]*[\^*/+<>={}\\][^\s]*")
_EDGE_BEFORE, _EDGE_AFTER = "\"'`*_([{«“#•", "\"'`*_)]}»”.,;:?!"
_SCALE = re.compile("thousand|million|billion|trillion", re.IGNORECASE)  # "two thousand, one hundred" is one number
_BREAK = re.compile(r"[.,;:?!)\]]")

_CHANGED_BEFORE = re.compile(
    r"(?:[\^_√±<>≤≥≠+*/]|[\^_]\{|\\(?:sqrt|[dt]?frac|log|ln|leq?|geq?|neq?)\b\S*|\b(?:minus|negative|sin|cos|tan|log|mod))\s*$",
    re.IGNORECASE,
)
_CHANGED_AFTER = re.compile(r"\s*\^(?!\s*\{?\s*\\circ)|!\S|\s?[-–+*/×]\s?\d|\+|\\pi|π|:\d|\s+mod\b|以上|以下|未満|より")
_CLAUSE_START = re.compile(r"[.,;:!?\n]")
_NEGATED = re.compile(
    r"\b(?:not|never|cannot|neither|nor|without|hardly|scarcely|doubt(?:s|ful)?|wrong|incorrect|except|unlikely)\b"
    r"|n't\b|\bno\b(?! doubt)",
    re.IGNORECASE,
)
_COMPARED_BEFORE = re.compile(
    r"\b(?:than|least|most|over|under|above|below|beyond|exceed\w*|surpass\w*|within|between|almost|nearly|barely|near"
    r"|close to|up to|less|fewer|half of|twice|double|triple|or|either|minimum of|maximum of|times|versus|vs"
    r"|any\w* but|all but"
    r"|\d\s?\S{0,8}\s+to|(?:tens|dozens|hundreds|thousands) of"
    r"|(?:thirds?|quarters?|(?:four|fif|six|seven|eigh|nin|ten|hundred|thousand)ths?|percent|%) of"
    r"|(?:multiples?|factor|power|square|cube|root|inverse|reciprocal) of|plus|divided by|multiplied by)"
    r"(?:\s+(?:the|a|an|of|be|is|only|just|exactly|about))*\s*$",
    re.IGNORECASE,
)
_ADDS_UP = re.compile(
    r"\b(?:add|adds|adding|added|sum|sums|total|totals|amount|amounts|come|comes|brings?)\s+up\s+to\s*$", re.IGNORECASE
)
_COMPARED_AFTER = re.compile(
    r"to\s+[-$€£]?\d|tens\b|and\s+counting\b|(?:minimum|maximum|min|max)\b|[ap]\.?m\b|o'clock\b|(?:(?:or|and|to)\s+(?:\w+\s+)?(?:more|less|fewer|above|below|over|under|higher|lower|greater|up|smaller|larger|beyond)\b"
    r"|at\s+(?:least|most)\b|or\s+(?!so\b)\S|plus\b|minus\b|squared\b|cubed\b|factorial\b|to\s+the\s+(?:power|second|third|\w+th)\b|divided\b|multiplied\b"
    r"|out\s+of\b|in\s+\d|of\s+\d|times\s+(?:as|more|less|the|larger|smaller|bigger|greater|\d)|(?:more|less|fewer)\s+than\b"
    r"|halves\b|thirds?\b|fourths?\b|fifths?\b|sixths?\b|sevenths?\b|eighths?\b|ninths?\b|tenths?\b|hundredths?\b|thousandths?\b"
    r"|or\b(?!\s+so\b)|(?:is|are|was|were|seems?|would\s+be)\s*(?:not\b|n't\b|wrong|incorrect|false|too\b)"
    r"|(?:\w+n't|cannot|(?:can|could|do|does|would|will)\s+not)\s)",
    re.IGNORECASE,
)
_ENGLISH = re.compile(
    r"\b(?:the|not|but|in|is|are|there|was|were|it|it's|its|i|we|that|this|these|has|have|had|with|which|so|thus|therefore|hence|answer|you"
    r"|he|she|they|can|see|count|shows?|equals?|gives?|get|got|total|number|value|result|probably|likely|maybe|perhaps|all|sum|and|of|for|from|about|approximately"
    r"|roughly|around|exactly|only|just|precisely|be|would|should|must|at)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Phrase:
    """A number in a text.

    Attributes:
        quantity: Its value and unit; None if the phrase was not understood.
        negated: True if the sentence denies it.
    """

    quantity: Quantity | None
    negated: bool = False


@dataclass(frozen=True)
class _Word:
    """A piece of a text between blanks, without the punctuation around it.

    Attributes:
        text: The piece.
        begins: True if a part of the sentence begins with it.
        ends: True if one ends with it.
    """

    text: str
    begins: bool
    ends: bool


def phrases(text: str) -> list[Phrase]:
    """Returns the numbers in a text, in order."""
    if len(text) > _LONGEST:
        return []
    words = _words(plain_notation(text))
    numbers: list[Phrase] = []
    place = 0
    while place < len(words):
        if not _begins(words, place):
            if _FORMULA.fullmatch(words[place].text) and any(char.isdigit() for char in words[place].text):
                numbers.append(Phrase(None))
            place += 1
            continue
        end = _end(words, place)
        read, end = _longest(words, place, end)
        numbers.append(_in_context(words, place, end, read, text))
        place = end
    return numbers


def is_part(text: str, start: int, end: int) -> bool:
    """Checks whether a number at a place of a text is a part of a phrase with another value: 3 in "3 million"."""
    before, after = text[max(0, start - 60) : start], text[end : end + 40]
    if _CHANGED_BEFORE.search(before):
        return True
    compared = _COMPARED_BEFORE.search(before.rstrip()) and not _ADDS_UP.search(before.rstrip())
    following = after.lstrip().split(None, 1)[0].lower().strip(_EDGE_AFTER) if after.strip() else ""
    return bool(
        compared
        or _NEGATED.search(_CLAUSE_START.split(before)[-1])
        or _COMPARED_AFTER.match(after.lstrip())
        or factor_of([following]) is not None
        or following in SCALES
        or _CHANGED_AFTER.match(after)
    )


def _words(text: str) -> list[_Word]:
    words: list[_Word] = []
    for line in text.split("\n"):
        begins = True
        for piece in line.split():
            core = piece.lstrip(_EDGE_BEFORE) if not piece.startswith(("(", "[", "{")) or ")" not in piece else piece
            core = _trimmed(core)
            if piece[0] in "([" and words and not begins:
                words[-1], begins = _Word(words[-1].text, words[-1].begins, True), True
            cut = piece[piece.rfind(core) + len(core) :] if core else piece
            ends = bool(_BREAK.search(cut)) and not (cut == "," and _SCALE.fullmatch(core))
            if core:
                words.append(_Word(core, begins, ends))
            elif words and ends:
                words[-1] = _Word(words[-1].text, words[-1].begins, True)
            begins = ends
        if words:
            words[-1] = _Word(words[-1].text, words[-1].begins, True)
    return words


def _trimmed(piece: str) -> str:
    """A piece without punctuation behind it; brackets that it opens stay."""
    while piece and piece[-1] in _EDGE_AFTER:
        last = piece[-1]
        opening = {")": "(", "]": "[", "}": "{"}.get(last)
        if opening and piece.count(opening) >= piece.count(last):
            break
        piece = piece[:-1]
    return piece


def _parts(word: str) -> list[str]:
    return word.lower().split("-")


def _begins(words: list[_Word], place: int) -> bool:
    """Checks whether a phrase begins with a word."""
    text = words[place].text
    if _NUMERIC.match(text):
        return not _NAME.match(text)
    parts = _parts(text)
    if not all(part in INNER for part in parts) or parts[0] not in NUMERALS:
        following = words[place + 1].text.lower() if place + 1 < len(words) and not words[place].ends else ""
        return text.lower() in ("a", "an") and following in WORDS - {"half", "quarter", "quarters", "halves"} - NUMERALS
    return text.lower() != "one" or not _is_pronoun(words, place)


def _is_pronoun(words: list[_Word], place: int) -> bool:
    """Checks whether "one" stands for a thing: "the red one", "one can see"."""
    before = "" if words[place].begins else words[place - 1].text.lower()
    after = "" if words[place].ends else words[place + 1].text.lower()
    return (before and before not in _COUNTS) or after in _AFTER_PRONOUN


def _end(words: list[_Word], place: int) -> int:
    """The end of the phrase that begins at a place: numbers, number words, and operators between numbers."""
    end = place + 1
    while end < len(words) and not words[end - 1].ends:
        text = words[end].text
        if text in _OPERATORS and end + 1 < len(words):
            if text in _DASHES and not _NUMERIC.match(words[end + 1].text):
                break
            end += 2
        elif all(part in INNER for part in _parts(text)) or _NUMERIC.match(text):
            end += 1
        else:
            break
    while end > place + 1 and words[end - 1].text.lower() in ("and", "a", "an", "point"):
        end -= 1
    return end


def _longest(words: list[_Word], place: int, end: int) -> tuple[Quantity | None, int]:
    """The quantity of a phrase, with the unit that follows it; and where that ends."""
    clause = end
    while clause < len(words) and not words[clause - 1].ends and clause < end + 3:
        clause += 1
    for last in range(clause, end - 1, -1):
        if last > end and words[last - 1].text == "in" and not words[last - 1].ends:  # "5 in the box" is not in inches
            continue
        read = plain_quantity(" ".join(word.text for word in words[place:last]))
        if read is not None:
            return read, last
    return None, end


def _in_context(words: list[_Word], start: int, end: int, read: Quantity | None, text: str) -> Phrase:
    """A phrase with the words around it that deny or change it."""
    first = start
    while first and not words[first].begins and start - first < 12:
        first -= 1
    before = [word.text for word in words[first:start]]
    last = end
    while last < len(words) and not words[last - 1].ends and last < end + 4:
        last += 1
    after = " ".join(word.text for word in words[end:last])
    if before and not after and all(word in _DASHES for word in before):  # "– 5": a list or a minus
        read = None
    negated = _NEGATED.search(" ".join(before)) is not None
    if read is not None and before and before[-1].lower() in _SIGNS:
        read = Quantity(-read.value, read.unit)
        before = before[:-1]
    said = " ".join(before)
    if before and before[-1] in _OPERATORS and not (before[-1] in _DASHES and not _is_operand(before)):
        read = Quantity(read.value, read.unit) if read is not None and before[-1] in ("=", "≈", "~") else None
    if _COMPARED_BEFORE.search(said) and not _ADDS_UP.search(said):
        read = None
    if _COMPARED_AFTER.match(after) or _is_foreign(before, words[end:last], text):
        read = None
    return Phrase(read, negated)


def _is_operand(before: list[str]) -> bool:
    """Checks whether a variable or a number precedes a dash, so that the dash is a minus."""
    return len(before) > 1 and (len(before[-2]) == 1 or bool(_NUMERIC.match(before[-2])))


def _is_foreign(before: list[str], after: list[_Word], text: str) -> bool:
    """Checks whether the words around a number are of a language in which they could change it."""
    near = {word.lower() for word in before[-3:]} | {word.text.lower() for word in after[:2]}
    if near & COMPARISONS or (after and after[0].text.lower() in SCALES):
        return True
    before = [word for word in before if word not in _OPERATORS]
    return bool(before) and not _ENGLISH.search(" ".join(before)) and not _ENGLISH.search(text)
