"""Question answering: a model answers the rows of a table; rules, which can be chosen anew, read its answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.answers import prompts
from testbed.answers.columns import has_answer, listed
from testbed.answers.reports.report import REPORTS, VERSION, report
from testbed.answers.scorings import RULES, SCORINGS, AnswerScoring, drawn, unsaid
from testbed.answers.verdict import AnsweredQuestions, Verdict
from testbed.arrays import Array
from testbed.entities import Metric, Score
from testbed.errors import DataError, DefinitionError, UnsupportedError
from testbed.graph.nodes import Built
from testbed.metric_specs import LOWER, MAIN, NEVER, rate
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.metrics.scorers.caption_status import STATUS, shares
from testbed.models.base.capability import GenerationConfig
from testbed.tasks.captioning import require_some
from testbed.tasks.parts.generation import Replies, TextTask, replies_of
from testbed.tasks.parts.right_answers import check_right_answers
from testbed.tasks.task_base import as_options, options_of

if TYPE_CHECKING:
    from testbed.data.left_out import LeftOut
    from testbed.entities import SampleInfo
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition

log = logging.getLogger("testbed")

SCORER = "question_answering@2"
REFUSED = Verdict(None, 0.0, "refused")
# Of each answer: 1 is right, 0 is wrong, and some benchmarks have grades between.
SCORE, PARSED = rate("score", headline=MAIN, zero_one=True), rate("parsed")
UNREAD, BOUND_WRONG, BOUND_RIGHT = rate("unread", LOWER, NEVER), rate("bound_wrong"), rate("bound_right")
DEFAULT, PUBLISHED = "default", "vlmevalkit"
MAX_NEW_TOKENS = 2048  # unless the setting or the model says otherwise


@dataclass(frozen=True)
class QuestionOptions:
    """The task options of questions.

    Attributes:
        prompt: Makes the turns of the user from a `Row`; see `testbed.answers.prompts`.
        data_set: The name passed to models with prompts of their own; default the setting's.
        forced: Whether these models take this prompt all the same.
        generation: Fields of `GenerationConfig`. They come before what a model says of its own generation.
        scoring: A name in `SCORINGS`.
        report: A name in `REPORTS`.
        rules: ``"default"`` or ``"vlmevalkit"``.
        lacks: Why answers cannot be scored; models are then not supported.
        judging: For judges: a name in `testbed.answers.judges.judging.JUDGINGS`; default that of ``scoring``.
    """

    prompt: Callable[..., Any]
    data_set: str = ""
    forced: bool = False
    generation: Mapping[str, Any] = field(default_factory=dict)
    scoring: str = "multiple_choice"
    report: str = "accuracy"
    rules: str = DEFAULT
    lacks: str = ""
    judging: str = ""

    def __post_init__(self) -> None:
        as_options(GenerationConfig, self.generation, "the task option 'generation'")
        known: dict[str, Collection[str]] = {"scoring": SCORINGS, "report": REPORTS, "rules": RULES}
        for option, names in known.items():
            if (value := getattr(self, option)) not in names:
                raise DefinitionError(f"the task option {option!r} is {value!r}; known: {', '.join(sorted(names))}")


class QuestionAnswering(TextTask):
    """Answers to questions."""

    name = "question_answering"
    options = QuestionOptions
    scorer = SCORER

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """``"generate"``; raises UnsupportedError if the model does not generate text, or the set cannot be scored."""
        if lacks := options_of(setting, QuestionOptions).lacks:
            raise UnsupportedError(lacks)
        return super().route(model, setting)

    def check_samples(self, setting: EvalSetting, samples: Sequence[SampleInfo]) -> tuple[LeftOut, ...]:
        """Checks that questions are asked in one turn, and right answers; see `check_right_answers`.

        Raises:
            DataError: If all questions are lists, which the prompt would send as texts; or a right answer is wrong.
        """
        prompt = options_of(setting, QuestionOptions).prompt
        prompt = getattr(prompt, "func", prompt)
        in_one = prompt is not prompts.conversation and prompt.__module__ == prompts.__name__
        if samples and in_one and all(_is_in_turns(sample.target) for sample in samples):
            raise DataError(
                "its questions are lists, as in sets of several turns, and would be sent as they are written; give each"
                " question a row, or define a setting with the task option prompt=testbed.answers.prompts.conversation"
            )
        return check_right_answers(setting.name, SCORINGS[named(setting)[0]], samples)

    def build(self, graph: Graph) -> Built:
        """The answers."""
        given = options_of(graph.setting, QuestionOptions)
        config = generation_config(given.generation, graph.model)
        return Built(graph.row_answers(given.prompt, config, given.data_set or graph.setting.name, given.forced))

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """Describes how answers are read, scored and reported."""
        scoring, chosen, rules = named(setting)
        return {
            **super().view_spec(setting),
            "scoring": [scoring, RULES[rules], RULES[_others(rules)]],
            "report": [chosen, VERSION, *REPORTS.code(chosen)],
        }

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """Returns the benchmark's metrics, and how far they can be trusted.

        Answers that are missing, samples that cannot be read, and answers to rows whose right answer is hidden are not
        scored; blank and unparsed answers and refusals count as wrong. Of a table without right answers there is
        nothing but the share of answers. Where the scoring leaves unparsed answers to a judge, they are not scored; see
        `left_open`.

        Returns:
            The scores ``status`` (0 an answer, 1 none, 2 a blank one or a refusal, 3 an error), ``score`` (of each
            answer, in [0, 1]) and ``parsed`` (1 if the rules could read it); the metrics of the report and those of
            `testbed.answers.reports.report.extras`, and ``empty`` (the share of blank answers).
        """
        scoring, chosen, rules = named(setting)
        replies = replies_of(values.outputs)
        require_some(replies.status, values, setting)
        columns = [columns_of(sample.target, setting.name) for sample in values.samples]
        if columns and not any(map(has_answer, columns)):
            return [STATUS.score(replies.status, SCORER)], shares(replies.status, SCORER)
        verdicts, others = (verdicts_of(scoring, columns, replies, each) for each in (rules, _others(rules)))
        answered = answered_of(values, columns, verdicts, texts_for(replies, rules), rules == PUBLISHED)
        metrics = report(
            chosen,
            answered,
            SCORER,
            cut_off=replies.cut_off,
            other_verdicts=others,
            expected=_expected(SCORINGS[scoring], columns, verdicts) if SCORINGS[scoring].draws else None,
        )
        if SCORINGS[scoring].judged:
            metrics += left_open(verdicts, setting.name)
        status = STATUS.score(replies.status, SCORER)
        return [status, *_scores(verdicts)], [*metrics, blank(replies.status, SCORER)]


def left_open(verdicts: Sequence[Verdict | None], name: str) -> list[Metric]:
    """Returns how much the answers that rules leave to a judge could change; notes it in a line.

    Args:
        verdicts: Of each answer; None where there is none.
        name: Of the setting.

    Returns:
        ``unread`` (the share of answers that are not scored), ``bound_wrong`` and ``bound_right`` (the mean score if
        these were all wrong, or right).
    """
    scores = score_array([verdict for verdict in verdicts if verdict is not None])
    unread = np.isnan(scores)
    if unread.any():
        log.warning(
            "%s: %s of %s answers are not scored, since rules cannot read them; %s@JUDGE has a judge read them",
            name, f"{int(unread.sum()):,}", f"{len(scores):,}", name,
        )  # fmt: skip
    parts = {
        UNREAD: unread.astype(np.float64),
        BOUND_WRONG: np.where(unread, 0.0, scores),
        BOUND_RIGHT: np.where(unread, 1.0, scores),
    }
    means = {spec: mean_and_stderr(values) for spec, values in parts.items()}
    return [spec.metric(mean, len(scores), stderr, scorer=SCORER) for spec, (mean, stderr) in means.items()]


def answered_of(
    values: Values,
    columns: Sequence[Mapping[str, str]],
    verdicts: Sequence[Verdict | None],
    texts: Sequence[str | None],
    published: bool = False,
) -> AnsweredQuestions:
    """Returns the input of a report. Samples of a group share a picture."""
    groups = [sample.group for sample in values.samples]
    shared = groups if any(group is not None for group in groups) else None
    return AnsweredQuestions([sample.id for sample in values.samples], columns, verdicts, texts, shared, published)


def generation_config(given: Mapping[str, Any], model: ModelDefinition) -> GenerationConfig:
    """Returns the generation options: the setting's, or else the model's.

    Raises:
        DefinitionError: If the model names a field that there is not, or gives it a value of another type.
    """
    own = model.generation or {}
    as_options(GenerationConfig, own, f"{model.name}: 'generation'")
    return GenerationConfig(**{"max_new_tokens": MAX_NEW_TOKENS, **own, **given})


def _is_in_turns(target: Any) -> bool:
    """Checks whether a row has several questions in one cell."""
    return isinstance(target, dict) and len(listed(target.get("question", "")) or ()) > 1


def columns_of(target: Any, what: str) -> dict[str, str]:
    """The columns of a sample; raises DefinitionError if the data set is not a table."""
    if not isinstance(target, dict):
        raise DefinitionError(f"{what} asks questions from a table; the targets of its data set are not rows")
    return target


def named(setting: EvalSetting) -> tuple[str, str, str]:
    """The scoring, the report and the rules of a setting."""
    given = options_of(setting, QuestionOptions)
    return given.scoring, given.report, given.rules


def texts_for(replies: Replies, rules: str) -> list[str | None]:
    """Returns the texts that rules read: final parts of answers; published rules read whole answers, as VLMEvalKit."""
    return replies.whole if rules == PUBLISHED else replies.texts


def verdicts_of(
    scoring: str, columns: Sequence[Mapping[str, str]], replies: Replies, rules: str
) -> list[Verdict | None]:
    """Returns the rules' verdict on each answer; None where there is none, or no right answer to compare with."""
    read = SCORINGS[scoring]
    given = zip(columns, texts_for(replies, rules), replies.texts, replies.refusals, strict=True)
    found: list[Verdict | None] = []
    for row, text, final, refusal in given:
        if text is None or not has_answer(row) or refusal is not None:
            found.append(None if text is None or not has_answer(row) else REFUSED)
            continue
        verdict = read(row, text, rules)
        as_it_is = final or (rules == PUBLISHED and not text)  # VLMEvalKit reads blank answers like others
        found.append(verdict if as_it_is else unsaid(verdict))
    return found


def _others(rules: str) -> str:
    return PUBLISHED if rules == DEFAULT else DEFAULT


def _expected(
    scoring: AnswerScoring, columns: Sequence[Mapping[str, str]], verdicts: Sequence[Verdict | None]
) -> Array:
    """The expected score of each answer if an option were drawn where none could be read."""
    told = zip(columns, verdicts, strict=True)
    return np.array([np.nan if verdict is None else drawn(scoring.keyed(row), verdict) for row, verdict in told])


def _scores(verdicts: Sequence[Verdict | None]) -> list[Score]:
    parsed = [np.nan if verdict is None else float(verdict.extracted is not None) for verdict in verdicts]
    return [SCORE.score(score_array(verdicts), SCORER), PARSED.score(np.array(parsed), SCORER)]


def score_array(verdicts: Sequence[Verdict | None]) -> Array:
    """The score of each verdict, float array [n]; NaN for none."""
    return np.array([np.nan if verdict is None else verdict.score for verdict in verdicts], dtype=np.float64)


def blank(status: Array, scorer: str) -> Metric:
    """``empty``: the share of blank answers."""
    return next(share for share in shares(status, scorer) if share.name == "empty")


task = QuestionAnswering()
