"""Options and counts as single sets of VLMEvalKit read them, each by its own rule.

They are those of its modules ``visualpuzzles``, ``puzzlevqa``, ``vmcbench``, ``naturalbench`` and ``tallyqa``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import ascii_uppercase

from testbed.answers.columns import list_options, options, truth
from testbed.answers.published.words import NUMBER_WORDS
from testbed.answers.verdict import UNREAD, Verdict

_LAST_LETTER = re.compile(r"\banswer\s*:\s*([A-Z])\b", re.IGNORECASE)
_EDGES = (",", ".", "!", "?", ";", ":", "'")
_VMC_LETTERS = ascii_uppercase[:9]
_LONG = 5  # words; in a longer answer VMCBench also looks for an option's text
_TEENS = "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
_COUNTS = [*NUMBER_WORDS, *_TEENS.split()]
_COUNT = re.compile(rf"\b(?:([0-9]|1[0-9]|20)|({'|'.join(_COUNTS)}))\b")


def visual_puzzles(columns: Mapping[str, str], text: str) -> Verdict:
    """VisualPuzzles: the last letter after "answer:"."""
    return _after_answer(text, truth(columns))


def puzzle_vqa(columns: Mapping[str, str], text: str) -> Verdict:
    """PuzzleVQA: the last letter after "answer:"; the right answer is the first option of this text."""
    right = truth(columns).strip()
    letters = (letter for letter, option in list_options(columns).items() if option.strip() == right)
    return _after_answer(text, next(letters, ""))


def _after_answer(text: str, right: str) -> Verdict:
    found = _LAST_LETTER.findall(text)
    return Verdict(found[-1].upper(), float(found[-1].lower() == right.lower()), "answer:") if found else UNREAD


def vmc_bench(columns: Mapping[str, str], text: str) -> Verdict:
    """VMCBench: the last letter in brackets or with a full stop, else by itself; else the last option's text.

    VLMEvalKit draws an option at random for an answer in which it finds nothing.
    """
    choices = {letter: option for letter, option in options(columns).items() if letter in _VMC_LETTERS}
    if "A" not in choices:
        return UNREAD
    for edge in _EDGES:
        text = text.strip(edge)
    answer = f" {text} "
    dress = "({})"  # where the last one is looked for
    found = [letter for letter in choices if f"({letter})" in answer or f"{letter}. " in answer]
    if not found:
        dress = " {} "
        found = [letter for letter in choices if f" {letter} " in answer]
    if not found and len(answer.split()) > _LONG:
        lower = answer.lower()
        places = {letter: lower.rfind(option.lower()) for letter, option in choices.items()}
        return _chosen({letter: place for letter, place in places.items() if place >= 0}, columns, "option text")
    return _chosen({letter: answer.rfind(dress.format(letter)) for letter in found}, columns, "letter")


def _chosen(places: Mapping[str, int], columns: Mapping[str, str], method: str) -> Verdict:
    """The option at the last place; the first of several at the same."""
    if not places:
        return UNREAD
    letter = max(places, key=lambda each: places[each])
    return Verdict(letter, float(letter == truth(columns)), method)


def natural_bench(columns: Mapping[str, str], text: str) -> Verdict:
    """NaturalBench: whichever of the two words stands first: yes or no, or A or B, by the column ``type``."""
    words = ("Yes", "No") if columns.get("type") == "yes_no" else ("A", "B")
    found = {word: at for word in words if (at := re.search(rf"\b{word}\b", text, re.IGNORECASE)) is not None}
    if not found:
        return UNREAD
    said = min(found, key=lambda word: found[word].start())
    return Verdict(said, float(said == truth(columns)), "first word")


def tally_qa(columns: Mapping[str, str], text: str) -> Verdict:
    """TallyQA: the first number from 0 to 20 in the answer, in digits or as a word."""
    found = _COUNT.search(text.lower())
    if found is None:
        return UNREAD
    count = int(found[1]) if found[1] else _COUNTS.index(found[2])
    return Verdict(str(count), float(str(count) == truth(columns).strip()), "first number")
