"""Sets of questions of several kinds, as the rules `default` read them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from testbed.answers.choice import among, read_choice
from testbed.answers.columns import as_list, listed, numbered_options, options, references, truth
from testbed.answers.expressions import value_of
from testbed.answers.numbers import sole_quantity
from testbed.answers.open_answers import contains
from testbed.answers.prompts_by_set import CHOICE, STATEMENT
from testbed.answers.published import cmmmu as chinese
from testbed.answers.published.kinds_by_set import (
    COUNTS,
    PAIRS,
    REASONING,
    RETRIEVAL,
    counted,
    q_spatial,
    within_twice,
    words_f1,
)
from testbed.answers.published.kinds_by_set import ssi as published_ssi
from testbed.answers.published.table_vqa import FACTS, FINANCE, table_vqa
from testbed.answers.reasoning import equal, letters, letters_of
from testbed.answers.texts import final_text, marked, open_answer
from testbed.answers.verdict import UNREAD, Columns, Verdict
from testbed.answers.yes_no import read_yes_no

mm_oral = among(numbered_options)

_NUMBERED = ("visual-reasoning", "find-image")  # categories of MM-NIAH whose right options are numbered from 0
_POINT = re.compile(r"point\s*([12])\b", re.IGNORECASE)
_TRUE_OR_FALSE = re.compile(r"(?<![\w'])(T|F|true|false)(?![\w'])", re.IGNORECASE)
_DISTANCE = re.compile(
    r"(?<!\d)(?<!\d\.)(\d+(?:\.\d+)?)\s*+(?:\\text\{)?\s*+"  # from the beginning of a number alone: it may be long
    r"(centimet(?:er|re)s?|cm|met(?:er|re)s?|millimet(?:er|re)s?|mm|m|feet|foot|ft|inch(?:es)?|in)\b",
    re.IGNORECASE,
)
_UNITS = {"centimetre": "cm", "centimetres": "cm", "metre": "m", "millimeter": "mm", "millimetre": "mm"}
_UNITS |= {"millimeters": "mm", "millimetres": "mm"}
_TAGGED = re.compile(r"\[ANSWER\](.*?)\[/ANSWER\]", re.DOTALL)
_LIST = re.compile(r"\[[^\[\]]*\]")


def cmmmu(columns: Columns, text: str) -> Verdict:
    """CMMMU: letters, right or wrong, or a blank, by the column ``type``."""
    if columns.get("type") == CHOICE:
        return letters({**columns, **numbered_options(columns)}, text)
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    if columns.get("type") == STATEMENT:
        return _statement(columns, answer, method)
    return chinese.blank(columns, answer)


def _statement(columns: Columns, answer: str, method: str) -> Verdict:
    """Right or wrong, in Chinese or not; "not right" is wrong."""
    for words in chinese.EITHER_WORDS[:-1]:  # all but the beginning of "not right"
        answer = answer.replace(words, "")
    said: str | None = None
    if any(word in answer for word in chinese.WRONG_WORDS):
        said = chinese.WRONG
    elif any(word in answer for word in chinese.RIGHT_WORDS):
        said = chinese.RIGHT
    elif (word := read_yes_no(answer)[0]) is not None:
        said = chinese.RIGHT if word == "Yes" else chinese.WRONG
    return Verdict(said, float(said == truth(columns)), method if said else "none")


def mm_niah(columns: Columns, text: str) -> Verdict:
    """MM-NIAH: an option, a list of counts in order, or the right words in the answer."""
    right = truth(columns).strip()
    if columns.get("category") in _NUMBERED and right.removesuffix(".0").isdecimal():
        letter, method = read_choice(text, dict.fromkeys("ABCD", ""))
        wanted = "ABCD"[int(float(right)) : int(float(right)) + 1]
        return Verdict(letter, float(letter is not None and letter == wanted), method)
    counts = listed(right)
    return _counts(counts, text) if counts else contains(columns, text)


def _counts(right: list[str], text: str) -> Verdict:
    """The share of counts that are right in the last list of an answer."""
    final, why = final_text(text)
    found = _LIST.findall(final or "")
    try:
        said: Any = json.loads(found[-1]) if found else None
    except (ValueError, RecursionError):
        said = None
    if said is None:
        return Verdict(None, 0.0, why or "none")
    same = sum(str(one) == other for one, other in zip(said, right, strict=False))
    return Verdict(found[-1], same / len(right), "list")


def da_2k(columns: Columns, text: str) -> Verdict:
    """DA-2K: the last point 1 or 2 that is marked, stated or named."""
    answer, method = open_answer(text)
    final, why = final_text(text)
    for part, how in ((answer, method), (final, "last point")):
        found = _POINT.findall(part or "")
        if found and (len(set(found)) == 1 or how == "last point"):
            return Verdict(f"point{found[-1]}", float(f"point{found[-1]}" == truth(columns).strip().lower()), how)
    return Verdict(None, 0.0, why or "none")


def vlm2(columns: Columns, text: str) -> Verdict:
    """VLM2-Bench: true or false, a count, or a letter, by ``category``; counts are scored as published."""
    category, right = columns.get("category", ""), truth(columns)
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    if category in PAIRS:
        return _true_or_false(text, answer, method, right.strip().upper()[:1])
    if category in COUNTS:
        number = sole_quantity(answer)
        whole = None if number is None or not float(number.value).is_integer() else int(number.value)
        return counted(columns, whole)
    wanted = re.sub(r"\W", "", right.partition(")")[0])
    letter, method = read_choice(text, dict.fromkeys("ABCDEFGH", ""))
    return Verdict(letter, float(letter is not None and letter == wanted), method)


def _true_or_false(text: str, answer: str, method: str, right: str) -> Verdict:
    words = {word[0].upper() for word in _TRUE_OR_FALSE.findall(answer)}
    if len(words) == 1:
        said: str | None = words.pop()
    else:
        word, method = read_yes_no(text)
        said = None if word is None else "T" if word == "Yes" else "F"
    return Verdict(said, float(said is not None and said == right), method)


def distance(columns: Columns, text: str) -> Verdict:
    r"""Q-Spatial: what is in ``\scalar`` and ``\distance_unit``, else the last number with a unit of length."""
    final, why = final_text(text)
    published = q_spatial(columns, final or "")
    found = _DISTANCE.findall(final or "")
    if published.extracted is not None or not found:
        return published if published.extracted is not None else Verdict(None, 0.0, why or "none")
    number, unit = found[-1]
    return within_twice(columns, float(number), _UNITS.get(unit.lower(), unit))


def mat(columns: Columns, text: str) -> Verdict:
    """MAT-Bench: the F1 of the words of the answer, of one of several right ones."""
    answer, method = open_answer(text)
    return Verdict(None, 0.0, method) if answer is None else words_f1(answer, references(columns))


def tables(columns: Columns, text: str) -> Verdict:
    """TableVQA-Bench: the answer that is marked or stated, compared as published; of facts, yes is true."""
    answer, method = open_answer(text)
    if answer is None:
        return Verdict(None, 0.0, method)
    if columns.get("split") == FACTS:
        return _true_or_false(text, answer, method, "T" if truth(columns).strip() == "1" else "F")
    final, _ = final_text(text)
    parts = [answer] if marked(final or "") or columns.get("split") == FINANCE else as_list(answer)
    return table_vqa(columns, "|".join(parts))


def mac_bench(columns: Columns, text: str) -> Verdict:
    """MaCBench: letters, or a number within a tolerance; a judge settles what is neither."""
    final, why = final_text(text)
    tagged = _TAGGED.findall(final or "")
    answer, method = (tagged[-1].strip(), "tag") if tagged else open_answer(text)
    if not answer:
        return Verdict(None, 0.0, why or "none")
    right = truth(columns)
    choices = options(columns)
    if choices:
        said, wanted = (letters_of(part) for part in (answer, right))
        known = bool(said) and set(said) <= set(choices)
        return Verdict(said, float(said == wanted), method) if known else UNREAD
    number, wanted_number = sole_quantity(answer), value_of(right)
    if number is None or wanted_number is None:
        return UNREAD
    given = value_of(columns.get("relative_tolerance", ""))
    close = abs(number.value - wanted_number) <= abs(given or wanted_number * 0.01)
    return Verdict(f"{number.value:.15g}", float(close), method)


def bmmr(columns: Columns, text: str) -> Verdict:
    """BMMR: one or several letters, or an open answer that a judge settles unless it equals the right one."""
    return (letters if columns.get("task_type") == "mc" else equal)(columns, text)


def vtc(columns: Columns, text: str) -> Verdict:
    """VTCBench: as published, of whole words; what it remembers as `equal`."""
    category = columns.get("category")
    if category not in (RETRIEVAL, REASONING):
        return equal(columns, text)
    verdicts = [contains({**columns, "answer": reference}, text, as_written=True) for reference in references(columns)]
    scores = [verdict.score for verdict in verdicts]
    return replace(verdicts[0], score=max(scores) if category == RETRIEVAL else sum(scores) / len(scores))


def ssi(columns: Columns, text: str) -> Verdict:
    """SSI-Bench: the last list of numbers, else the numbers of the marked or stated answer."""
    answer, method = open_answer(text)
    verdict = published_ssi(columns, text)
    numbers = re.findall(r"(?<![\d.])\d(?![\d.])", answer or "")
    if verdict.extracted is not None or not numbers:
        return verdict if verdict.extracted is not None else Verdict(None, 0.0, method if answer is None else "none")
    return published_ssi(columns, f"[{', '.join(numbers)}]")
