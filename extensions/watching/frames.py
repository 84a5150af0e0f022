"""Curves of training runs as pandas frames: a method of `testbed.api.results.Results`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from testbed.api.results import Results
from testbed.db.store import Store
from testbed.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd

CURVE = (
    *("run", "eval_setting", "metric", "model", "step", "unit", "epoch"),
    *("value", "low", "high", "n", "best", "evaluation"),
)


def curves(results: Results, metric: str | None = None) -> pd.DataFrame:
    """Returns the checkpoints of watched training runs among these models, by run and step.

    Columns: ``run``, ``eval_setting``, ``metric``, ``model``, ``step`` counted in ``unit`` (``"step"`` or
    ``"epoch"``), ``epoch`` if known, ``value`` with its 95 % interval ``low`` to ``high``, ``n``, ``best``
    (whether it is the best checkpoint of the run on the setting; ties: the first) and ``evaluation``.
    Empty if no training run was watched.

    Args:
        metric: The metric; None: the main one of each setting.

    Raises:
        StoreError: If none of these results has the metric.
    """
    known = sorted({row.metric for row in results.rows})
    if metric is not None and metric not in known:
        raise StoreError(f"none of these results has the metric {metric}; they have {', '.join(known) or 'none'}")
    models, settings = ({getattr(row, name) for row in results.rows} for name in ("model", "eval_setting"))
    with Store.open(results.db) as store:
        return _curves(store, models, settings, metric)


def _curves(store: Store, models: Collection[str], settings: Collection[str], metric: str | None) -> pd.DataFrame:
    """A row for each checkpoint on each setting."""
    import pandas as pd

    from testbed.stored_results.checkpoints import curves

    rows: list[dict[str, Any]] = []
    for curve in curves(store, settings=settings, metric=metric):
        points = tuple(point for point in curve.points if point.model in models)
        best = replace(curve, points=points).best()
        for point in points:
            row: dict[str, Any] = {"run": curve.run, "eval_setting": curve.eval_setting, "metric": curve.spec.name}
            row |= {
                "model": point.model,
                **{name: getattr(point.checkpoint, name) for name in ("step", "unit", "epoch")},
            }
            row |= {"value": point.value, "low": point.low, "high": point.high, "n": point.n, "best": point == best}
            rows.append({**row, "evaluation": point.evaluation})
    frame = pd.DataFrame(rows, columns=list(CURVE))
    for name in ("value", "low", "high"):
        frame[name] = pd.to_numeric(frame[name])
    return frame.astype({"step": "Int64", "epoch": "Int64", "n": "Int64", "best": bool, "evaluation": "Int64"})
