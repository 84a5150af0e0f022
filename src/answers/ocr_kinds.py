"""OCRBench v2, as the rules `default` read it."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.answers.choice import read_choice
from testbed.answers.columns import references, truth
from testbed.answers.open_answers import contains
from testbed.answers.published import ocrbench_v2 as published
from testbed.answers.texts import final_text
from testbed.answers.verdict import Verdict

_FEW_WORDS = 5  # of right answers that are looked for in the answer


def ocrbench_v2(columns: Mapping[str, str], text: str) -> Verdict:
    """As published, of the final part; but options are read as others are, and short answers as whole words."""
    final, why = final_text(text)
    if not final:
        return Verdict(None, 0.0, why or "none")
    right = references(columns)
    if columns.get("eval") == published.CHOICE:
        letter, method = read_choice(text, dict.fromkeys("ABCDEFGH", ""))
        return Verdict(letter, float(letter is not None and letter == right[0].strip()), method)
    short = columns.get("category") in published.CONTAINED and columns.get("eval") != published.CASE_SENSITIVE
    if short and all(len(each.split()) < _FEW_WORDS for each in right):
        return contains({**columns, "answer": truth(columns)}, text, as_written=True)
    return published.ocrbench_v2(columns, text.strip())
