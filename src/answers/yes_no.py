"""Yes or no, as the rules `default` read it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from testbed.answers.columns import truth
from testbed.answers.texts import ANSWER_IS, EDGES, final_text, marked, statements
from testbed.answers.verdict import Verdict

_MEANT = {"yes": "Yes", "no": "No", "true": "Yes", "false": "No", "是": "Yes", "否": "No", "不是": "No"}
_SAID = re.compile(ANSWER_IS + r"[\"'(\[]*(yes|no|true|false)\b", re.IGNORECASE)
_WORD = re.compile(r"(?<![\w'-])(yes|no)(?![\w'-])", re.IGNORECASE)
_EITHER = re.compile(r"(?:yes|no)[\"'*]*\s*(?:or|/|and|\|)\s*[\"'*]*(?:yes|no)\b", re.IGNORECASE)
_FIRST = re.compile(r"(yes|no)(?=[^\w'-]|$)|(是|否|不是)(?=[.,!]|$)", re.IGNORECASE)


def yes_no(columns: Mapping[str, str], text: str) -> Verdict:
    """Whether the answer is yes or no."""
    said, method = read_yes_no(text)
    return Verdict(said, float(said is not None and said.lower() == truth(columns).strip().lower()), method)


def read_yes_no(text: str) -> tuple[str | None, str]:
    """Yes, No or None; and the rule that read it."""
    final, why = final_text(text)
    if final is None:
        return None, why
    for content in marked(final):
        if content.strip(EDGES).lower() in _MEANT:
            return _MEANT[content.strip(EDGES).lower()], "marked"
    whole = final.strip(EDGES).lower()
    if whole in _MEANT:
        return _MEANT[whole], "word"
    final = _EITHER.sub(" ", final)  # the question, repeated
    stated = [match.group(1).lower() for match in statements(_SAID, final)]
    if stated:
        return _MEANT[stated[-1]], "answer is"
    last = final.rpartition("\n")[2].strip(EDGES).lower()
    if last in _MEANT:
        return _MEANT[last], "last line"
    first = _FIRST.match(final.lstrip(EDGES))
    if first and first.group().lower() in _MEANT:
        return _MEANT[first.group().lower()], "first word"
    words = {each.lower() for each in _WORD.findall(final)}
    return (_MEANT[words.pop()], "word") if len(words) == 1 else (None, "none")
