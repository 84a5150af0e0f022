"""Checks of right answers, before models are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.answers.columns import has_answer, truth
from testbed.answers.right_answers import letters_meant
from testbed.answers.scorings import AnswerScoring
from testbed.data.left_out import LeftOut, LeftOutLog
from testbed.data.tables.known import known_tables
from testbed.entities import SampleInfo
from testbed.errors import DataError

REWRITTEN = "right answers that are not letters, read as the options that they name"
NO_OPTION = "right answers that are not among their options, so that no answer is right"


def check_right_answers(name: str, scoring: AnswerScoring, samples: Sequence[SampleInfo]) -> tuple[LeftOut, ...]:
    """Checks that the right answers of rows with options are among these.

    Args:
        name: The setting's.
        scoring: How its answers are scored.
        samples: The rows.

    Returns:
        How many are written as something else than letters. Of a table that VLMEvalKit publishes, which nobody can
        repair, also how many are not options.

    Raises:
        DataError: If one is not an option of a row of another table.
    """
    told, wrong = LeftOutLog(), []
    for sample in samples:
        try:
            if change := _change(scoring, sample.target):
                told.out(f"{change} in row {sample.id}", REWRITTEN, expected=True)
        except DataError as error:
            wrong.append(f"row {sample.id}: {error}")
            told.out(wrong[-1], NO_OPTION)
    if wrong and name.partition(".")[0] not in known_tables():
        raise DataError(
            f"{len(wrong):,} of {len(samples):,} right answers are unclear; {wrong[0]}; write the letters of"
            " options in the column 'answer'"
        )
    return told.found()


def _change(scoring: AnswerScoring, columns: Any) -> str:
    """Describes how a right answer that is not a letter is read, such as ``'(A)' is A``; empty if it is one.

    Raises:
        DataError: If it is unclear.
    """
    if scoring.choices is None or not isinstance(columns, Mapping) or not has_answer(columns):
        return ""
    choices = scoring.choices(columns)
    meant = letters_meant(columns, choices, scoring.several) if choices else ""
    return f"{truth(columns)!r} is {meant}" if meant and truth(columns).strip().upper() != meant.upper() else ""
