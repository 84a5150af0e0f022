"""Documents of training: the watched runs, and the curves of their checkpoints."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from testbed.db.store import Store
from testbed.entities import FRACTION, OVERALL
from testbed.extensions.explorer.documents import item_at
from testbed.stored_results.checkpoints import CurvePoint, TrainingCurve, curves, failures

PATH = "training"
DIGITS = 10  # significant digits of an end of an interval


class Training:
    """``training``: the runs; ``training/K``: the curves and failures of one; ``training/K/M``: by another metric.

    Args:
        store: The results store.
        settings: The shown settings.
        metric: The metric of the curves, on settings that have it; None for each setting's main one.
    """

    def __init__(self, store: Store, settings: Collection[str], metric: str | None = None) -> None:
        self.store = store
        self.settings = settings
        self.metric = metric

    def paths(self) -> Iterator[str]:
        """The paths of the runs, if there are any."""
        if self._runs:
            yield PATH
        for number, run in enumerate(self._runs):
            yield f"{PATH}/{number}"
            yield from (f"{PATH}/{number}/{metric}" for metric in range(len(self._metrics(run))))

    def document(self, path: str) -> Any:
        """Returns one of these."""
        kind, *numbers = path.split("/")
        if kind != PATH or not self._runs or len(numbers) > 2:
            raise KeyError(path)
        if not numbers:
            return [{"name": run, "label": label} for run, label in zip(self._runs, labels(self._runs), strict=True)]
        run = item_at(self._runs, numbers[0])
        metrics = self._metrics(run)
        if len(numbers) == 2:
            return _run(curves(self.store, [run], self.settings, item_at(metrics, numbers[1])))
        failed = [
            [failure.checkpoint.label, failure.eval_setting, failure.reason]
            for failure in failures(self.store, [run])
            if failure.eval_setting in self.settings
        ]
        return {**_run(self._curves(run)), "metrics": metrics, "failed": failed}

    @cached_property
    def _runs(self) -> list[str]:
        return self.store.checkpoints.training_runs()

    def _metrics(self, run: str) -> list[str]:
        """The metrics of a run's checkpoints."""
        models = {evaluation.model for evaluation in self.store.checkpoints.of_runs([run])}
        return sorted(
            {name for (name,) in self.store.results.rows(("metric",), models, self.settings, slices=[OVERALL])}
        )

    def _curves(self, run: str) -> list[TrainingCurve]:
        found = {curve.eval_setting: curve for curve in curves(self.store, [run], self.settings)}
        if self.metric is not None:
            found |= {curve.eval_setting: curve for curve in curves(self.store, [run], self.settings, self.metric)}
        return list(found.values())


def labels(runs: Sequence[str]) -> list[str]:
    """Display names of runs: their folders below the common one, and its name."""
    try:
        shared = os.path.commonpath(runs)
        above = os.path.dirname(os.path.dirname(shared) if shared in runs else shared)
        return [os.path.relpath(run, above) for run in runs]
    except ValueError:  # names that are not absolute paths
        return list(runs)


def _run(found: Sequence[TrainingCurve]) -> dict[str, Any]:
    """Curves in the unit of most checkpoints; counts checkpoints with another unit, recorded by another watch."""
    units = Counter({point.evaluation: point.checkpoint.unit for curve in found for point in curve.points}.values())
    unit = max(units, key=lambda each: (units[each], each)) if units else ""
    kept = [
        replace(curve, points=tuple(point for point in curve.points if point.checkpoint.unit == unit))
        for curve in found
    ]
    kept = [curve for curve in kept if curve.points]
    places = sorted({(point.checkpoint.step, point.model) for curve in kept for point in curve.points})
    at = {each: place for place, each in enumerate(places)}
    return {
        "unit": unit,
        "others": sum(units.values()) - units[unit],
        "checkpoints": places,
        "curves": [_curve(curve, at) for curve in kept],
    }


def _curve(curve: TrainingCurve, at: dict[tuple[int, str], int]) -> dict[str, Any]:
    """Parallel lists by step; ``at`` has positions in the list of checkpoints."""
    best, spec = curve.best(), curve.spec
    return {
        "setting": curve.eval_setting,
        "metric": spec.name,
        "percent": spec.unit == FRACTION,
        "unit": spec.unit,
        "better": spec.better,
        "best": None if best is None else curve.points.index(best),
        "at": [at[point.checkpoint.step, point.model] for point in curve.points],
        "value": [point.value for point in curve.points],
        **{name: [_number(point, name) for point in curve.points] for name in ("low", "high")},
        "n": [point.n for point in curve.points],
        "evaluations": [point.evaluation for point in curve.points],
    }


def _number(point: CurvePoint, name: str) -> float | None:
    value = getattr(point, name)
    return None if value is None else float(f"{value:.{DIGITS}g}")
