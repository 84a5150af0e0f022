"""Answers judged: by rules first, then by labels in files, then by a model, or several that form a panel."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.answers.judging import JUDGINGS, METHOD, VERSION, Judging, judging_of
from testbed.answers.judging_pairs import together
from testbed.answers.label_files import read_labels, verdicts_in
from testbed.answers.reports.report import VERSION as REPORT_VERSION
from testbed.answers.reports.report import report
from testbed.answers.scorings import RULES
from testbed.answers.verdict import Verdict
from testbed.entities import Metric, Score
from testbed.errors import DefinitionError
from testbed.graph.nodes import Built
from testbed.identity import digest
from testbed.metric_specs import HIGHER, NEITHER, NEVER, MetricSpec, rate
from testbed.metrics.caption_status import STATUS
from testbed.metrics.judges import krippendorff_alpha, majority, swap_consistency
from testbed.metrics.statistics import mean_and_stderr
from testbed.models.base.capability import GenerationConfig, Message
from testbed.tasks.captioning import require_some
from testbed.tasks.parts.generation import is_answer, texts_and_status
from testbed.tasks.question_answering import (
    BOUND_RIGHT,
    BOUND_WRONG,
    SCORE,
    UNREAD,
    QuestionAnswering,
    answered_of,
    blank,
    columns_of,
    named,
    score_array,
    verdicts_of,
)
from testbed.tasks.question_answering import task as question_answering
from testbed.tasks.task_base import Task

if TYPE_CHECKING:
    from testbed.eval_settings.base.setting import Scoring
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition

    Array = np.ndarray[Any, Any]

log = logging.getLogger("testbed")
SCORER = "judged_answers@1"
RULE_SCORE, SWAP_CONSISTENCY = rate("rule_score"), rate("swap_consistency")
ALPHA = MetricSpec("alpha", "", HIGHER, highest=1)
MAX_NEW_TOKENS = 1024  # of a verdict; judges that reason need some
ROLE, AGAIN, SWAPPED = "verdicts", ".again", ".swapped"


class JudgedAnswers(Task):
    """Stored answers, which rules read first; judges say what rules leave open.

    The further task option ``judging`` is a name in `JUDGINGS`; by default that of the setting's ``scoring``.
    """

    name = "judged_answers"
    options = QuestionAnswering.options | {"judging"}
    scorer = SCORER

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """As question answering: what the model under test must be able to do."""
        return question_answering.route(model, setting)

    def build(self, graph: Graph) -> Built:
        """The answers, and each judge's replies."""
        config = GenerationConfig(max_new_tokens=MAX_NEW_TOKENS)
        replies = {}
        for number, judge in enumerate(scoring_of(graph.setting).judges):
            messages = partial(self.messages, model=graph.model.name)
            replies[_role(number)] = graph.answers(messages, by=judge, config=config)
            if JUDGINGS[_kind(graph.setting)].again is not None:
                again = partial(self.messages_again, model=graph.model.name, number=number)
                replies[_role(number, AGAIN)] = graph.answers(again, by=judge, config=config)
            if JUDGINGS[_kind(graph.setting)].swapped is not None:
                swapped = partial(self.messages_swapped, model=graph.model.name)
                replies[_role(number, SWAPPED)] = graph.answers(swapped, by=judge, config=config)
        return Built(graph.outputs_of(graph.judged), replies)

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """How answers are read, judged and reported."""
        scoring, chosen, rules = named(setting)
        kind = _kind(setting)
        how = [kind, VERSION, JUDGINGS[kind].when, *(["mean grade"] if JUDGINGS[kind].graded else [])]
        labels = [digest(read_labels(Path(each))) for each in scoring_of(setting).labels]
        return {
            "scorer": SCORER,
            "scoring": [scoring, RULES[rules]],
            "report": [chosen, REPORT_VERSION],
            "judging": how,
            **({"labels": labels} if labels else {}),
        }

    def messages(self, setting: EvalSetting, values: Values, model: str) -> list[Message]:
        """What the judges are asked about the answers of a model, each once."""
        return _messages(_Asked(setting, values, model).questions)

    def messages_swapped(self, setting: EvalSetting, values: Values, model: str) -> list[Message]:
        """What the judges are asked with the two answers in the other order, each once."""
        return _messages(_Asked(setting, values, model).swapped())

    def messages_again(self, setting: EvalSetting, values: Values, model: str, number: int) -> list[Message]:
        """What a judge is asked about what it extracted, each once."""
        asked = _Asked(setting, values, model)
        return _messages(asked.again(_first(asked, values, number)))

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """The benchmark's report from the verdicts of rules, labels and judges.

        A panel's verdict is that of most of its judges, of which more than half must have a readable one. What no
        judge says readably is not scored.

        Returns:
            The scores ``status``, ``score``, ``rule_score`` and, for each judge, ``verdict`` (NaN where it was not
            asked or cannot be read; numbered for a panel); the metrics of the report, ``judged`` (the share of answers
            that rules leave to labels and judges), ``labelled`` (of these, those that files of labels tell, where there
            are any), ``unread`` (of these, without a verdict), ``rules_alone`` (the mean score if nobody were asked),
            ``bound_wrong`` and ``bound_right`` (if all that is without a verdict were wrong, or right), ``alpha``
            (Krippendorff's, of a panel), ``swap_consistency`` (of pairs, the share with the same winner in both orders)
            and ``empty``.
        """
        asked = _Asked(setting, values, "" if model is None else model.name)
        require_some(asked.status, values, setting)
        judges, labels = scoring_of(setting).judges, scoring_of(setting).labels
        replies = [_read(asked, values, number) for number in range(len(judges))]
        each = np.array([[np.nan if found is None else found.score for found in of_judge] for of_judge in replies])
        final = _final(asked, replies, each)
        _, chosen, _ = named(setting)
        answered = answered_of(values, asked.columns, final, asked.texts)
        scores = [
            STATUS.score(asked.status, SCORER),
            SCORE.score(score_array(final), SCORER),
            RULE_SCORE.score(score_array(asked.by_rules), SCORER),
            *(
                rate(f"verdict.{number + 1}" if len(judges) > 1 else "verdict").score(row, SCORER)
                for number, row in enumerate(each)
            ),
        ]
        metrics = [*report(chosen, answered, SCORER), *_trust(asked, final, each)]
        if labels:
            if asked.outdated:
                log.warning("%s: labels of other answers left out: %s", setting.name, f"{asked.outdated:,}")
            mean, stderr = mean_and_stderr(np.array([place in asked.labels for place in asked.left], dtype=np.float64))
            metrics.append(rate("labelled", NEITHER, NEVER).metric(mean, len(asked.left), stderr, scorer=SCORER))
        if asked.judging.swapped is not None and judges:
            metrics.append(_swap_consistency(asked, values, len(judges)))
        return scores, [*metrics, blank(asked.status, SCORER)]

    def asked_judges(self, values: Values, setting: EvalSetting, model: str) -> Iterator[AskedJudge]:
        """What each judge was asked about the answers of a model, and said."""
        asked = _Asked(setting, values, model)
        for number, judge in enumerate(scoring_of(setting).judges):
            replies = _stored(values, _role(number), asked.questions)
            second = _stored(values, _role(number, AGAIN), asked.again(_first(asked, values, number)))
            second |= _stored(values, _role(number, SWAPPED), asked.swapped())
            verdicts = _read(asked, values, number)
            for place, question in asked.questions.items():
                answer = str(asked.texts[place])
                yield AskedJudge(judge, place, answer, question, replies[place], second.get(place), verdicts[place])


@dataclass(frozen=True)
class AskedJudge:
    """What a judge was asked about an answer, and said.

    Attributes:
        judge: The judge.
        place: The position of the sample.
        answer: The answer.
        question: The question.
        reply: The stored reply; None if there is none.
        second: The stored reply to a second question, where one was asked: about what was extracted, or with two
            answers in the other order.
        verdict: What was read in the replies; None if nothing.
    """

    judge: str
    place: int
    answer: str
    question: str
    reply: Mapping[str, Any] | None
    second: Mapping[str, Any] | None
    verdict: Verdict | None


class _Asked:
    """What rules say of the answers to a setting, and what judges are asked.

    Attributes:
        texts: The answers; None where there is none.
        status: Of each sample; see `texts_and_status`.
        columns: Of each row.
        by_rules: What rules say.
        left: The positions of the answers that rules leave to labels and judges.
        labels: Position → what files of labels say of such an answer.
        outdated: How many labels of the model are of other answers than these.
        questions: Position → the question to the judges about such an answer without a label.
    """

    def __init__(self, setting: EvalSetting, values: Values, model: str) -> None:
        scoring, _, rules = named(setting)
        self.judging: Judging = JUDGINGS[_kind(setting)]
        self.texts, self.status = texts_and_status(values.outputs)
        self.columns = [columns_of(sample.target, setting.name) for sample in values.samples]
        self.by_rules = verdicts_of(scoring, self.columns, self.texts, rules)
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
            place: again.question(self.columns[place], str(verdict.extracted))
            for place, verdict in enumerate(verdicts)
            if again is not None and verdict is not None and np.isnan(verdict.score)
        }


def scoring_of(setting: EvalSetting) -> Scoring:
    """Who judges the answers to a setting.

    Raises:
        DefinitionError: If nobody does.
    """
    if setting.scoring is None:
        raise DefinitionError(
            f"{setting.name} has no judge; give it scoring=Scoring(of=…, by='name of a model'), or name it X@judge"
        )
    return setting.scoring


def _role(number: int, suffix: str = "") -> str:
    return f"{ROLE}.{number}{suffix}"


def _messages(questions: Mapping[int, str]) -> list[Message]:
    return [Message([question]) for question in dict.fromkeys(questions.values())]


def _kind(setting: EvalSetting) -> str:
    kind = setting.task_options.get("judging") or judging_of(named(setting)[0])
    if kind not in JUDGINGS:
        raise DefinitionError(
            f"{setting.name}: the task option 'judging' is {kind!r}; known: {', '.join(sorted(JUDGINGS))}"
        )
    return str(kind)


def _read(asked: _Asked, values: Values, number: int) -> list[Verdict | None]:
    """A judge's verdict on each sample; None where it was not asked or cannot be read."""
    found = _first(asked, values, number)
    if asked.judging.swapped is not None:
        return [together(*both) for both in zip(found, _swapped(asked, values, number), strict=True)]
    questions = asked.again(found)
    second: dict[int, Verdict | None] = dict.fromkeys(questions)
    for place, text in _replies(values, _role(number, AGAIN), questions):
        assert asked.judging.again is not None
        second[place] = asked.judging.again.verdict(asked.columns[place], text)
    for place, verdict in second.items():
        first = found[place]
        found[place] = None if first is None or verdict is None else replace(first, score=verdict.score)
    return found


def _first(asked: _Asked, values: Values, number: int) -> list[Verdict | None]:
    """A judge's verdict on each sample by its first reply; None where it was not asked or cannot be read."""
    found: list[Verdict | None] = [None] * len(asked.texts)
    for place, text in _replies(values, _role(number), asked.questions):
        found[place] = asked.judging.verdict(asked.columns[place], text)
    return found


def _swapped(asked: _Asked, values: Values, number: int) -> list[Verdict | None]:
    """A judge's verdicts on pairs in the other order, in which the answer under test is the second."""
    found: list[Verdict | None] = [None] * len(asked.texts)
    for place, text in _replies(values, _role(number, SWAPPED), asked.swapped()):
        found[place] = asked.judging.verdict(asked.columns[place], text)
    return found


def _swap_consistency(asked: _Asked, values: Values, judges: int) -> Metric:
    """How often judges say the same in both orders."""
    orders = [
        np.concatenate([score_array(read(asked, values, number)) for number in range(judges)])
        for read in (_first, _swapped)
    ]
    both = int((~np.isnan(orders).any(axis=0)).sum())
    return SWAP_CONSISTENCY.metric(swap_consistency(orders[0], 1 - orders[1]), both, scorer=SCORER)


def _replies(values: Values, role: str, questions: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """The position of each question that has a reply, and the reply."""
    for place, reply in _stored(values, role, questions).items():
        if reply is not None and is_answer(reply):
            yield place, reply["text"]


def _stored(values: Values, role: str, questions: Mapping[int, str]) -> dict[int, Any]:
    """Position → the stored reply to its question; None where there is none."""
    messages = _messages(questions)
    outputs = values.answers(role, messages) if messages else []
    replies = {str(message.parts[0]): output for message, output in zip(messages, outputs, strict=True)}
    return {place: replies[question] for place, question in questions.items()}


def _final(asked: _Asked, replies: Sequence[Sequence[Verdict | None]], each: Array) -> list[Verdict | None]:
    """What counts for each sample: the rules' verdict, a label, or what most judges say; None without a verdict."""
    final = [asked.labels.get(place, verdict) for place, verdict in enumerate(asked.by_rules)]
    if not replies:
        return [None if place in asked.questions else verdict for place, verdict in enumerate(final)]
    most = _of_panel(asked.judging, each)
    for place in asked.questions:
        if asked.judging.graded:
            final[place] = None if np.isnan(most[place]) else Verdict(f"{most[place]:.6g}", float(most[place]), METHOD)
            continue
        agreeing = (of[place] for of in replies if of[place] is not None)
        chosen = next((verdict for verdict in agreeing if verdict is not None and verdict.score == most[place]), None)
        final[place] = chosen
    return final


def _of_panel(judging: Judging, each: Array) -> Array:
    """The score of a panel of which more than half can be read: its mean grade, or the verdict of most judges."""
    least = len(each) // 2 + 1
    if not judging.graded:
        return majority(each, least)
    known = (~np.isnan(each)).sum(axis=0)
    return np.where(known >= least, np.nansum(each, axis=0) / np.maximum(known, 1), np.nan)


def _trust(asked: _Asked, final: Sequence[Verdict | None], each: Array) -> list[Metric]:
    """How far the judges were needed, and what their failures could change."""
    answered = np.array([text is not None for text in asked.texts])
    judged = np.zeros(len(final), dtype=bool)
    judged[asked.left] = True
    scores = score_array(final)
    lacking = judged & np.isnan(scores)
    found = {
        rate("judged", NEITHER, NEVER): judged[answered].astype(np.float64),
        UNREAD: lacking[judged].astype(np.float64),
        rate("rules_alone"): score_array(asked.by_rules)[answered],
        BOUND_WRONG: np.where(lacking, 0.0, scores)[answered],
        BOUND_RIGHT: np.where(lacking, 1.0, scores)[answered],
    }
    metrics = []
    for spec, scored in found.items():
        values = scored[~np.isnan(scored)]  # rules alone leave some unscored
        mean, stderr = mean_and_stderr(values)
        metrics.append(spec.metric(mean, len(values), stderr, scorer=SCORER))
    if len(each) > 1:
        metrics.append(ALPHA.metric(krippendorff_alpha(each), int(judged.sum()), scorer=SCORER))
    return metrics


task = JudgedAnswers()
