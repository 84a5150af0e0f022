"""Yes/no and VQA accuracy as VLMEvalKit scores them (its ``yorn``, ``vqa_eval`` and ``process_punctuation``).

The normalization is that of the VQA challenge (Antol et al., 2015) with VLMEvalKit's changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from testbed.answers.columns import references, truth
from testbed.answers.verdict import UNREAD, Verdict

_PUNCTUATION = frozenset(';/[]"{}()=+\\_-><@`,?!')
_THOUSANDS = re.compile(r"\d,\d")
_FULL_STOP = re.compile(r"(?<!\d)\.(?!\d)")
_FULL_STOPS = 32  # so many are removed

_ARTICLES = frozenset(("a", "an", "the"))
NUMBER_WORDS = "zero one two three four five six seven eight nine ten".split()
_DIGITS = {word: str(number) for number, word in enumerate(NUMBER_WORDS)} | {"none": "0"}

# A word that lacks one of its apostrophes gets it back.
_CONTRACTED = """
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've
    he's how'd how'll how's isn't it'd it'd've it'll ma'am mightn't mightn't've might've mustn't must've needn't not've
    o'clock oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll somebody's
    someone'd someone'd've someone'll someone's something'd something'd've something'll that's there'd there'd've
    there're there's they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're what's
    what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't would've
    wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're you've
""".split()
_CONTRACTIONS = {
    word[:place] + word[place + 1 :]: word for word in _CONTRACTED for place, char in enumerate(word) if char == "'"
} | {"somebody'd": "somebodyd"}


def without_punctuation(text: str, full_stops: int = _FULL_STOPS, full_stop: re.Pattern[str] = _FULL_STOP) -> str:
    """Replaces punctuation by blanks, or removes it if there is a blank beside it somewhere or a comma between digits.

    Args:
        full_stops: The maximum number of full stops outside numbers to remove; 0 for all.
        full_stop: The full stops that are outside numbers.
    """
    numbers = _THOUSANDS.search(text) is not None
    table = {
        ord(mark): "" if numbers or mark + " " in text or " " + mark in text else " "
        for mark in _PUNCTUATION.intersection(text)
    }
    return full_stop.sub("", text.translate(table), count=full_stops)


def normalized(
    text: str,
    full_stops: int = _FULL_STOPS,
    digits: Mapping[str, str] = _DIGITS,
    full_stop: re.Pattern[str] = _FULL_STOP,
) -> str:
    """A text as it is compared: lower case, digits for number words, no articles, mended contractions.

    Args:
        full_stops: See `without_punctuation`.
        digits: Words → the digits for them.
        full_stop: See `without_punctuation`.
    """
    plain = without_punctuation(text.replace("\n", " ").replace("\t", " ").strip(), full_stops, full_stop)
    words = (digits.get(word, word) for word in plain.lower().split())
    return " ".join(_CONTRACTIONS.get(word, word) for word in words if word not in _ARTICLES)


def leave_one_out(answer: str, given: Sequence[str]) -> float:
    """VQA accuracy: the mean, over the annotators left out, of min(1, matches among the others / 3)."""
    matches = sum(reference == answer for reference in given)
    scores = [min(1.0, (matches - (reference == answer)) / 3) for reference in given]
    return sum(scores) / len(scores) if scores else 0.0


def yes_no(columns: Mapping[str, str], text: str) -> Verdict:
    """Yes or No if exactly one of the two words is in the answer."""
    words = without_punctuation(text.lower()).split()
    named = [name for name, word in (("Yes", "yes"), ("No", "no")) if word in words]
    if len(named) != 1:
        return UNREAD
    return Verdict(named[0], float(named[0] == truth(columns)), "word")


def yes_no_in_any_case(columns: Mapping[str, str], text: str) -> Verdict:
    """`yes_no` of AMBER, whose right answers VLMEvalKit compares ignoring case."""
    return yes_no({"answer": truth(columns).lower().capitalize()}, text)


def vqa_accuracy(columns: Mapping[str, str], text: str) -> Verdict:
    """VQA accuracy; 0 for whatever answer if there is only one reference."""
    answer = normalized(text)
    return Verdict(answer, leave_one_out(answer, [normalized(reference) for reference in references(columns)]), "whole")
