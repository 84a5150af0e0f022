"""CMMMU as VLMEvalKit reads it: choices, statements that are right or wrong, and blanks to fill."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from testbed.answers.columns import numbered_options, truth
from testbed.answers.prompts_by_set import CHOICE, STATEMENT
from testbed.answers.verdict import UNREAD, Columns, Verdict

RIGHT, WRONG = "对", "错"
RIGHT_WORDS = ("正确", "对", "准确", "肯定", "对的")
WRONG_WORDS = ("不对", "错误", "不正确", "不准确", "不合适", "否定", "错的", "错")
EITHER_WORDS = ("对错", "是否正确", "否正确", "或者", "是否", "正确性", "对不")
_BEFORE_BLANK = ("是", "为", "所以", "等于", "方案", "选择", "正确答案", "因此", "最后", "答案", "结果")
_BEFORE_WORD = ("是", "为", "所以", "判断", "陈述", "说法", "表达", "答案", "结果")
_MARKS = (":", ",", ".", "!", "?", ";", "'")
_NUMBERS = (
    re.compile(r"-?\d{1,3}(?:，\d{3})+"),
    re.compile(r"(?:-|(?<!\d))\d+(?:\.\d+)?[eE][+-]?\d+"),
    re.compile(r"-?(?:\d+\.\d+|\.\d+|\d+)(?![eE][+-]?\d+)(?!，\d)"),
)
_LETTER = re.compile(r"[a-zA-Z]")


def cmmmu(columns: Columns, text: str) -> Verdict:
    """By the column ``type``. Where nothing is read, VLMEvalKit draws an option, or right or wrong."""
    kind = columns.get("type")
    if kind == CHOICE:
        said = _letters(text, numbered_options(columns))
        return Verdict(said, float(said == truth(columns)), "letters" if said else "none")
    return statement(columns, text) if kind == STATEMENT else blank(columns, text)


def _letters(text: str, choices: Mapping[str, str]) -> str | None:
    """The letters in parentheses, else anywhere, else the options' texts, that are there most often."""
    for mark in (",", ".", "!", "?", ";", ":", "'"):
        text = text.strip(mark)
    text = f" {text} "
    counts = {letter: text.count(f"({letter})") for letter in "ABCD"}
    if not any(counts.values()):
        counts = {letter: text.count(letter) for letter in "ABCD"}
    if not any(counts.values()) and text.split():
        counts = {letter: text.count(option) for letter, option in choices.items()}
    most = max(counts.values(), default=0)
    return "".join(letter for letter, count in counts.items() if count == most) if most else None


def statement(columns: Columns, text: str) -> Verdict:
    """Reads whether a statement is right or wrong, by the majority of the deciding parts of an answer."""
    parts = [part for part in set(_parts(text, _BEFORE_WORD)) if not any(word in part for word in EITHER_WORDS)]
    right = sum(any(word in part for word in RIGHT_WORDS) for part in parts)
    wrong = sum(
        any(word in part for word in WRONG_WORDS) and not any(word in part for word in RIGHT_WORDS) for part in parts
    )
    if right == wrong:
        return UNREAD
    said = RIGHT if right > wrong else WRONG
    return Verdict(said, float(said == truth(columns)), "word")


def blank(columns: Columns, text: str) -> Verdict:
    """One of the deciding parts of an answer has the right words, or one of its numbers is the right number."""
    right = truth(columns)
    wanted = _normalized(right, right)
    parts = _parts(text, _BEFORE_BLANK, ("=",))
    numbers = [number for part in parts for pattern in _NUMBERS for number in pattern.findall(part)]
    said = [value for part in [*parts, *numbers] if (value := _normalized(part, right)) is not None]
    hit = any(
        (isinstance(value, str) and isinstance(wanted, str) and wanted in value) or value == wanted for value in said
    )
    return Verdict(str(said[0]), float(hit), "part") if said else UNREAD


def _normalized(text: str, right: str) -> str | float | None:
    """A number with two decimals, or a text; None if it is much longer than the right answer."""
    text = text.strip()
    try:
        return round(float(text.replace(",", "")), 2)
    except ValueError:
        letters, wanted = (len(_LETTER.findall(part)) for part in (text, right))
        return None if len(text) > len(right) + 20 or letters > wanted + 2 else text


def _parts(text: str, before: Sequence[str], at_last: Sequence[str] = ()) -> list[str]:
    """Returns the shortest part of each sentence after one of some words; the whole text where there are none."""
    text = text.strip("。").strip()
    sentences = re.split(r"。|\n", text)
    found = []
    for place, sentence in enumerate(sentences):
        words = [*before, *at_last] if place == len(sentences) - 1 else before
        shortest = ""
        for end in (sentence.split(word)[-1].strip() for word in words if word in sentence):
            shortest = end if not shortest or len(end) < len(shortest) else shortest
        found += [shortest] if shortest and shortest not in _MARKS else []
    return found or [text]
