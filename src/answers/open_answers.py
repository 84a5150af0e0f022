"""Answers in words, as the rules `default` score them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from testbed.answers.columns import references
from testbed.answers.numbers import is_another_value, with_plain_numbers
from testbed.answers.published.open_answers import FORMULAS
from testbed.answers.published.words import leave_one_out, normalized
from testbed.answers.quantities.phrases import is_part
from testbed.answers.quantities.quantity import quantity
from testbed.answers.texts import bare, comparable, edit_distance, final_text, marked, places, short_answer
from testbed.answers.verdict import UNREAD, Verdict

_EMPHASIS = re.compile(r"(?<![\w*_`)])(\*{1,3}|_{1,3}|`)(?=\S)([^*_`\n]*[^\s*_`])\1(?![\w*_`(])")  # of Markdown
_NUMBER = re.compile(r"[\d.,]*\d[\d.,]*")
_BEFORE_UNIT = re.compile(r"(?<=\d)\s+(?=[^\W\d_]|[%°])")
_ENOUGH = 4  # references of which leave-one-out can reach 1
_THRESHOLD = 0.5  # of ANLS


def vqa_accuracy(columns: Mapping[str, str], text: str) -> Verdict:
    """VQA accuracy (Antol et al., 2015) of four references or more; of fewer, 1 if the answer equals one of them."""
    answer, method = short_answer(text, references(columns))
    if answer is None:
        return Verdict(None, 0.0, method)
    plain = normalized(answer, full_stops=0)
    given = [
        "" if _is_another_number(reference, answer) else normalized(reference, full_stops=0)
        for reference in references(columns)
    ]
    score = leave_one_out(plain, given) if len(given) >= _ENOUGH else float(plain in given)
    return Verdict(plain, score, method)


def _is_another_number(reference: str, answer: str) -> bool:
    """Checks whether a reference and an answer differ by a sign or a comparison, which VQA accuracy drops."""
    right, said = quantity(reference), quantity(answer)
    if right is not None and said is not None:
        return right.value != said.value
    return (right is None) != (said is None) and (is_another_value(reference) or is_another_value(answer))


def anls(columns: Mapping[str, str], text: str) -> Verdict:
    """ANLS (Biten et al., 2019): 1 - distance/length of texts in lower case with single blanks; below 0.5 it is 0."""
    answer, method = short_answer(text, references(columns))
    if answer is None:
        return Verdict(None, 0.0, method)
    plain = _spaced(answer)
    return Verdict(
        plain, max(_similarity(_spaced(bare(reference)), plain) for reference in references(columns)), method
    )


def _spaced(text: str) -> str:
    return " ".join(text.lower().split())


def _similarity(reference: str, answer: str) -> float:
    length = max(len(reference), len(answer))
    if not length:
        return 1.0
    if abs(len(reference) - len(answer)) > (1 - _THRESHOLD) * length:  # no distance is smaller
        return 0.0
    similarity = 1 - edit_distance(reference, answer) / length
    return similarity if similarity >= _THRESHOLD else 0.0


def exact(columns: Mapping[str, str], text: str) -> Verdict:
    """Scores equality with a reference, ignoring case, blanks, an article and punctuation around it; 2.0 is 2."""
    answer, method = short_answer(text, references(columns))
    if answer is None:
        return Verdict(None, 0.0, method)
    plain = comparable(answer)
    hit = _written_once(answer) in map(_written_once, references(columns)) or answer in references(columns)
    return Verdict(plain, float(hit), method)


def _written_once(text: str) -> str:
    """A comparable text with numbers in one way: ``2.0`` is ``2``, ``5 cm`` is ``5cm``."""
    return _BEFORE_UNIT.sub("", comparable(with_plain_numbers(text)))


def contains(columns: Mapping[str, str], text: str, as_written: bool = False) -> Verdict:
    """A reference is in the answer as whole words; a number is not if the phrase around it means another one.

    Args:
        columns: The columns of the row.
        text: The answer.
        as_written: True if numbers count as they are written, whatever is around them.
    """
    final, why = final_text(text)
    if not final:
        return Verdict(None, 0.0, why or "none")
    plain = _spaced(_EMPHASIS.sub(r"\2", final))
    texts = [plain, *(_spaced(bare(content)) for content in marked(final))]
    is_in = any(_within(_spaced(reference), said, as_written) for reference in references(columns) for said in texts)
    return Verdict(plain, float(is_in), "contained")


def ocrbench(columns: Mapping[str, str], text: str) -> Verdict:
    """OCRBench (Liu et al., 2023): a reference is in the answer; formulas are compared without blanks."""
    if columns.get("category") != FORMULAS:
        return contains(columns, text, as_written=True)  # what is read in a picture
    answer = "".join(text.split())  # as it is: braces and styles are part of a formula
    if not answer:
        return UNREAD
    right = ("".join(reference.split()).strip("$") for reference in references(columns))
    return Verdict(answer, float(any(reference and reference in answer for reference in right)), "contained")


def _within(reference: str, answer: str, as_written: bool) -> bool:
    spans = places(reference.rstrip(".") or reference, answer)
    if as_written or not _NUMBER.fullmatch(reference):
        return bool(spans)
    return any(not is_part(answer, start, end) for start, end in spans)
