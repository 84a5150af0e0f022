"""Kinds of judging: what a judge is asked about an answer, and how its reply is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from testbed.answers.kinds import Kinds
from testbed.answers.texts import final_text
from testbed.answers.verdict import Columns, Verdict
from testbed.canonical_text import plain, plain_columns

When = Literal["unparsed", "wrong", "always"]


@dataclass(frozen=True)
class Judging:
    """A kind of judging.

    Attributes:
        question: Makes the question about an answer from the row's columns and the answer.
        read: The verdict that a reply gives; None if it cannot be read.
        when: The judged answers: those that rules cannot read, those that they do not call right, or all.
        graded: True if verdicts are degrees from 0 to 1: a panel's verdict is their mean, not the most frequent.
        again: A second question about the extracted answer, where its first verdict has the score NaN.
        swapped: The question with two answers in the other order; only verdicts that agree in both count.
        scorings: The scorings whose answers are judged in this way if a setting names no other one.
    """

    question: Callable[[Columns, str], str]
    read: Callable[[Columns, str], Verdict | None]
    when: When
    graded: bool = False
    again: Judging | None = None
    swapped: Callable[[Columns, str], str] | None = None
    scorings: Collection[str] = ()

    def verdict(self, columns: Columns, reply: str) -> Verdict | None:
        """The verdict that a reply gives in its final part; None if it cannot be read."""
        final, _ = final_text(plain(reply))
        return None if final is None else self.read(plain_columns(columns), final)

    def asks(self, verdict: Verdict | None) -> bool:
        """Checks whether the judge is asked about an answer with this verdict of rules; None for no answer."""
        if verdict is None:
            return False
        if self.when == "unparsed":
            return verdict.extracted is None
        return self.when == "always" or not verdict.score >= 1


def pooled(verdicts: Sequence[Verdict | None], score: float) -> Verdict:
    """The verdict of a panel with its mean score, and the mean of each mark where each verdict has several."""
    marks = [verdict.extracted.split() for verdict in verdicts if verdict is not None and verdict.extracted]
    try:
        columns = [[float(mark) for mark in same] for same in zip(*marks, strict=True)]
    except ValueError:
        columns = []
    means = [sum(column) / len(column) for column in columns] if len(columns) > 1 else [score]
    return Verdict(" ".join(f"{value:.6g}" for value in means), score, "judge")


JUDGINGS: Kinds[Judging] = Kinds("kind of judging")


def add_judging(name: str, judging: Judging) -> Judging:
    """Adds a kind of judging, which settings name by the task option ``judging``.

    Raises:
        DefinitionError: If one of testbed's own kinds has this name.
    """
    JUDGINGS.add(name, judging, judging.question)
    return judging
