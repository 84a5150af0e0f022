"""Questions to judges about the answers to a setting, and the judges' replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.answers.judges.label_files import verdicts_in
from testbed.answers.judges.pairs import together
from testbed.answers.judges.questions import JUDGINGS, Judging, judging_of
from testbed.answers.scorings import SCORINGS
from testbed.answers.verdict import Verdict
from testbed.errors import DefinitionError
from testbed.models.base.capability import Message, is_answer
from testbed.tasks.parts.generation import is_cut_off, reason_in, replies_of
from testbed.tasks.question_answering import QuestionOptions, columns_of, named, verdicts_of
from testbed.tasks.task_base import options_of

if TYPE_CHECKING:
    from testbed.eval_settings.base.setting import Scoring
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values

Verdicts = list[Verdict | None]

ROLE, AGAIN, SWAPPED = "verdicts", ".again", ".swapped"
MORE = "other reasons"
_REASONS, _LONGEST = 8, 120  # the number of reasons that are distinguished, and their characters


@dataclass(frozen=True)
class JudgeExchange:
    """A question to a judge about an answer, and the reply.

    Attributes:
        judge: The judge.
        place: The position of the sample.
        answer: The answer.
        question: The question.
        reply: The stored reply, which may be a refusal; None if there is none.
        second: The stored reply to a second question, where one was asked: about what was extracted, or with two
            answers in the other order.
        verdict: What was read in the replies; None if nothing.
        silence: Why there is no verdict; empty if there is one.
    """

    judge: str
    place: int
    answer: str
    question: str
    reply: Mapping[str, Any] | None
    second: Mapping[str, Any] | None
    verdict: Verdict | None
    silence: str


class JudgeQuestions:
    """The verdicts of rules on the answers to a setting, and the questions to judges.

    Attributes:
        replies: The answers.
        texts: What the answers say finally; None where there is none.
        columns: Of each row.
        by_rules: What rules say.
        left: The positions of the answers that rules leave to labels and judges; none of them is blank.
        labels: Position → what files of labels say of such an answer.
        outdated: How many labels of the model are of other answers than these.
        questions: Position → the question to the judges about such an answer without a label.
    """

    def __init__(self, setting: EvalSetting, values: Values, model: str) -> None:
        scoring, _, rules = named(setting)
        self.values = values
        self.judging: Judging = JUDGINGS[kind_of(setting)]
        self.replies = replies_of(values.outputs)
        self.texts = self.replies.texts
        read = SCORINGS[scoring]
        self.columns = [read.keyed(columns_of(sample.target, setting.name)) for sample in values.samples]
        self.by_rules = verdicts_of(scoring, self.columns, self.replies, rules)
        told = zip(self.texts, self.by_rules, strict=True)
        self.left = [place for place, (text, rules) in enumerate(told) if text and self.judging.asks(rules)]
        ids = [sample.id for sample in values.samples]
        given, self.outdated = verdicts_in(scoring_of(setting).labels, model, ids, self.texts, self.judging.graded)
        self.labels = {place: given[place] for place in self.left if place in given}
        self.questions = {
            place: self.judging.question(self.columns[place], str(self.texts[place]))
            for place in self.left
            if place not in self.labels
        }

    # Questions ----------------------------------------------------------------------------------------------------

    def swapped(self) -> dict[int, str]:
        """Position → the question with the two answers in the other order."""
        ask = self.judging.swapped
        if ask is None:
            return {}
        return {place: ask(self.columns[place], str(self.texts[place])) for place in self.questions}

    def again(self, verdicts: Sequence[Verdict | None]) -> dict[int, str]:
        """Position → the second question to a judge, of whose first replies these are the verdicts."""
        again = self.judging.again
        return {
            index: again.question(self.columns[index], str(verdict.extracted))
            for index, verdict in enumerate(verdicts)
            if again is not None and verdict is not None and np.isnan(verdict.score)
        }

    # Replies ------------------------------------------------------------------------------------------------------

    def first_of(self, number: int) -> Verdicts:
        """A judge's verdict on each sample by its first reply; None where it was not asked or cannot be read."""
        return self._read(self.judging, role_of(number), self.questions)

    def swapped_of(self, number: int) -> Verdicts:
        """A judge's verdicts on pairs in the other order, in which the answer under test is the second."""
        return self._read(self.judging, role_of(number, SWAPPED), self.swapped())

    def verdicts_of(self, number: int) -> Verdicts:
        """A judge's verdict on each sample; None where it was not asked or cannot be read."""
        found = self.first_of(number)
        if self.judging.swapped is not None:
            return [together(*both) for both in zip(found, self.swapped_of(number), strict=True)]
        if self.judging.again is None:
            return found
        questions = self.again(found)
        second = self._read(self.judging.again, role_of(number, AGAIN), questions)
        return [
            _after(found[index], second[index]) if index in questions else found[index] for index in range(len(found))
        ]

    def said_by(self, number: int, judge: str) -> Iterator[JudgeExchange]:
        """Returns a judge's questions about each answer, and its replies."""
        first, verdicts = self.first_of(number), self.verdicts_of(number)
        replies = self._stored(role_of(number), self.questions)
        second = self._stored(role_of(number, AGAIN), self.again(first))
        second |= self._stored(role_of(number, SWAPPED), self.swapped())
        for place, question in self.questions.items():
            reply, other, verdict = replies[place], second.get(place), verdicts[place]
            silence = "" if verdict is not None else _silence(reply if first[place] is None else other)
            yield JudgeExchange(judge, place, str(self.texts[place]), question, reply, other, verdict, silence)

    def _read(self, judging: Judging, role: str, questions: Mapping[int, str]) -> Verdicts:
        """Reads the replies to questions; nothing is read in refusals and in replies that were cut off."""
        found: Verdicts = [None] * len(self.texts)
        for place, reply in self._stored(role, questions).items():
            if reply is not None and is_answer(reply) and not is_cut_off(reply):
                found[place] = judging.verdict(self.columns[place], reply["text"])
        return found

    def _stored(self, role: str, questions: Mapping[int, str]) -> dict[int, Any]:
        """Position → the stored reply to its question; None where there is none."""
        messages = messages_of(questions)
        outputs = self.values.replies(role, messages) if messages else []
        replies = {str(message.parts[0]): output for message, output in zip(messages, outputs, strict=True)}
        return {place: replies[question] for place, question in questions.items()}


def reasons(asked: Sequence[JudgeExchange]) -> Counter[str]:
    """Counts the reasons why a judge gave no verdict; rare reasons are counted together."""
    found = Counter(exchange.silence for exchange in asked if exchange.verdict is None)
    told = Counter(dict(found.most_common(_REASONS)))
    if rest := found.total() - told.total():
        told[MORE] += rest
    return told


def scoring_of(setting: EvalSetting) -> Scoring:
    """Returns how the answers to a setting are judged; raises DefinitionError if nobody does."""
    if setting.scoring is None:
        raise DefinitionError(
            f"{setting.name} has no judge; give it scoring=Scoring(of=…, by='name of a model'), or name it X@judge"
        )
    return setting.scoring


def kind_of(setting: EvalSetting) -> str:
    """The kind of judging of a setting, a name in `JUDGINGS`.

    Raises:
        DefinitionError: If there is none with the name that the setting gives.
    """
    kind = options_of(setting, QuestionOptions).judging or judging_of(named(setting)[0])
    if kind not in JUDGINGS:
        raise DefinitionError(
            f"{setting.name}: the task option 'judging' is {kind!r}; known: {', '.join(sorted(JUDGINGS))}"
        )
    return str(kind)


def role_of(number: int, suffix: str = "") -> str:
    """The role of a judge's replies in `Built.inputs`."""
    return f"{ROLE}.{number}{suffix}"


def messages_of(questions: Mapping[int, str]) -> list[Message]:
    """The messages with some questions, each once."""
    return [Message([question]) for question in dict.fromkeys(questions.values())]


def _after(first: Verdict | None, second: Verdict | None) -> Verdict | None:
    """Returns what a judge extracted, with the score that it gave it afterwards."""
    return None if first is None or second is None else replace(first, score=second.score)


def _silence(reply: Mapping[str, Any] | None) -> str:
    """Explains why a reply contains no verdict."""
    if reply is None:
        return "it gave no reply"
    if not is_answer(reply):
        return reason_in(reply)[:_LONGEST]
    return "its reply was cut off" if is_cut_off(reply) else "its reply has no verdict on a line of its own"
