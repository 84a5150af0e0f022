"""Each checkpoint beside the best before it, on each setting, by the paired test of `testbed compare`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from testbed.analyses.checkpoints import Curve, Point, curves
from testbed.analyses.paired import compare_pairs
from testbed.db.store import Store
from testbed.entities import Checkpoint
from testbed.errors import TestbedError
from testbed.metric_specs import HIGHER, MetricSpec
from testbed.metrics.inference.paired import SIGNIFICANT, Comparison, holm

BETTER, WORSE, TIED, FIRST, UNKNOWN = "better", "worse", "tied", "first", "not compared"


@dataclass(frozen=True)
class Paired:
    """A checkpoint on a setting.

    Attributes:
        curve: The run's curve on the setting.
        point: The checkpoint.
        best: The best one before; None if there is none.
        score: What the compared score of each sample declares.
        verdict: `BETTER`, `WORSE` or `TIED`; `FIRST` if there is none before, `UNKNOWN` if they cannot be compared.
        comparison: The scores of the samples of both; None if they were not compared.
        p: The p-value, adjusted over the settings.
        why: Why they were not compared.
        new_best: Whether no other checkpoint of the run has a value as good.
    """

    curve: Curve
    point: Point
    best: Point | None
    verdict: str
    score: MetricSpec | None = None
    comparison: Comparison | None = None
    p: float | None = None
    why: str = ""
    new_best: bool = False

    def as_object(self) -> dict[str, Any]:
        """For JSON."""
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
        }


def paired(store: Store, checkpoint: Checkpoint, model: str, settings: Iterable[str]) -> list[Paired]:
    """A checkpoint on each setting beside the best one before it in the same run.

    Args:
        store: The results store.
        checkpoint: Which step of which run it is.
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
    compared = [place for place, row in enumerate(rows) if row.comparison is not None]
    for place, p in zip(compared, holm([row.comparison.p for row in rows if row.comparison is not None]), strict=True):
        rows[place] = replace(rows[place], p=p, verdict=_verdict(rows[place], p))
    return rows


def _paired(store: Store, curve: Curve, point: Point) -> Paired:
    best, alone = curve.best(before=point.checkpoint.step), curve.best() == point
    if best is None:
        first = curve.points[0] == point
        return Paired(curve, point, None, FIRST if first else UNKNOWN, why=_unknown(curve, first), new_best=alone)
    try:
        found = compare_pairs(store, [point.model, best.model], [curve.eval_setting])
    except TestbedError as error:
        return Paired(curve, point, best, UNKNOWN, why=str(error), new_best=alone)
    return Paired(curve, point, best, TIED, found.spec, found.rows[0].comparison, new_best=alone)


def _unknown(curve: Curve, first: bool) -> str:
    return "" if first else f"whether a higher or a lower {curve.spec.name} is better is not known"


def _verdict(row: Paired, p: float) -> str:
    assert row.comparison is not None
    assert row.score is not None
    if p >= SIGNIFICANT or row.comparison.difference == 0:
        return TIED
    better = row.score.better or row.curve.spec.better
    return BETTER if (row.comparison.difference > 0) == (better == HIGHER) else WORSE
