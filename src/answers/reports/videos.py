"""Reports of benchmarks of videos. Questions of one video are a cluster of the standard error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from testbed.answers.columns import listed
from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ACCURACY, AVERAGE
from testbed.answers.reports.scored import ScoredRows, by_columns, mean, slice_name, sliced, values_of
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import Metric
from testbed.metric_specs import HIGHER, PREFERRED, MetricSpec, rate

GRADE = MetricSpec("grade", "points", HIGHER, lowest=0, headline=PREFERRED)
GROUP, LINEAR = rate("group_score", headline=PREFERRED), rate("linear_score")
_DIRECTIONS = tuple(f"object_rel_direction_{level}" for level in ("easy", "medium", "hard"))
_GROUP_SIZE = 4  # questions in a group of Video-MME-v2


@dataclass(frozen=True)
class Parts:
    """The parts of a set that are reported.

    Attributes:
        columns: Columns whose values are parts.
        within: The column within whose values the others are parts, too; empty for none.
        lists: Columns that are lists: a question counts in each of its items.
        scale: The best grade, where scores are grades; 0 where they are accuracies.
    """

    columns: Sequence[str]
    within: str = ""
    lists: Sequence[str] = ()
    scale: float = 0.0


# MMBench-Video's dimensions: groups → their parts.
_DIMENSIONS: Mapping[str, Sequence[str]] = {
    "CP": ("Video Topic", "Video Emotion", "Video Scene", "Video Style"),
    "FP-S": (*("OCR", "Object Recognition", "Attribute Recognition", "Event Recognition", "Human Motion", "Counting"),),
    "FP-C": ("Spatial Relationship", "Human-object Interaction", "Human Interaction"),
    "HL": ("Hallucination",),
    "LR": ("Structuralized Image-Text Understanding", "Mathematical Calculation"),
    "AR": ("Physical Property", "Function Reasoning", "Identity Reasoning"),
    "RR": ("Natural Relation", "Physical Relation", "Social Relation"),
    "CSR": ("Common Sense Reasoning",),
    "TR": ("Counterfactual Reasoning", "Causal Reasoning", "Future Prediction"),
}
_SIDES = {"Perception": ("CP", "FP-C", "FP-S", "HL"), "Reasoning": ("LR", "AR", "RR", "CSR", "TR")}

_PARTS: Mapping[str, Parts] = {
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
    """Accuracy, or the mean grade, over all and by the parts of a set."""
    rows = ScoredRows.of(answered)
    metrics = [mean(rows, ACCURACY, scorer), *_of_columns(rows, scorer, parts)]
    if parts.within:
        labels = rows.labels(parts.within)
        metrics += by_columns(rows, ACCURACY, scorer, (parts.within,))
        for label in values_of(labels):
            metrics += _of_columns(rows.where(labels, label), scorer, parts, parts.within, label)
    return [_as_grade(metric, parts.scale) for metric in metrics] if parts.scale else metrics


def _of_columns(rows: ScoredRows, scorer: str, parts: Parts, *within: str) -> list[Metric]:
    metrics = by_columns(rows, ACCURACY, scorer, parts.columns, *within)
    for column in parts.lists:
        metrics += _of_items(rows, scorer, column, _lists(rows, column), *within)
    return metrics


def _of_items(rows: ScoredRows, scorer: str, what: str, lists: Sequence[Sequence[str]], *within: str) -> list[Metric]:
    """The mean of the rows that have each item in a list."""
    metrics = []
    for item in values_of([item for own in lists for item in own]):
        has = [item if item in own else None for own in lists]
        metrics += sliced(rows, ACCURACY, scorer, what, has, *within)
    return metrics


def _lists(rows: ScoredRows, column: str) -> list[list[str]]:
    return [[] if cell is None else listed(cell) or [cell] for cell in rows.labels(column)]


def _as_grade(metric: Metric, scale: float) -> Metric:
    value = None if metric.value is None else metric.value * scale
    stderr = None if metric.stderr is None else metric.stderr * scale
    return GRADE.metric(value, metric.n, stderr, metric.slice, metric.scorer, clusters=metric.clusters)


for _name, _parts in _PARTS.items():
    _primary = GRADE.name if _parts.scale else ACCURACY.name
    _compute: Callable[[AnsweredQuestions, str], list[Metric]] = partial(by_parts, parts=_parts)
    add_report(_name, _primary, {_primary: "overall"})(_compute)


@add_report("vsi", AVERAGE.name, {AVERAGE.name: "overall"})
def vsi(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """VSI-Bench (arXiv 2412.14171): ``average`` of the kinds of questions, and their accuracies.

    The accuracy of a number is its mean relative accuracy. If all three difficulties of relative directions are there,
    their mean is one kind.
    """
    rows = ScoredRows.of(answered)
    by_kind = by_columns(rows, ACCURACY, scorer, ("question_type",))
    means = {each.slice.removeprefix("question_type/"): each.value for each in by_kind if each.value is not None}
    if set(_DIRECTIONS) <= set(means):
        means["directions"] = float(np.mean([means.pop(kind) for kind in _DIRECTIONS]))
    average = float(np.mean(list(means.values()))) if means else None
    return [
        AVERAGE.metric(average, int(rows.counted.sum()), scorer=scorer),
        mean(rows, ACCURACY, scorer),
        *by_kind,
        *by_columns(rows, ACCURACY, scorer, ("task_type",)),
    ]


@add_report("mmbench_video", GRADE.name, {GRADE.name: "Overall"})
def mmbench_video(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MMBench-Video (arXiv 2406.14515): the mean grade from 0 to 3, over all, by dimension and by group of these.

    A question counts once in each of its dimensions and in each group that has one of them. A question without a
    grade does not count, as in VLMEvalKit's ``coarse_valid`` and ``fine_valid``.
    """
    rows = ScoredRows.of(answered)
    fine = _lists(rows, "dimensions")
    coarse = [[group for group, names in _DIMENSIONS.items() if set(names) & set(own)] for own in fine]
    sides = [[side for side, groups in _SIDES.items() if set(groups) & set(own)] for own in coarse]
    metrics = [mean(rows, ACCURACY, scorer)]
    for what, lists in (("side", sides), ("group", coarse), ("dimension", fine)):
        metrics += _of_items(rows, scorer, what, lists)
    return [_as_grade(metric, 3) for metric in metrics]


@add_report("video_mme_v2", GROUP.name, {GROUP.name: "total"})
def video_mme_v2(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """Video-MME-v2: ``group_score`` of groups of four questions, by level, kind of group and heading; and accuracy.

    A group whose questions are about the same thing (``relevance``) scores (right / 4)², one whose questions build on
    each other (``logic``) by the length of the chain of right answers from the first on. ``linear_score`` is the share
    of right answers in groups of the first kind. A group without an answer to one of its questions does not count.
    """
    rows = ScoredRows.of(answered)
    groups = _groups(rows)
    kinds = groups.labels("group_type")
    scores = np.array([_group_score(group) for group in _members(rows)], dtype=np.float64)
    scored = replace(groups, scores=scores)
    relevance = replace(groups, scores=np.array([_mean_of(group) for group in _members(rows)], dtype=np.float64))
    return [
        mean(scored, GROUP, scorer),
        *by_columns(scored, GROUP, scorer, ("group_type", "level", "second_head", "third_head")),
        mean(relevance.where(kinds, "relevance"), LINEAR, scorer, slice_name("group_type", "relevance")),
        mean(rows, ACCURACY, scorer),
    ]


def _members(rows: ScoredRows) -> list[ScoredRows]:
    """The whole groups: questions with indices 4 k to 4 k + 3."""
    groups: dict[int, list[int]] = {}
    for place, name in enumerate(rows.ids):
        if name.isdecimal():
            groups.setdefault(int(name) // _GROUP_SIZE, []).append(place)
    ordered = (sorted(places, key=lambda place: int(rows.ids[place])) for places in groups.values())
    return [rows.take(places) for places in ordered if len(places) == _GROUP_SIZE]


def _groups(rows: ScoredRows) -> ScoredRows:
    """The groups, each with the columns of its last question."""
    place = {name: position for position, name in enumerate(rows.ids)}
    return rows.take(place[group.ids[-1]] for group in _members(rows))


def _mean_of(group: ScoredRows) -> float:
    scores: list[float] = group.scores.tolist()
    return sum(scores) / len(scores)  # NaN if one has no answer


def _group_score(group: ScoredRows) -> float:
    if np.isnan(group.scores).any():
        return float("nan")
    right: list[bool] = (group.scores == 1).tolist()
    last, share = group.columns[-1], sum(right) / _GROUP_SIZE
    if last.get("group_type") != "logic":
        return share * share
    return _chain(right, "".join((last.get("group_structure") or "").split()))


def _chain(right: Sequence[bool], structure: str) -> float:
    """The score of questions that build on each other; of two side by side in brackets either may come first."""
    length = next((place for place, one in enumerate(right) if not one), _GROUP_SIZE)
    if structure == "[1,[2,3],4]":
        length += length == 1 and right[2]
        return (0.0, 1 / 12, 4 / 12, 7 / 12, 1.0)[length]
    if structure == "[[1,2],3,4]":
        length += length == 0 and right[1]
        return (0.0, 1 / 10, 2 / 10, 5 / 10, 1.0)[length]
    return (0.0, 1 / 16, 4 / 16, 9 / 16, 1.0)[length]
