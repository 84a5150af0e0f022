"""Training curves: the checkpoints of a training run in the order of their steps, with their results.

`testbed watch` notes the run and the step of a model with its evaluations. The content of the model identifies it: a
checkpoint that was later run on another setting, by hand, is also a point of that curve.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from testbed.db.store import Store
from testbed.entities import CHECKPOINT, ELSEWHERE, OVERALL, Evaluation, Result, TrainingCheckpoint
from testbed.metric_specs import HIGHER, LOWER, MetricSpec, agreed, main_metric, spec_of
from testbed.metrics.inference.intervals import interval


@dataclass(frozen=True)
class CurvePoint:
    """A checkpoint on a setting.

    Attributes:
        value: The metric, in its unit.
        low: Lower end of its 95 % interval; None where nothing is known about the spread.
        high: The upper end.
        n: The number of samples.
        evaluation: Its id.
    """

    checkpoint: TrainingCheckpoint
    model: str
    value: float
    low: float | None
    high: float | None
    n: int | None
    evaluation: int


@dataclass(frozen=True)
class TrainingCurve:
    """A training run on a setting.

    Attributes:
        spec: What the metric declares: the main one of the setting, or the one that was asked for.
        points: By step.
    """

    run: str
    eval_setting: str
    spec: MetricSpec
    points: tuple[CurvePoint, ...]

    @property
    def unit(self) -> str:
        """Returns the unit of steps."""
        return self.points[0].checkpoint.unit

    def best(self, before: int | None = None) -> CurvePoint | None:
        """The best checkpoint, of equal ones the first; None if there is none, or the better direction is unknown.

        Args:
            before: Only those with a smaller step count; None: all.
        """
        points = [point for point in self.points if before is None or point.checkpoint.step < before]
        if not points or self.spec.better not in (HIGHER, LOWER):
            return None
        sign = 1 if self.spec.better == HIGHER else -1
        return max(points, key=lambda each: (sign * each.value, -each.checkpoint.step))


@dataclass(frozen=True)
class Failure:
    """A checkpoint without a result on a setting, and why."""

    checkpoint: TrainingCheckpoint
    eval_setting: str
    reason: str


def curves(
    store: Store, runs: Iterable[str] | None = None, settings: Iterable[str] | None = None, metric: str | None = None
) -> list[TrainingCurve]:
    """The curves of runs (by folder) on settings (None: all) by a metric (None: the main one of each setting)."""
    wanted = None if settings is None else list(settings)
    cells = _cells(store, runs, wanted)
    of = {evaluation.id: checkpoint for evaluation, checkpoint in cells if evaluation.status == "complete"}
    models = {evaluation.model for evaluation, _ in cells if evaluation.id in of}
    if not models:
        return []
    results: dict[tuple[str, str], list[Result]] = {}
    for result in store.results.stream(models, wanted, None if metric is None else [metric], [OVERALL]):
        if result.evaluation_id in of:
            results.setdefault((of[result.evaluation_id].run, result.eval_setting), []).append(result)
    made = (_curve(run, setting, found, of) for (run, setting), found in sorted(results.items()))
    return [curve for curve in made if curve.points]


def failures(store: Store, runs: Iterable[str] | None = None) -> list[Failure]:
    """The torn or failed checkpoints of these training runs (None: all), by run, step and setting."""
    cells = _cells(store, runs)
    done = {(of.run, of.step, evaluation.eval_setting) for evaluation, of in cells if evaluation.status == "complete"}
    failed = {
        (of.run, of.step, each.eval_setting): Failure(of, each.eval_setting, each.error or each.status)
        for each, of in cells
        if each.status in ("failed", "unsupported")
    }
    return [failed[key] for key in sorted(failed.keys() - done)]


def _cells(
    store: Store, runs: Iterable[str] | None, settings: Iterable[str] | None = None
) -> list[tuple[Evaluation, TrainingCheckpoint]]:
    """The evaluations of checkpoints of training runs, on whichever setting they were noted."""
    chosen = set(store.checkpoints.training_runs() if runs is None else runs)
    models = {evaluation.model for evaluation in store.checkpoints.of_runs(chosen)}
    own = [each for each in store.evaluations.find(models) if each.origin not in ELSEWHERE] if models else []
    noted = checkpoints(own)
    wanted = None if settings is None else set(settings)
    return [
        (evaluation, noted[key])
        for evaluation in own
        if (key := _content(evaluation)) in noted
        and noted[key].run in chosen
        and (wanted is None or evaluation.eval_setting in wanted)
    ]


def checkpoints(evaluations: Iterable[Evaluation]) -> dict[str, TrainingCheckpoint]:
    """Returns the notes on models by content; the last of several notes counts."""
    names = [field.name for field in fields(TrainingCheckpoint)]
    return {
        _content(evaluation): TrainingCheckpoint(**{name: noted[name] for name in names if name in noted})
        for evaluation in evaluations
        if {"run", "step"} <= (noted := (evaluation.environment or {}).get(CHECKPOINT, {})).keys()
    }


def told_of(evaluation: Evaluation) -> list[str]:
    """Returns the notifications of a checkpoint's evaluation and their receivers; see `Store.evaluations.claim`."""
    return list((evaluation.environment or {}).get(CHECKPOINT, {}).get("told", ()))


def _content(evaluation: Evaluation) -> str:
    """The digest of a model and its weights."""
    return f"{evaluation.model}\0{(evaluation.identity or {}).get('model')}"


def _curve(run: str, setting: str, found: Sequence[Result], of: dict[int, TrainingCheckpoint]) -> TrainingCurve:
    specs: dict[str, list[MetricSpec]] = {}
    for each in found:
        specs.setdefault(each.metric, []).append(spec_of(each))
    spec = main_metric(agreed(several) for several in specs.values())
    assert spec is not None
    points = []
    for each in found:
        if each.metric == spec.name and each.value is not None:
            low, high = interval(spec, each.value, each.stderr, each.n, each.clusters) or (None, None)
            checkpoint = of[each.evaluation_id]
            points.append(CurvePoint(checkpoint, each.model, each.value, low, high, each.n, each.evaluation_id))
    return TrainingCurve(
        run, setting, spec, tuple(sorted(points, key=lambda each: (each.checkpoint.step, each.evaluation)))
    )
