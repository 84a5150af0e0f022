"""The report of VLADBench."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.answers.columns import has_answer
from testbed.answers.driving import (
    CHANGE,
    GROUPS,
    OTHERS,
    PLACES,
    RELATIONS,
    SPEED,
    STATEMENTS,
    WEIGHTS,
    Reading,
    is_statement,
    read,
)
from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ACCURACY
from testbed.answers.reports.scored import ScoredRows, mean, slice_name, sliced
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import OVERALL, Metric
from testbed.metric_specs import PREFERRED, rate

WEIGHTED = rate("weighted_score", headline=PREFERRED)
_TASK, _SCENE = "category3", "dindex"


@add_report("driving", "weighted_score", {"weighted_score": "Total"})
def driving(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """VLADBench (arXiv 2503.21505): the weighted score by task, by group of tasks, and over all.

    The score of a task weighs its right answers, the answers in the form that was asked for, and a number of its own:
    the overlap of boxes, the right statements, or how often the second half of a scene's questions is as good as the
    first one. Tasks weigh as many as their questions; the planning of trajectories has no score.
    """
    rows = ScoredRows.of(answered)
    readings = [
        read(columns, text) if verdict is not None and text is not None and has_answer(columns) else None
        for columns, text, verdict in zip(answered.columns, answered.texts, answered.verdicts, strict=True)
    ]
    scores: dict[str, tuple[float, int]] = {}
    for task in (task for tasks in GROUPS.values() for task in tasks):
        places = [place for place, row in enumerate(rows.columns) if row.get(_TASK) == task]
        own = [(place, reading) for place in places if (reading := readings[place]) is not None]
        if own:
            scores[task] = _score(task, rows, own), len(own)
    parts = {OVERALL: list(scores)} | {slice_name("task", task): [task] for task in scores}
    parts |= {slice_name("group", name): [task for task in tasks if task in scores] for name, tasks in GROUPS.items()}
    found = []
    for part, tasks in parts.items():
        number = sum(scores[task][1] for task in tasks)
        total = sum(score * size for score, size in map(scores.__getitem__, tasks))
        if number or part == OVERALL:
            value = total / number if number else None
            found.append(WEIGHTED.metric(value, number, slice=part, scorer=scorer))
    return [*found, mean(rows, ACCURACY, scorer), *sliced(rows, ACCURACY, scorer, "task", rows.labels(_TASK))]


def _score(task: str, rows: ScoredRows, own: Sequence[tuple[int, Reading]]) -> float:
    special = _special(task, rows, own)
    readings = [reading for _, reading in own]
    open_ones = [reading for place, reading in own if task not in STATEMENTS or not is_statement(rows.columns[place])]
    right = _mean([reading.score for reading in open_ones])
    parts = (special, right, _mean([float(reading.as_asked) for reading in readings]))
    return sum(weight * part for weight, part in zip(WEIGHTS.get(task, OTHERS), parts, strict=True))


def _special(task: str, rows: ScoredRows, own: Sequence[tuple[int, Reading]]) -> float:
    """The number that a task has of its own."""
    if task in PLACES:
        return _mean([reading.overlap for _, reading in own if reading.overlap is not None])
    if task in STATEMENTS:
        return _mean([reading.score for place, reading in own if is_statement(rows.columns[place])])
    if task not in (*RELATIONS, CHANGE, SPEED):
        return 0.0
    scenes: list[list[float]] = []
    last: str | None = None
    for place, reading in own:
        scene = rows.columns[place].get(_SCENE)
        if scene != last or not scenes:
            scenes.append([])
        scenes[-1] += [reading.score] if reading.listed else []
        last = scene
    return 2 * sum(map(_as_good, scenes)) / len(own)


def _as_good(scores: Sequence[float]) -> int:
    """Counts the pairs of an answer of the second half and one of the first that are both right, or better."""
    half = len(scores) // 2
    pairs = zip(scores[half:], scores[:half], strict=False)
    return sum((second == first == 1) + (second > first) for second, first in pairs)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
