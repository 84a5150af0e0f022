"""Finds a judge's verdict in its reply: alone, or on a line of its own that opens or ends the reply.

Nothing else counts as a verdict. "INCORRECT. The correct answer is Paris." and "not correct" contain both words;
choosing one of them would be a guess.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

from testbed.answers import languages

Said = TypeVar("Said", bound=Hashable)

_FENCE = re.compile(r"\s*```\w*\s*")
_MARKUP = " \t\"'`*_{}#>|→"
_WRAPPED = re.compile(
    r"\s*(?:<(?P<tag>\w+)>(?P<inner>.*)</(?P=tag)>|\$*\\f?boxed\s*\{(?P<box>.*)\}\$*|(?P<label>[^\[\]]*)\[\[(?P<twice>[^\[\]]*)\]\])\s*[.!]?\s*"
)
_NOUN = (
    r"(?:verdict|answer|response|output|grade|correctness|judge?ment|rating|score|result|decision|assessment|evaluation"
    r"|conclusion|option|choice|letters?|better|winner|extracted|label)"
)
_OTHER_LABELS = (  # the same in other languages; "answer" is in `languages`
    r"(?:得分|分数|評分|评分|判断|判定|结论|評価|评价|スコア|採点|点数|점수|평가|판정|bewertung|punktzahl|urteil|note|puntuación"
    r"|puntaje|veredicto|pontuação|nota|veredito|punteggio|voto|verdetto|оценка|балл|вердикт)"
)
_HENCE = "so|thus|therefore|hence|overall"
_ABOUT = (
    rf"(?:(?:{_HENCE}|my|your|the|this|given|final|better|best|chosen|winning|correct|student's|model's)"
    r",?\s+){0,4}"
)
_LABEL = re.compile(
    rf"(?:{_ABOUT}{_NOUN}(?:\s+(?:answer|option))?|{_HENCE}|{_OTHER_LABELS})[\"'`*_ \t]*[:=][\"'`*_ \t]*", re.IGNORECASE
)
_SENTENCE = re.compile(
    rf"(?:{_ABOUT}(?:{_NOUN}|answer)|(?:so|thus|therefore),?\s+it|it|this)(?:\s+(?:of|to|for)\s+(?:the|this)\s+\w+)?\s+"
    r"(?:(?:is|would\s+be|says|states|means|reads|chooses|selects|picks|names)\b)\s*[:\"'`*_]*\s*(?:therefore|thus|clearly|that)?\s*",
    re.IGNORECASE,
)
_ANSWER_IS = re.compile(rf"(?:(?!not?\b)\w+\s+){{0,2}}?{languages.ANSWER_IS}", re.IGNORECASE)
_ANY_LABEL = re.compile(r"(?!.*(?:\bnot\b|n't))[^\W\d_][^\W\d_]*(?: [^\W\d_]+){0,4}[*_ ]*:", re.IGNORECASE)
_REMARK = re.compile(r"\s*[(\[]([^()\[\]]*[^\W\d_]{2}[^()\[\]]*)[)\]]\s*\.?$")
_SCORE = re.compile(
    r"(\d+(?:[.,]\d+)?|[.,]\d+)\s*(?:(?:/|out\s+of|of)\s*1(?:[.,]0+)?)?\s*(?:points?|pts?|分|点|점)?\s*[.!]?",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?P<said>[\d.,]*\d(?:\s*/\s*1(?:\.0+)?)?|[^\W\d_]{4,})[*_`\"']*(?:\s+[–—-]\s|[.:;,!]\s|\s+\(|\s+because\b)(?P<why>.*)"
)
_LABEL_SCALE = re.compile(r"\s*\(([^()]{1,40})\)(?=\s*[:=])")
_OTHER_VERDICT = re.compile(
    r"correct|wrong|right|true|false|accura|error|mistak|partial|\b(?:not?|but|however|although|except|only)\b|n't|不|错|錯",
    re.IGNORECASE,
)
_SCALE = re.compile(
    r"\bscale\s+(?:of|from)?\s*[\d.]+\s*(?:to|-|–)\s*(\d+)(?:\.0+)?(?![\d.])"
    r"|(?:to|-|–)\s*(\d+)(?:\.0+)?\s+scale\b|(?<!\d)(\d+)[- ]point\s+scale\b",
    re.IGNORECASE,
)
_UNIT_SCALE = re.compile(r"(?:\D*\b0(?:\.0+)?\s*(?:to|-|–|and)\s*|\D*)1(?:\.0+)?\D*")
_HIGHEST = re.compile(r"max|highest|out[ _-]?of|scale|range|total[ _-]?(?:points|score)|denominator", re.IGNORECASE)
_UNIT = re.compile(r"(?:\D*0(?:\.0+)?\D+)?1(?:\.0+)?")
_LOW = re.compile(
    r"\b(?:lowest|worst|minim\w*|poor\w*|bad\w*|terrible|awful|(?:very )?low|wrong|incorrect)\b", re.IGNORECASE
)
_HIGH = re.compile(
    r"\b(?:highest|best|maxim\w*|perfect\w*|excellent|(?:very )?(?:high|good)|fully correct)\b", re.IGNORECASE
)
_FIELD = re.compile(
    rf"(?:final[ _-]?)?(?:{_NOUN}|is[ _-]?correct|correct)(?:[ _-](?:value|answer|label))?", re.IGNORECASE
)
_CUT_OBJECT = re.compile(r"\{[^{}]*[\d.]\s*$")
_INTRODUCES, _KEY = re.compile(r"[:=]\s*$"), re.compile(r"[\"'`]\s*:\s*$")
_LONGEST_SCORE = 400  # characters of a line with a score and a remark
_LONGEST_OBJECT = 1 << 16  # characters
_ESCAPE = re.compile(r'\\\\|\\(?!["/n]|u[0-9a-fA-F]{4})')  # all of JSON's that LaTeX could mean otherwise
_SYNONYMS = {
    "correct": languages.CORRECT,
    "incorrect": languages.INCORRECT,
    "yes": languages.YES,
    "no": languages.NO,
}


def object_in(reply: str) -> dict[str, Any] | None:
    """The object in JSON's notation or Python's that opens or ends a reply, in a code fence or not.

    Backslashes of LaTeX need not be doubled. Nothing is evaluated.
    """
    plain = "\n".join(line for line in reply.splitlines() if not _FENCE.fullmatch(line)).strip()
    if not (plain.startswith("{") or plain.endswith("}")) or len(plain) > _LONGEST_OBJECT:
        return None
    begin, end = plain.find("{"), plain.rfind("}")
    text = _ESCAPE.sub(lambda match: "\\\\", plain[begin : end + 1])
    for read in (partial(json.loads, strict=False), ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, dict) else None
    return None


def lines_of(reply: str) -> list[str]:
    """The first and the last line of a reply, without blank lines, code fences and what wraps a line.

    Of a JSON object the fields that are named like a verdict are such lines.
    """
    fields = object_in(reply) or {}
    said = [
        _plain(key, value)
        for key, value in fields.items()
        if _FIELD.fullmatch(key) and isinstance(value, str | int | float)
    ]
    if said:
        return [_unwrapped(text) for text in said]
    lines = [line for line in reply.splitlines() if line.strip() and not _FENCE.fullmatch(line)]
    if lines and _INTRODUCES.search(lines[-1]):
        lines[-1] = ""  # the reply was cut off before what it introduces
    return [_unwrapped(line) for line in dict.fromkeys([*lines[:1], *lines[-1:]]) if not _KEY.search(line)]


def _plain(key: str, value: str | float) -> str:
    """Returns the value of a field as a line would state it: of ``"is_correct": true`` the word."""
    if isinstance(value, bool) and "correct" in key.lower():
        return "correct" if value else "incorrect"
    return str(value)


def stated(reply: str, read: Callable[[str], Said | None]) -> Said | None:
    """Returns the statement of the first or the last line of a reply; None if there is none, or they differ.

    Args:
        read: Returns the statement of a line by itself; None if there is none.
    """
    statements = {said for line in lines_of(reply) if (said := read(line)) is not None}
    return statements.pop() if len(statements) == 1 else None


def word_in(reply: str, words: Sequence[str]) -> str | None:
    """Returns which of the given words, in lower case, a reply states, in whatever language."""

    def read(line: str) -> str | None:
        plain = _words(unlabelled(line))
        reason = _REASON.match(unlabelled(line)) if plain not in words else None
        if reason and not _OTHER_VERDICT.search(reason["why"]):  # "CORRECT: the answer names Paris"
            plain = reason["said"].lower()
        said = plain if plain in words else next((word for word in words if plain in _SYNONYMS.get(word, ())), None)
        return None if "?" in line else said

    return stated(reply, read)


def score_in(reply: str) -> float | None:
    """The score from 0 to 1 that a reply states: ``0.5``, ``0,5``, ``0.5 out of 1.0``, ``Score: 0.5/1``, ``[[0.5]]``.

    A score on another scale is not one: ``1 (out of 5)``, ``1 (lowest)``.
    """
    if any(float("".join(highest)) != 1 for highest in _SCALE.findall(reply)) or _is_of_another_scale(reply):
        return None
    if _CUT_OBJECT.search(reply):  # there may have been more digits
        return None

    def read(line: str) -> float | None:
        if len(line) > _LONGEST_SCORE:
            return None
        scale = _LABEL_SCALE.search(line)
        plain = unlabelled(_LABEL_SCALE.sub("", line) if scale and _UNIT_SCALE.fullmatch(scale[1]) else line)
        label = _ANY_LABEL.match(plain)
        plain = plain[label.end() if label else 0 :].strip(_MARKUP).replace("**", "")
        remark = _REMARK.search(plain)
        plain = plain[: remark.start()] if remark and remark.start() else plain
        if (reason := _REASON.fullmatch(plain)) and not any(char.isdigit() for char in reason["why"]):
            plain, remark = reason["said"], re.match("(.*)", reason["why"])
        match = _SCORE.fullmatch(plain.strip(f"{_MARKUP}[]()"))
        value = float(match[1].replace(",", ".")) if match else -1.0
        return value if 0 <= value <= 1 and not (remark and _contradicts(remark[1], value)) else None

    return stated(reply, read)


def _is_of_another_scale(reply: str) -> bool:
    """Checks whether the object in a reply has a field for the highest score, other than 1: ``"max_score": 5``."""
    fields = object_in(reply) or {}
    return any(_HIGHEST.search(key) and _UNIT.fullmatch(str(value)) is None for key, value in fields.items())


def _contradicts(remark: str, score: float) -> bool:
    """Checks whether a remark gives a score on another scale."""
    if any(char.isdigit() for char in remark) and not _UNIT_SCALE.fullmatch(remark):
        return True
    return bool(_LOW.search(remark) if score > 0.5 else _HIGH.search(remark))


def _words(text: str) -> str:
    """The words of a text in lower case, with their accents and vowel signs."""
    kept = (char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in text)
    return " ".join("".join(kept).lower().split())


def unlabelled(line: str) -> str:
    """A line without markup around it and what leads up to a verdict: ``Verdict:``, ``The answer is``."""
    plain = line.strip(_MARKUP)
    match = _LABEL.match(plain) or _SENTENCE.match(plain) or _ANSWER_IS.match(plain)
    rest = (plain[match.end() :].strip(_MARKUP) if match else "") or plain
    return rest.removesuffix(".").strip(_MARKUP) if match and match.re is not _LABEL else rest


def without_remark(line: str) -> str:
    """A line without a remark in brackets at its end, if there is anything before it: ``1.2 (rounded)`` is ``1.2``."""
    return _REMARK.sub("", line) or line


def _unwrapped(line: str) -> str:
    while match := _WRAPPED.fullmatch(line):
        line = match["inner"] if match["tag"] else match["box"] or f"{match['label'] or ''}{match['twice'] or ''}"
    return line
