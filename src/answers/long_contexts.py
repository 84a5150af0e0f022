"""Long contexts: MMLongBench and MEMLENS, as the rules `default` read them."""

from __future__ import annotations

import re

from testbed.answers.published.long_contexts import after, right_of, rule_of, scored
from testbed.answers.reasoning import equal, left_to_judge
from testbed.answers.texts import final_text, open_answer
from testbed.answers.verdict import UNREAD, Columns, Verdict
from testbed.answers.yes_no import read_yes_no

_MOST_WORDS = 500  # of an answer about memories; a longer one is wrong
_MARK = re.compile(r"<\|[^>]*\|>")


def long_contexts(columns: Columns, text: str) -> Verdict:
    """MMLongBench: as published, of the final part, what follows "Answer:" and what is marked as the answer."""
    final, why = final_text(text)
    if not final:
        return Verdict(None, 0.0, why or "none")
    if columns.get("task") == "NIAH" and columns.get("source_dataset", "").startswith("vh_"):
        word, method = read_yes_no(after(columns, final))
        right, _ = read_yes_no(str(right_of(columns)))
        return Verdict(word, float(word is not None and word == right), method)
    rule = rule_of(columns)
    if rule is None:
        return UNREAD
    answer, _ = open_answer(final)
    return scored(rule, right_of(columns), [answer or final, after(columns, final)])


def published_memories(columns: Columns, text: str) -> Verdict:
    """MEMLENS (arXiv 2605.14906): a judge reads an answer of up to 500 words."""
    plain = _MARK.sub("", text.partition("</think>")[2] if "</think>" in text else text)
    words = plain.replace("[CONTENT_FILTER_REJECTED]", "").split()
    return Verdict(f"{len(words)} words", 0.0, "too long") if len(words) > _MOST_WORDS else left_to_judge(columns, text)


def memories(columns: Columns, text: str) -> Verdict:
    """The same of the final part; an answer that equals the right one needs no judge."""
    final, _ = final_text(text)
    verdict = published_memories(columns, final or "")
    return verdict if verdict.extracted is not None else equal(columns, text)
