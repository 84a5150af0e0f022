"""Reports of benchmarks of videos. Questions of one video are a cluster of the standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ACCURACY, AVERAGE
from testbed.answers.reports.declared import GRADE, as_grade, items_of
from testbed.answers.reports.scored import ScoredRows, by_columns, by_items, mean, slice_name
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import Metric
from testbed.metric_specs import PREFERRED, rate

GROUP, LINEAR = rate("group_score", headline=PREFERRED), rate("linear_score")
_DIRECTIONS = tuple(f"object_rel_direction_{level}" for level in ("easy", "medium", "hard"))
_GROUP_SIZE = 4  # questions in a group of Video-MME-v2
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
    fine = items_of(rows, "dimensions")
    coarse = [[group for group, names in _DIMENSIONS.items() if set(names) & set(own)] for own in fine]
    sides = [[side for side, groups in _SIDES.items() if set(groups) & set(own)] for own in coarse]
    metrics = [mean(rows, ACCURACY, scorer)]
    for what, lists in (("side", sides), ("group", coarse), ("dimension", fine)):
        metrics += by_items(rows, ACCURACY, scorer, what, lists)
    return [as_grade(metric, 3) for metric in metrics]


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
    scored = groups.scored([_group_score(group) for group in _members(rows)])
    relevance = groups.scored([_mean_of(group) for group in _members(rows)])
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
