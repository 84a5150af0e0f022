"""Verdicts on answers, and the input of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Columns = Mapping[str, str]  # of a row: the names of its columns → its cells; an empty cell is left out


@dataclass(frozen=True)
class Verdict:
    """The verdict of rules, or of a judge, on an answer.

    Attributes:
        extracted: The value read in the answer: the letter of an option, ``"Yes"`` or ``"No"``, a number or a text as
            it was compared. None if nothing could be read: the answer is *unparsed*, and counts as wrong unless it is
            left to a judge.
        score: The score in [0, 1]; NaN for an unparsed answer that rules leave to a judge, which is not scored.
        method: The rule that read it, such as ``"letter"``, ``"answer is"`` or ``"option text"``; ``"none"`` if none
            did.
    """

    extracted: str | None
    score: float
    method: str


UNREAD = Verdict(None, 0.0, "none")  # nothing could be read


@dataclass(frozen=True)
class AnsweredQuestions:
    """Answered questions. All sequences have the same length n and order.

    Attributes:
        ids: The index of each row.
        columns: The columns of each row, without pictures: ``answer``, ``A``, ``category``, ``split``, …; an empty cell
            is left out.
        verdicts: The verdict on each answer; None where there is no answer (missing, or an error), which is not scored.
        texts: The answers; None where there is none.
        groups: The group of each row, such as its picture, for standard errors; None for a row by itself. Without
            it, rows with the same ``image_path``, else the same ``video``, are a group.
        published: True if VLMEvalKit's rules have read the answers. They also compare the case of right answers.
    """

    ids: Sequence[str]
    columns: Sequence[Mapping[str, str]]
    verdicts: Sequence[Verdict | None]
    texts: Sequence[str | None]
    groups: Sequence[str | None] | None = None
    published: bool = False
