"""What was read in an answer, and all that a report is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """What rules, or a judge, say of an answer.

    Attributes:
        extracted: What was read in the answer: the letter of an option, ``"Yes"`` or ``"No"``, a number or a text as it
            was compared. None if nothing could be read: the answer is *unparsed*, and counts as wrong unless it is left
            to a judge.
        score: How right it is, in [0, 1]; NaN of an unparsed answer that rules leave to a judge, which is not scored.
        method: The rule that read it, such as ``"letter"``, ``"answer is"`` or ``"option text"``; ``"none"`` if none
            did.
    """

    extracted: str | None
    score: float
    method: str


@dataclass(frozen=True)
class Answered:
    """Answered questions. All sequences have the same length n and order.

    Attributes:
        ids: The index of each row.
        columns: The columns of each row, without pictures: ``answer``, ``A``, ``category``, ``split``, …; an empty cell
            is left out.
        verdicts: Of each answer; None where there is no answer (missing, or an error), which is not scored.
        texts: The answers; None where there is none.
        groups: What several rows share, such as their picture, for standard errors; None for a row by itself. Without
            it, rows with the same ``image_path``, else the same ``video``, are a group.
        published: Whether VLMEvalKit's rules have read the answers. They compare the case of right answers, too.
    """

    ids: Sequence[str]
    columns: Sequence[Mapping[str, str]]
    verdicts: Sequence[Verdict | None]
    texts: Sequence[str | None]
    groups: Sequence[str | None] | None = None
    published: bool = False
