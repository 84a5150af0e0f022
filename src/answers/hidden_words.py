"""Words that are covered in a picture and restored (VCR, arXiv 2406.06462)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from testbed.answers.columns import as_list, truth
from testbed.answers.texts import final_text
from testbed.answers.verdict import Columns, Verdict

_REFUSES = ("I can't", "I cannot", "无法", "抱歉")
_STEM = re.compile(r"(?<!\w)(\w+)n['’]t\b")  # "do" of "don't"
_TOKEN = re.compile(
    r"n['’]t\b|['’](?:s|S|re|ve|ll|d|m)\b|\d+(?:[.,:]\d+)*|(?:[A-Za-z]\.){2,}|[^\W\d_]+(?:\d+)?|\.\.\.+|\S"
)
_LONGEST = 4000  # tokens that are looked through


def hidden_words(columns: Columns, text: str) -> Verdict:
    """The share of the covered texts that the answer has, word by word, in its final part."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    said = tokens(final.lower())
    hits = [float(_has(said, tokens(part.lower()))) for part in as_list(truth(columns))]
    return Verdict(final, sum(hits) / len(hits), "words")


def published_hidden_words(columns: Columns, text: str) -> Verdict:
    """The share of the covered texts that equal the most similar run of as many words; of a refusal it is 0."""
    pairs = matches(columns, text)
    return Verdict(text, sum(exact for exact, _ in pairs) / len(pairs), "words")


def matches(columns: Columns, text: str) -> list[tuple[float, float]]:
    """For each covered text whether the most similar run of words equals it, and the share of words in common."""
    parts = as_list(truth(columns))
    if any(refusal in text for refusal in _REFUSES) or "sorry" in text.lower():
        return [(0.0, 0.0)] * len(parts)
    said = tokens(text.split("Assistant: ")[-1])[:_LONGEST]
    return [_match(part, said) for part in parts]


def _match(part: str, said: Sequence[str]) -> tuple[float, float]:
    wanted = tokens(part)
    best: Sequence[str] = ()
    highest = 0.0
    for place in range(len(said) - len(wanted) + 1):
        run = said[place : place + len(wanted)]
        if not set(run).isdisjoint(wanted):
            similarity = SequenceMatcher(None, " ".join(run), part).ratio()
            if similarity > highest:
                best, highest = run, similarity
    union = {*best, *wanted}
    return float(list(best) == wanted and bool(wanted)), len(set(best) & set(wanted)) / len(union) if union else 0.0


def _has(said: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(said[place : place + len(wanted)] == wanted for place in range(len(said) - len(wanted) + 1))


def tokens(text: str) -> list[str]:
    """Words, numbers and marks of an English text, nearly as spaCy's rules have them."""
    words, place = [], 0
    for start, end in [*(match.span(1) for match in _STEM.finditer(text)), (len(text), len(text))]:
        for match in _TOKEN.finditer(text, place):
            if match.start() >= start:
                break
            words.append(match[0])
            place = match.end()
        if max(place, start) < end:
            words.append(text[max(place, start) : end])
            place = end
    return words
