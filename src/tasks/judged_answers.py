"""Answers judged: by rules first, then by labels in files, then by a model, or several that form a panel."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.answers.judges.judging import pooled
from testbed.answers.judges.label_files import read_labels
from testbed.answers.judges.questions import JUDGINGS, VERSION, Judging
from testbed.answers.reports.report import REPORTS, report
from testbed.answers.reports.report import VERSION as REPORT_VERSION
from testbed.answers.reports.scored import slice_name
from testbed.answers.scorings import RULES
from testbed.answers.verdict import Verdict
from testbed.arrays import Array
from testbed.entities import JUDGE_SLICE, Metric, Score
from testbed.graph.nodes import Built
from testbed.identity.describe import digest
from testbed.metric_specs import HIGHER, LOWER, NEITHER, NEVER, MetricSpec, rate
from testbed.metrics.inference.judges import krippendorff_alpha, majority, swap_consistency
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.metrics.scorers.caption_status import STATUS
from testbed.models.base.capability import GenerationConfig, Message
from testbed.tasks.captioning import require_some
from testbed.tasks.parts.generation import READING
from testbed.tasks.parts.judges import (
    AGAIN,
    SWAPPED,
    JudgeExchange,
    JudgeQuestions,
    kind_of,
    messages_of,
    reasons,
    role_of,
    scoring_of,
)
from testbed.tasks.question_answering import (
    BOUND_RIGHT,
    BOUND_WRONG,
    SCORE,
    UNREAD,
    QuestionOptions,
    answered_of,
    blank,
    named,
    score_array,
    texts_for,
)
from testbed.tasks.question_answering import task as question_answering
from testbed.tasks.task_base import Task

if TYPE_CHECKING:
    from testbed.data.left_out import LeftOut
    from testbed.entities import SampleInfo
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition

    Array = Array

log = logging.getLogger("testbed")
SCORER = "judged_answers@2"
RULE_SCORE, SWAP_CONSISTENCY = rate("rule_score"), rate("swap_consistency")
ALPHA = MetricSpec("alpha", "", HIGHER, highest=1)
MAX_NEW_TOKENS = 1024  # of a verdict; judges that reason need some


class JudgedAnswers(Task):
    """Stored answers, which rules read first; judges say what rules leave open."""

    name = "judged_answers"
    options = QuestionOptions
    scorer = SCORER
    leaves_out_unreadable = True

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """Checks the capabilities of the model under test, as for question answering."""
        return question_answering.route(model, setting)

    def check_samples(self, setting: EvalSetting, samples: Sequence[SampleInfo]) -> tuple[LeftOut, ...]:
        """See `question_answering`."""
        return question_answering.check_samples(setting, samples)

    def build(self, graph: Graph) -> Built:
        """The answers, and each judge's replies."""
        config = GenerationConfig(max_new_tokens=MAX_NEW_TOKENS)
        replies = {}
        for number, judge in enumerate(scoring_of(graph.setting).judges):
            messages = partial(self.messages, model=graph.model.name)
            replies[role_of(number)] = graph.answers(messages, by=judge, config=config)
            if JUDGINGS[kind_of(graph.setting)].again is not None:
                again = partial(self.messages_again, model=graph.model.name, number=number)
                replies[role_of(number, AGAIN)] = graph.answers(again, by=judge, config=config)
            if JUDGINGS[kind_of(graph.setting)].swapped is not None:
                swapped = partial(self.messages_swapped, model=graph.model.name)
                replies[role_of(number, SWAPPED)] = graph.answers(swapped, by=judge, config=config)
        return Built(graph.outputs_of(graph.judged), replies)

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """Describes how answers are read, judged and reported."""
        scoring, chosen, rules = named(setting)
        kind = kind_of(setting)
        how = [kind, VERSION, JUDGINGS[kind].when, *(["mean grade"] if JUDGINGS[kind].graded else [])]
        how += JUDGINGS.code(kind)
        labels = [digest(read_labels(Path(label))) for label in scoring_of(setting).labels]
        return {
            "scorer": SCORER,
            **READING,
            "scoring": [scoring, RULES[rules]],
            "report": [chosen, REPORT_VERSION, *REPORTS.code(chosen)],
            "judging": how,
            **({"labels": labels} if labels else {}),
        }

    def messages(self, setting: EvalSetting, values: Values, model: str) -> list[Message]:
        """Returns the different questions to the judges about the answers of a model."""
        return messages_of(JudgeQuestions(setting, values, model).questions)

    def messages_swapped(self, setting: EvalSetting, values: Values, model: str) -> list[Message]:
        """Returns the different questions with the two answers in the other order."""
        return messages_of(JudgeQuestions(setting, values, model).swapped())

    def messages_again(self, setting: EvalSetting, values: Values, model: str, number: int) -> list[Message]:
        """Returns the different questions to a judge about what it extracted."""
        asked = JudgeQuestions(setting, values, model)
        return messages_of(asked.again(asked.first_of(number)))

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """The benchmark's report from the verdicts of rules, labels and judges.

        A panel's verdict is that of most of its judges, of which more than half must have a readable one. An answer
        without a readable verdict is not scored.

        Returns:
            The scores ``status``, ``score``, ``rule_score`` and, for each judge, ``verdict`` (NaN where it was not
            asked or cannot be read; numbered for a panel); the metrics of the report, ``cut_off`` (see `extras`),
            ``judged`` (the share of answers that rules leave to labels and judges), ``labelled`` (of these, those with
            a label from a file, where there are any), ``unread`` (of these, without a verdict; its slices say for each
            judge why), ``rules_alone`` (the mean score if nobody were asked), ``bound_wrong`` and ``bound_right`` (if
            all that is without a verdict were wrong, or right), ``alpha`` (Krippendorff's, of a panel),
            ``swap_consistency`` (of pairs, the share with the same winner in both orders) and ``empty``.
        """
        asked = JudgeQuestions(setting, values, "" if model is None else model.name)
        require_some(asked.replies.status, values, setting)
        judges, labels = scoring_of(setting).judges, scoring_of(setting).labels
        final, each = _final(asked, len(judges))
        _, chosen, rules = named(setting)
        answered = answered_of(values, asked.columns, final, texts_for(asked.replies, rules))
        scores = [
            STATUS.score(asked.replies.status, SCORER),
            SCORE.score(score_array(final), SCORER),
            RULE_SCORE.score(score_array(asked.by_rules), SCORER),
            *(
                rate(f"verdict.{number + 1}" if len(judges) > 1 else "verdict").score(row, SCORER)
                for number, row in enumerate(each)
            ),
        ]
        metrics = [*report(chosen, answered, SCORER), *_trust(asked, final, each), *_silences(asked, judges)]
        if labels:
            if asked.outdated:
                log.warning("%s: labels of other answers left out: %s", setting.name, f"{asked.outdated:,}")
            mean, stderr = mean_and_stderr(np.array([place in asked.labels for place in asked.left], dtype=np.float64))
            metrics.append(rate("labelled", NEITHER, NEVER).metric(mean, len(asked.left), stderr, scorer=SCORER))
        if asked.judging.swapped is not None and judges:
            metrics.append(_swap_consistency(asked, len(judges)))
        return scores, [*metrics, blank(asked.replies.status, SCORER)]

    def scores(self, values: Values, setting: EvalSetting, model: str) -> Array:
        """Returns the scores of a model's answers, float array [n]; NaN for those without a verdict."""
        final, _ = _final(JudgeQuestions(setting, values, model), len(scoring_of(setting).judges))
        return score_array(final)

    def asked_judges(self, values: Values, setting: EvalSetting, model: str) -> Iterator[JudgeExchange]:
        """Returns each judge's questions about the answers of a model, and its replies."""
        asked = JudgeQuestions(setting, values, model)
        for number, judge in enumerate(scoring_of(setting).judges):
            yield from asked.said_by(number, judge)


def _final(asked: JudgeQuestions, judges: int) -> tuple[list[Verdict | None], Array]:
    """Returns what counts for each sample, and each judge's score: float array [judges, n].

    That is the rules' verdict, a label, or what most judges say; None without a verdict.
    """
    replies = [asked.verdicts_of(number) for number in range(judges)]
    each = np.array([score_array(of_judge) for of_judge in replies])
    final = [asked.labels.get(place, verdict) for place, verdict in enumerate(asked.by_rules)]
    if not replies:
        return [None if place in asked.questions else verdict for place, verdict in enumerate(final)], each
    most = _of_panel(asked.judging, each)
    for place in asked.questions:
        if asked.judging.graded:
            final[place] = None if np.isnan(most[place]) else pooled([of[place] for of in replies], float(most[place]))
            continue
        agreeing = (of[place] for of in replies if of[place] is not None)
        chosen = next((verdict for verdict in agreeing if verdict is not None and verdict.score == most[place]), None)
        final[place] = chosen
    return final, each


def _of_panel(judging: Judging, each: Array) -> Array:
    """The score of a panel of which more than half can be read: its mean grade, or the verdict of most judges."""
    least = len(each) // 2 + 1
    if not judging.graded:
        return majority(each, least)
    known = (~np.isnan(each)).sum(axis=0)
    return np.where(known >= least, np.nansum(each, axis=0) / np.maximum(known, 1), np.nan)


def _trust(asked: JudgeQuestions, final: Sequence[Verdict | None], each: Array) -> list[Metric]:
    """Returns metrics of how many answers needed judges, and how much their failures could change."""
    answered = np.array([text is not None for text in asked.texts])
    judged = np.zeros(len(final), dtype=bool)
    judged[asked.left] = True
    scores = score_array(final)
    lacking = judged & np.isnan(scores)
    found = {
        rate("cut_off", LOWER, NEVER): np.array([each is True for each in asked.replies.cut_off])[answered].astype(
            np.float64
        ),
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


def _silences(asked: JudgeQuestions, judges: Sequence[str]) -> list[Metric]:
    """Slices of ``unread``: for each judge and reason the share of the answers on which it gave no verdict for it."""
    shares: dict[tuple[str, int], int] = {}
    for number, judge in enumerate(judges):
        said = list(asked.said_by(number, judge))
        for reason, times in reasons(said).items():
            part = slice_name(JUDGE_SLICE, f"{judge}: {reason}")
            shares[part, len(said)] = shares.get((part, len(said)), 0) + times
    return [UNREAD.metric(times / of, of, slice=part, scorer=SCORER) for (part, of), times in shares.items()]


def _swap_consistency(asked: JudgeQuestions, judges: int) -> Metric:
    """Returns how often judges give the same verdict in both orders."""
    orders = [
        np.concatenate([score_array(read(number)) for number in range(judges)])
        for read in (asked.first_of, asked.swapped_of)
    ]
    both = int((~np.isnan(orders).any(axis=0)).sum())
    return SWAP_CONSISTENCY.metric(swap_consistency(orders[0], 1 - orders[1]), both, scorer=SCORER)


task = JudgedAnswers()
