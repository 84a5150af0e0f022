"""Reports that are a mean over all rows and by the columns of the table: one entry each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from testbed.answers.columns import listed
from testbed.answers.reports.benchmark import Compute, add_report
from testbed.answers.reports.choice import ABILITY, ACCURACY, CATEGORY, SPLIT
from testbed.answers.reports.scored import ScoredRows, by_columns, by_items, mean, values_of
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import Metric
from testbed.metric_specs import HIGHER, PREFERRED, MetricSpec, rate

GRADE = MetricSpec("grade", "points", HIGHER, lowest=0, headline=PREFERRED)
ANLS, F1 = rate("anls", headline=PREFERRED), rate("f1", headline=PREFERRED)
_TASKS = (
    *("data_source", "question_type", "task_type", CATEGORY, "sub_task_type"),
    *("Easy2hard", "Grounding", "Indoor_Scene_Perception", "Robot"),  # parts of MMSI-Video-Bench
)


@dataclass(frozen=True)
class Parts:
    """The parts of a set that are reported.

    Attributes:
        columns: Columns whose values are parts.
        within: The column within whose values the others are also parts; empty for none.
        lists: Columns that are lists: a question counts in each of its items.
        scale: The best grade, where scores are grades; 0 for a share.
        spec: The metric, where scores are not grades.
        published: VLMEvalKit's name of the metric over all rows; empty where it has none.
    """

    columns: Sequence[str]
    within: str = ""
    lists: Sequence[str] = ()
    scale: float = 0.0
    spec: MetricSpec = ACCURACY
    published: str = "overall"


DECLARED: Mapping[str, Parts] = {
    "vqa": Parts((SPLIT, ABILITY, CATEGORY), published="Overall"),  # VLMEvalKit gives either splits or categories
    "anls": Parts((SPLIT, ABILITY, CATEGORY), spec=ANLS, published="Overall"),  # DocVQA, arXiv 2007.00398
    "transcription": Parts((SPLIT, ABILITY, CATEGORY), spec=F1, published="macro_f1_score"),  # CC-OCR, arXiv 2412.02210
    "spatial": Parts(_TASKS),  # benchmarks of spatial understanding
    "visual_puzzles": Parts((CATEGORY, "difficulty")),  # arXiv 2504.10342
    "disciplines": Parts(("discipline",), published=""),  # MMReason, arXiv 2506.23563
    "safety": Parts((CATEGORY,), spec=rate("safety_rate", headline=PREFERRED), published=""),  # arXiv 2311.17600
    "mvbench": Parts(("task_type",)),
    "video_tt": Parts(("capability",)),
    "video_holmes": Parts(("question_type",)),
    "mlvu": Parts(("task_type",)),
    "mlvu_open": Parts(("task_type",), scale=10),
    "temp_compass": Parts(("task_type",), within="dim"),
    "long_video_bench": Parts(("question_category",), within="duration_group"),
    "world_sense": Parts(
        ("domain", "sub_category", "task_domain", "task_type"), within="duration", lists=("audio_class",)
    ),
}


def by_parts(answered: AnsweredQuestions, scorer: str, parts: Parts) -> list[Metric]:
    """The mean, or the mean grade, over all and by the parts of a set."""
    rows = ScoredRows.of(answered)
    metrics = [mean(rows, parts.spec, scorer), *_of_columns(rows, scorer, parts)]
    if parts.within:
        labels = rows.labels(parts.within)
        metrics += by_columns(rows, parts.spec, scorer, (parts.within,))
        for label in values_of(labels):
            metrics += _of_columns(rows.where(labels, label), scorer, parts, parts.within, label)
    return [as_grade(metric, parts.scale) for metric in metrics] if parts.scale else metrics


def _of_columns(rows: ScoredRows, scorer: str, parts: Parts, *within: str) -> list[Metric]:
    metrics = by_columns(rows, parts.spec, scorer, parts.columns, *within)
    for column in parts.lists:
        metrics += by_items(rows, parts.spec, scorer, column, items_of(rows, column), *within)
    return metrics


def items_of(rows: ScoredRows, column: str) -> list[list[str]]:
    """The items of each cell of a column; none of an empty cell."""
    return [[] if cell is None else listed(cell) or [cell] for cell in rows.labels(column)]


def as_grade(metric: Metric, scale: float) -> Metric:
    """A mean score as a mean grade, of which the best is ``scale``."""
    value = None if metric.value is None else metric.value * scale
    stderr = None if metric.stderr is None else metric.stderr * scale
    return GRADE.metric(value, metric.n, stderr, metric.slice, metric.scorer, clusters=metric.clusters)


for _name, _parts in DECLARED.items():
    _primary = GRADE.name if _parts.scale else _parts.spec.name
    _compute: Compute = partial(by_parts, parts=_parts)
    add_report(_name, _primary, {_primary: _parts.published} if _parts.published else None)(_compute)
