"""Compares each checkpoint with the best one before it, on each setting.

The test is that of `testbed compare`. The best one before was chosen on the same samples, so a decline is tested
against the choice among all checkpoints before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.db.store import Store
from testbed.entities import NOT_FINITE, OVERALL, Evaluation, TrainingCheckpoint, groups_of
from testbed.errors import TestbedError
from testbed.extensions.watching.selected import decline, expected_of_best
from testbed.metric_specs import HIGHER, LOWER, MetricSpec
from testbed.metrics.inference.clusters import clusters_of
from testbed.metrics.inference.paired import SIGNIFICANT, PairedComparison, holm
from testbed.stored_results.checkpoints import CurvePoint, TrainingCurve, curves
from testbed.stored_results.paired import compare_pairs
from testbed.stored_results.side_by_side import SampleTable, scores_of

SAME = 1e-6  # tolerance between a metric and a mean of scores
BETTER, WORSE, TIED, FIRST, UNKNOWN = "better", "worse", "tied", "first", "not compared"


@dataclass(frozen=True)
class CheckpointComparison:
    """A checkpoint on a setting.

    Attributes:
        curve: The run's curve on the setting.
        point: The checkpoint.
        best: The best one before; None for the first.
        score: Declaration of the compared score.
        verdict: `BETTER`, `WORSE` or `TIED`; `FIRST` if there is none before, `UNKNOWN` if they cannot be compared.
        comparison: The scores of the samples of both; None if they were not compared.
        p: The p-value, adjusted over the settings; for a decline, also for the selection of the best.
        why: Reason why they were not compared.
        new_best: Whether it is the only best checkpoint of the run so far.
        expected: Expected value of the best checkpoint so far on other samples; see `expected_of_best`.
        not_finite: Number of samples with outputs that are NaN or infinite, which count as wrong.
    """

    curve: TrainingCurve
    point: CurvePoint
    best: CurvePoint | None
    verdict: str
    score: MetricSpec | None = None
    comparison: PairedComparison | None = None
    p: float | None = None
    why: str = ""
    new_best: bool = False
    expected: float | None = None
    not_finite: int = 0

    def as_object(self) -> dict[str, Any]:
        """The comparison as JSON."""
        compared, best = self.comparison, self.best
        return {
            "run": self.curve.run,
            "model": self.point.model,
            **{name: getattr(self.point.checkpoint, name) for name in ("step", "unit", "epoch")},
            "eval_setting": self.curve.eval_setting,
            "metric": self.curve.spec.name,
            **{name: getattr(self.point, name) for name in ("value", "low", "high", "n", "evaluation")},
            "verdict": self.verdict,
            "best_before": None if best is None else {"step": best.checkpoint.step, "value": best.value},
            "difference": None if compared is None else compared.difference,
            "p_holm": self.p,
            "why": self.why or None,
            "new_best": self.new_best,
            "best_expected": self.expected,
            "not_finite": self.not_finite,
        }


def paired(
    store: Store, checkpoint: TrainingCheckpoint, model: str, settings: Iterable[str]
) -> list[CheckpointComparison]:
    """Compares a checkpoint with the best one before it in the same run, on each setting.

    Args:
        store: The results store.
        checkpoint: The run and step.
        model: Its name.
        settings: The settings; those without a result are left out.
    """
    wanted = list(settings)
    found = {curve.eval_setting: curve for curve in curves(store, [checkpoint.run], wanted)}
    rows = [
        _paired(store, found[setting], point)
        for setting in wanted
        if setting in found
        for point in found[setting].points
        if point.model == model
    ]
    rows = [replace(row, not_finite=_not_finite(store, row.point)) for row in rows]
    compared = [place for place, row in enumerate(rows) if row.p is not None]
    for place, p in zip(compared, holm([row.p for row in rows if row.p is not None]), strict=True):
        rows[place] = replace(rows[place], p=p, verdict=_verdict(rows[place], p))
    return rows


def bests(store: Store, runs: Iterable[str], settings: Iterable[str]) -> list[tuple[TrainingCurve, CurvePoint, float]]:
    """Finds the best checkpoint of each run on each setting, and its expected value on other samples.

    Runs with one checkpoint, and those whose metric is not the mean of a score of samples, are left out.
    """
    made = (
        (curve, curve.best(), _Scores(store, curve, curve.points).expected()) for curve in curves(store, runs, settings)
    )
    return [
        (curve, best, value)
        for curve, best, value in made
        if best is not None and value is not None and len(curve.points) > 1
    ]


def _paired(store: Store, curve: TrainingCurve, point: CurvePoint) -> CheckpointComparison:
    best, alone = curve.best(before=point.checkpoint.step), curve.best() == point
    if best is None:
        first = curve.points[0] == point
        return CheckpointComparison(
            curve, point, None, FIRST if first else UNKNOWN, why=_unknown(curve, first), new_best=alone
        )
    try:
        found = compare_pairs(store, [point.model, best.model], [curve.eval_setting])
    except TestbedError as error:
        return CheckpointComparison(curve, point, best, UNKNOWN, why=str(error), new_best=alone)
    row = CheckpointComparison(curve, point, best, TIED, found.spec, found.rows[0].comparison, new_best=alone)
    until = [curve_point for curve_point in curve.points if curve_point.checkpoint.step <= point.checkpoint.step]
    scores = _Scores(store, curve, until)
    return replace(row, p=_p(row, scores), expected=scores.expected())


def _not_finite(store: Store, point: CurvePoint) -> int:
    """The number of samples of a checkpoint whose outputs are NaN or infinite."""
    found = [
        metric
        for metric in store.results.metrics(point.evaluation)
        if (metric.name, metric.slice) == (NOT_FINITE, OVERALL)
    ]
    return sum(round(each.value * each.n) for each in found if each.value is not None and each.n is not None)


def _p(row: CheckpointComparison, scores: _Scores) -> float:
    """The p-value of the difference from the best one before; for a decline, adjusted for its selection."""
    assert row.comparison is not None
    assert row.best is not None
    earlier = [point for point in scores.points if point.checkpoint.step < row.point.checkpoint.step]
    if row.comparison.difference == 0 or len(earlier) < 2 or _direction(row) == BETTER:
        return row.comparison.p  # conservative for an improvement over the best of several
    assert row.score is not None
    found = scores.decline(row.comparison.p, row.score, row.point, earlier, row.best)
    return min(1.0, len(earlier) * row.comparison.p) if found is None else found


class _Scores:
    """The scores of samples of checkpoints on a setting.

    Args:
        store: The results store.
        curve: Their curve.
        points: Some of its points.
    """

    def __init__(self, store: Store, curve: TrainingCurve, points: Sequence[CurvePoint]) -> None:
        self.store = store
        self.curve = curve
        self.points = points

    def decline(
        self, p: float, score: MetricSpec, point: CurvePoint, earlier: Sequence[CurvePoint], best: CurvePoint
    ) -> float | None:
        """See `testbed.extensions.watching.selected.decline`; None if the best one has other samples."""
        of = {curve_point.evaluation: self._evaluations[curve_point.evaluation] for curve_point in (point, *earlier)}
        same = [each for each in earlier if of[each.evaluation].dataset_id == of[point.evaluation].dataset_id]
        if best not in same:
            return None
        sign = 1 if (score.better or self.curve.spec.better) == HIGHER else -1
        new, *others = (
            sign * scores_of(self.store, of[each.evaluation], score.name).astype(np.float64) for each in (point, *same)
        )
        counted = np.isfinite(new) & np.isfinite(others[same.index(best)])
        differing = [np.where(np.isfinite(scores), scores, new)[counted] for scores in others]
        clusters = self._clusters(of[point.evaluation])
        clusters = None if clusters is None else clusters[counted]
        return decline(p, new[counted], np.stack(differing), same.index(best), clusters)

    def expected(self) -> float | None:
        """See `expected_of_best`, for the main metric if it is the mean of per-sample scores."""
        of = [self._evaluations[curve_point.evaluation] for curve_point in self.points]
        if len({evaluation.dataset_id for evaluation in of}) != 1 or self.curve.spec.better not in (HIGHER, LOWER):
            return None
        sign = 1 if self.curve.spec.better == HIGHER else -1
        found = []
        for evaluation, point in zip(of, self.points, strict=True):
            scores = self._mean_of(evaluation, point.value)
            if scores is None or len(scores) < 2:
                return None
            found.append(sign * scores)
        return sign * expected_of_best(np.stack(found), self._clusters(of[0]))

    def _mean_of(self, evaluation: Evaluation, value: float) -> Array | None:
        """The per-sample scores whose mean is a value."""
        for scores in self.store.scores.read(evaluation.id).values():
            counted = scores[np.isfinite(scores)]
            if len(counted) and abs(float(np.mean(counted, dtype=np.float64)) - value) < SAME:
                found: Array = scores.astype(np.float64)
                return found
        return None

    @cached_property
    def _evaluations(self) -> dict[int, Evaluation]:
        return {point.evaluation: self.store.evaluations.get(point.evaluation) for point in self.points}

    def _clusters(self, evaluation: Evaluation) -> Array | None:
        infos = SampleTable(self.store).of(evaluation).samples
        return None if groups_of(infos) is None else clusters_of(info.group for info in infos)


def _unknown(curve: TrainingCurve, first: bool) -> str:
    return "" if first else f"it is unknown whether a higher or a lower {curve.spec.name} is better"


def _verdict(row: CheckpointComparison, p: float) -> str:
    assert row.comparison is not None
    if p >= SIGNIFICANT or row.comparison.difference == 0:
        return TIED
    return _direction(row)


def _direction(row: CheckpointComparison) -> str:
    assert row.comparison is not None
    assert row.score is not None
    better = row.score.better or row.curve.spec.better
    return BETTER if (row.comparison.difference > 0) == (better == HIGHER) else WORSE
