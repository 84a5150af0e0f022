"""Analyses of results as pandas frames, and their figures: what `testbed.api.results.Results` gives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.db.store import Store
from testbed.entities import Better, Evaluation
from testbed.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from testbed.runner.until import Outcome

CURVE = (
    *("run", "eval_setting", "metric", "model", "step", "unit", "epoch"),
    *("value", "low", "high", "n", "best", "evaluation"),
)
Find = Callable[[Store, str, str], Evaluation]


class Figures(dict[str, Any]):
    """Figures of plotly by name; a notebook shows all of them."""

    def _ipython_display_(self) -> None:
        for figure in self.values():
            figure.show()


def comparison_frame(
    store: Store, models: Sequence[str], settings: Sequence[str], score: str | None, find: Find
) -> pd.DataFrame:
    """A row for each pair of models on each setting; see `testbed.api.results.Results.compare`."""
    import pandas as pd

    from testbed.results.paired import compare_pairs

    if len(models) < 2:
        raise StoreError(f"two models or more are compared; got {', '.join(models) or 'none'}")
    found = compare_pairs(store, models, settings, score, find)
    rows = []
    for each in found.rows:
        of = each.comparison
        row: dict[str, Any] = {
            "eval_setting": each.eval_setting,
            "model": each.first,
            "other": each.second,
            "score": found.spec.name,
        }
        row |= {"n": of.n, "value": of.first, "other_value": of.second, "difference": of.difference}
        row |= {"low": of.low, "high": of.high, "p": of.p, "p_holm": each.p_holm, "verdict": each.verdict}
        rows.append(row)
    return pd.DataFrame(rows)


def ranking_frame(
    store: Store,
    models: Sequence[str],
    settings: Sequence[str],
    score: str | None,
    better: Better | None,
    first: Collection[int],
) -> pd.DataFrame:
    """A row for each model, the best first; see `testbed.api.results.Results.rank`."""
    import pandas as pd

    from testbed.results.main_scores import main_score_on
    from testbed.results.ranking import ranking

    score = score or main_score_on(store, settings, first=first)
    found = ranking(store, settings, models, score, better=better, first=first)
    rows = []
    for each in found.rows:
        place = each.place
        row: dict[str, Any] = {
            "rank": place.rank,
            "rank_low": place.rank_low,
            "rank_high": place.rank_high,
            "model": each.model,
        }
        row |= {"score": score, "value": place.value, "low": place.low, "high": place.high}
        rows.append({**row, "mean_rank": each.mean_rank, "tied_with": list(each.tied_with)})
    return pd.DataFrame(rows)


def curves_frame(store: Store, models: Collection[str], settings: Collection[str], metric: str | None) -> pd.DataFrame:
    """A row for each checkpoint on each setting; see `testbed.api.results.Results.curves`."""
    import pandas as pd

    from testbed.results.checkpoints import curves

    rows: list[dict[str, Any]] = []
    for curve in curves(store, settings=settings, metric=metric):
        points = tuple(each for each in curve.points if each.model in models)
        best = replace(curve, points=points).best()
        for each in points:
            row: dict[str, Any] = {"run": curve.run, "eval_setting": curve.eval_setting, "metric": curve.spec.name}
            row |= {"model": each.model, **{name: getattr(each.checkpoint, name) for name in ("step", "unit", "epoch")}}
            row |= {"value": each.value, "low": each.low, "high": each.high, "n": each.n, "best": each == best}
            rows.append({**row, "evaluation": each.evaluation})
    frame = pd.DataFrame(rows, columns=list(CURVE))
    for name in ("value", "low", "high"):
        frame[name] = pd.to_numeric(frame[name])
    return frame.astype({"step": "Int64", "epoch": "Int64", "n": "Int64", "best": bool, "evaluation": "Int64"})


def gate_frame(store: Store, policy: str | Path, candidate: str, baseline: str) -> pd.DataFrame:
    """A row for each rule on each setting and group; see `testbed.api.results.Results.gate`."""
    import pandas as pd

    from testbed.extensions.gate.decision import decide
    from testbed.extensions.gate.policy import read_policy

    found = decide(store, read_policy(Path(policy)), candidate, baseline)
    rows = []
    for each in found.rows:
        row: dict[str, Any] = {"tier": each.rule.tier, "eval_setting": each.eval_setting, "group": each.group}
        row |= {"score": each.score, "verdict": each.verdict}
        of = each.change
        for name in ("n", "gain", "low", "high", "detectable"):
            row[name] = None if of is None else getattr(of, name)
        row |= {"margin": each.rule.margin / 100 if each.points else each.rule.margin}
        rows.append({**row, "p_loses": each.p_loses, "missing": each.why or None})
    frame = pd.DataFrame(rows)
    frame.attrs["verdict"] = found.verdict
    return frame


def until_frame(found: Outcome) -> pd.DataFrame:
    """How far each model came on each setting; see `testbed.api.evaluate.evaluate`.

    Columns: ``model``, ``eval_setting``, ``metric``, ``value`` (a difference if models are compared) with ``low`` to
    ``high`` (of all samples, 95 % at all looks together), ``n`` of ``size`` samples, ``decided``, ``why`` (it was given
    up, else missing), ``looks`` and ``computed``: the samples that were computed.
    """
    import pandas as pd

    rows = []
    for each in found.cells:
        row: dict[str, Any] = {"model": each.model, "eval_setting": each.setting}
        for name in ("metric", "value", "low", "high", "n"):
            row[name] = None if each.estimate is None else getattr(each.estimate, name)
        row |= {"size": None if each.population is None else each.population.size, "decided": each.decided}
        rows.append({**row, "why": each.why or None, "looks": each.looked, "computed": each.computed})
    return pd.DataFrame(rows)


def drawn(
    db: str | None,
    models: Iterable[str],
    settings: Iterable[str],
    kinds: Sequence[str],
    metric: str | None,
    labels: Sequence[str] = (),
) -> dict[str, Figure]:
    """Figures; see `testbed.api.results.Results.plot`."""
    from testbed.plotting.figures import KINDS, figures
    from testbed.plotting.own.source import skipped

    if unknown := [each for each in kinds if each not in KINDS]:
        raise StoreError(f"there is no kind of figure {unknown[0]!r}; there are {', '.join(KINDS)}")
    found, passed = figures(db, kinds, list(models), list(settings), metric, labels=labels)
    if not found:
        raise StoreError(f"nothing was drawn: {skipped(passed)}")
    return Figures(found)
