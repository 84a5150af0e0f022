"""VL-RewardBench (arXiv 2411.17451): a judgement on two answers, of which one is known to be better."""

from __future__ import annotations

import re

from testbed.answers.columns import as_list, swapped, truth
from testbed.answers.texts import final_text
from testbed.answers.verdict import Columns, Verdict

_VERDICT = re.compile(
    r"(?:overall\s+judge?ment|verdict|conclusion|final\s+answer)\W{0,8}(?:is\W+)?(?:answer\W*)?([12])\b", re.IGNORECASE
)
_BETTER = re.compile(
    r"\banswer\W{0,4}([12])\W{0,4}\s+is\s+(?:\w+\s+){0,3}(?:better|superior|preferred)\b", re.IGNORECASE
)
_ALONE = re.compile(r"(?:answer)?\W*([12])\W*", re.IGNORECASE)


def better(columns: Columns) -> str:
    """The number of the better answer as shown, 1 or 2, by the table's ranks: the first of two has rank 0."""
    ranks = [rank.strip() for rank in as_list(truth(columns))]
    wanted = "1" if swapped(columns) else "0"
    return str(ranks.index(wanted) + 1) if wanted in ranks else ""


def comparison(columns: Columns, text: str) -> Verdict:
    """The answer that the last overall judgement prefers, or the only one that is called better."""
    final, why = final_text(text)
    plain = re.sub(r"[*_`#]", "", final or "")
    said = _VERDICT.findall(plain)[-1:] or sorted(set(_BETTER.findall(plain)))
    alone = _ALONE.fullmatch(plain)
    number = alone[1] if alone else said[0] if len(said) == 1 else None
    return Verdict(
        number, float(number is not None and number == better(columns)), "judgement" if number else why or "none"
    )
