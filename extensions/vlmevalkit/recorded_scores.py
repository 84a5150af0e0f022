"""Compares VLMEvalKit's recorded scores with testbed's for the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.answers.reports.choice import base_index
from testbed.answers.reports.report import report
from testbed.answers.scorings import RULES
from testbed.answers.verdict import AnsweredQuestions, Verdict
from testbed.data.tables.answers import is_prediction_table
from testbed.data.tables.scores import RecordedScores, recorded_scores
from testbed.db.store import Store
from testbed.entities import Evaluation, Metric, current
from testbed.errors import StoreError
from testbed.extensions.vlmevalkit.score_numbers import cells_of, numbers_of
from testbed.extensions.vlmevalkit.vlmevalkit_files import set_name_of
from testbed.extensions.vlmevalkit.vlmevalkit_scores import (
    ScaledMetric,
    ScoreFile,
    forms,
    is_circular_there,
    primary_of,
)
from testbed.models.replay import PREFIX, ReplayFamily, path_of
from testbed.tasks.parts.generation import Replies, replies_of
from testbed.tasks.question_answering import columns_of, texts_for, verdicts_of

if TYPE_CHECKING:
    from testbed.entities import DatasetInfo

PUBLISHED, DEFAULT = "vlmevalkit", "default"
LEAST_SIMILARITY = 0.5  # threshold of ANLS; smaller similarities count as 0
SAME = 1e-6  # smaller differences of scores are ignored, since files have rounded numbers
_VANILLA = "_vanilla_"  # in the names of tables with rotations as separate rows


@dataclass(frozen=True)
class Number:
    """A number of a recorded report.

    Attributes:
        file: The name of the file.
        row: Label of the row; empty for a single row.
        column: The column.
        recorded: The number.
        metric: testbed's corresponding metric; None if unknown.
        slice: Slice of the rows.
        ours: Its value by each set of rules, in the unit of the file; None if undefined.
    """

    file: str
    row: str
    column: str
    recorded: float
    metric: str | None
    slice: str | None
    ours: Mapping[str, float | None]

    def difference(self, rules: str) -> float | None:
        """testbed's value minus the recorded one."""
        value = self.ours.get(rules)
        return None if value is None else value - self.recorded


@dataclass(frozen=True)
class RuleResult:
    """The result of a set of rules for an answer."""

    extracted: str | None
    score: float | None


@dataclass(frozen=True)
class AnswerComparison:
    """The recorded score of an answer (of a question with all its rotations), and testbed's by each set of rules.

    Attributes:
        file: The name of the file.
        index: Index of the question.
        answer: The right answer.
        prediction: The scored answer; None if there is none.
        recorded: Its recorded score.
        ours: Results by each set of rules; the score is None without an answer.
    """

    file: str
    index: str
    answer: str
    prediction: str | None
    recorded: float
    ours: Mapping[str, RuleResult]

    def differs(self, rules: str) -> bool:
        """Returns whether testbed's score differs."""
        score = self.ours[rules].score
        return score is None or abs(score - self.recorded) > SAME


@dataclass(frozen=True)
class RecordedComparison:
    """The comparison of everything recorded beside a file of answers.

    Attributes:
        predictions: The file of answers.
        numbers: The reports.
        rows: The scores of answers; rows without stored answers are left out.
        unasked: Number of these, by file.
    """

    predictions: Path
    numbers: Sequence[Number]
    rows: Sequence[AnswerComparison]
    unasked: Mapping[str, int]


def compare_recorded(store: Store, model: str, eval_setting: str) -> RecordedComparison:
    """Compares the scores that VLMEvalKit recorded beside a file of answers with scores by rules.

    Args:
        store: The results store with the answers.
        model: ``replay:FILE``.
        eval_setting: The setting of the answers, with any rules.

    Raises:
        StoreError: If these are not recorded answers of VLMEvalKit, the setting has no questions from a table, or
            nothing was recorded beside the file.
        DataError: If a recorded file cannot be read.
        UnknownNameError: If the model or the setting is not in the store.
    """
    name = ReplayFamily().canonical(model) or model
    evaluation = _evaluation(store, name, eval_setting)
    path = path_of(name) if name.startswith(PREFIX) else None
    if path is None or not is_prediction_table(path):
        raise StoreError(f"{model} is not a file of answers of VLMEvalKit; expected replay:/path/MODEL_SET.xlsx")
    recorded = recorded_scores(path)
    if not recorded.reports and not recorded.answers:
        raise StoreError(
            f"nothing is recorded beside {path}; VLMEvalKit writes {path.stem}_acc.csv, _score.csv, _score.json, and"
            " tables such as _JUDGE_result.xlsx"
        )
    identity = store.evaluations.identity(evaluation).get("view", {})
    if not {"scoring", "report"} <= set(identity) or evaluation.dataset_id is None:
        raise StoreError(f"{eval_setting} has no questions from a table, so it has no such scores")
    scoring, chosen = str(identity["scoring"][0]), str(identity["report"][0])
    dataset = store.datasets.get(evaluation.dataset_id)
    replies = replies_of(store.outputs.read(evaluation.id, "text"))
    answered = {rules: _answered(dataset, replies, scoring, rules, eval_setting) for rules in RULES}
    return compared(recorded, answered, chosen, scoring, set_name_of(eval_setting))


def compared(
    recorded: RecordedScores, answered: Mapping[str, AnsweredQuestions], chosen: str, scoring: str, set_name: str
) -> RecordedComparison:
    """Compares recorded scores with scores of the same answers by rules.

    Args:
        recorded: The recorded files beside the file of answers.
        answered: The answers as each set of rules reads them.
        chosen: The report; a name in `testbed.answers.reports.report.REPORTS`.
        scoring: The scoring; a name in `testbed.answers.scorings.SCORINGS`.
        set_name: VLMEvalKit's name of the set.
    """
    metrics = {
        rules: {(metric.name, metric.slice): metric for metric in report(chosen, own, "recorded")}
        for rules, own in answered.items()
    }
    together = primary_of(chosen, metrics[DEFAULT]) == "circular" and is_circular_there(set_name)
    rows, unasked = _rows(recorded, answered, together, scoring)
    known = forms(chosen, scoring, list(metrics[DEFAULT]), set_name)
    return RecordedComparison(recorded.predictions, _numbers(recorded, metrics, known), rows, unasked)


def _evaluation(store: Store, model: str, eval_setting: str) -> Evaluation:
    done = [
        evaluation for evaluation in store.evaluations.find([model], [eval_setting]) if evaluation.status == "complete"
    ]
    found = [evaluation for evaluation in current(done) if evaluation.origin != "imported"]
    if not found:
        store.names.require("model", model)
        store.names.require("eval setting", eval_setting)
        raise StoreError(
            f"the store has no answers of {model} to {eval_setting}; run: testbed run '{model}' --on '{eval_setting}'"
        )
    return found[0]


def _answered(dataset: DatasetInfo, replies: Replies, scoring: str, rules: str, eval_setting: str) -> AnsweredQuestions:
    columns = [columns_of(sample.target, eval_setting) for sample in dataset.samples]
    groups = [sample.group for sample in dataset.samples]
    return AnsweredQuestions(
        [sample.id for sample in dataset.samples],
        columns,
        verdicts_of(scoring, columns, replies, rules),
        texts_for(replies, rules),
        groups if any(groups) else None,
        rules == PUBLISHED,
    )


def _numbers(
    recorded: RecordedScores, metrics: Mapping[str, Mapping[tuple[str, str], Metric]], known: Sequence[ScoreFile]
) -> list[Number]:
    found = []
    for file, value in recorded.reports.items():
        kind = file.rpartition(".")[0]
        form = next((name for name in known if kind.endswith(name.suffix.rpartition(".")[0])), None)
        cells: Mapping[Any, ScaledMetric] = {} if form is None else cells_of(form)
        for (row, column), number in numbers_of(value).items():
            cell = cells.get((row, column))
            if cell is None:
                found.append(Number(file, row, column, number, None, None, {}))
                continue
            ours = {rules: cell.value(own) for rules, own in metrics.items()}
            found.append(Number(file, row, column, number, cell.metric, cell.slice, ours))
    return found


def _rows(
    recorded: RecordedScores, answered: Mapping[str, AnsweredQuestions], circular: bool, scoring: str
) -> tuple[list[AnswerComparison], dict[str, int]]:
    own = answered[DEFAULT]
    places = {index: place for place, index in enumerate(own.ids)}
    single = {rules: [_ours([verdict]) for verdict in every.verdicts] for rules, every in answered.items()}
    together = {rules: _rotations(every) for rules, every in answered.items()} if circular else single
    rows: list[AnswerComparison] = []
    unasked: dict[str, int] = {}
    for file, scores in recorded.answers.items():
        ours = single if _VANILLA in file else together
        matches = recorded.matches.get(file, {})
        for index, mean in scores.items():
            score = _from_matches(scoring, matches[index]) if index in matches else mean
            place = places.get(index)
            if place is None:
                unasked[file] = unasked.get(file, 0) + 1
                continue
            said = {rules: every[place] for rules, every in ours.items()}
            rows.append(
                AnswerComparison(file, index, own.columns[place].get("answer", ""), own.texts[place], score, said)
            )
    return rows, unasked


def _from_matches(scoring: str, matches: Sequence[float]) -> float:
    """Computes VLMEvalKit's score of an answer from its matches with each reference.

    This is the smallest ANLS distance as a similarity, the best match if any reference may match, and the mean
    otherwise.
    """
    if scoring == "anls":
        similarity = 1 - min(matches)
        return similarity if similarity >= LEAST_SIMILARITY else 0.0
    return max(matches) if scoring in ("relaxed", "exact") else sum(matches) / len(matches)


def _rotations(answered: AnsweredQuestions) -> list[RuleResult]:
    """Combines each row with all its rotations: right if all are right."""
    bases = [base_index(index, row.get("g_index")) for index, row in zip(answered.ids, answered.columns, strict=True)]
    groups: dict[int, list[Verdict | None]] = {}
    for base, verdict in zip(bases, answered.verdicts, strict=True):
        groups.setdefault(base, []).append(verdict)
    return [_ours(groups[base]) for base in bases]


def _ours(verdicts: Sequence[Verdict | None]) -> RuleResult:
    there = [verdict for verdict in verdicts if verdict is not None]
    read = [verdict.extracted for verdict in there if verdict.extracted is not None]
    score = min(verdict.score for verdict in there) if len(there) == len(verdicts) else None
    return RuleResult(", ".join(read) if read else None, score)
