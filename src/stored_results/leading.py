"""One sentence on the best model: by how much it leads, and whether that is significant."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from testbed.formatting import difference, mean_score, shown_unit
from testbed.metric_specs import HIGHER, LOWER, MetricSpec
from testbed.stored_results.ranking import RankedModel, Ranking

_NAMED = 5  # tied models
_FIRST = 3  # models of an order without tests


def leading(found: Ranking) -> str:
    """The first of a ranking, the models tied with it, and the lead over the best of the others.

    Examples:
        ``knn 98.70 % leads; tied with cnn, mlp (Holm); +2.59 points over logreg``
    """
    best = found.rows[0]
    first = [row for row in found.rows if row.place.rank == best.place.rank]
    others = [row for row in found.rows if row not in first]
    tied = [row for row in others if row.model in best.tied_with]
    behind = next((row for row in others if row.model not in best.tied_with), None)
    value = _value(found, best.place.value)
    said = [f"{best.model} {value} leads" if len(first) == 1 else f"{_names(first)} lead, each with {value}"]
    if tied:
        said.append(f"tied with {f'all {len(tied)} others' if len(tied) > 1 and not behind else _names(tied)} (Holm)")
    if behind is not None:
        said.append(_lead(found, best, behind) + ("" if tied else ", significant (Holm)"))
    return "; ".join(said)


def in_order(values: Iterable[tuple[str, float]], spec: MetricSpec, published: bool) -> str:
    """The best models by their values alone, of which no difference is tested; empty if no direction is known.

    Args:
        values: Models and their values.
        published: Whether all of the values are published ones.
    """
    if spec.better not in (HIGHER, LOWER):
        return ""
    sign = -1 if spec.better == HIGHER else 1
    first = heapq.nsmallest(_FIRST, values, key=lambda each: (sign * each[1], each[0]))
    if not first:
        return ""
    shown = ", ".join(f"{model} {mean_score(value, spec.unit)}" for model, value in first)
    if len(first) == 1:
        return f"{shown} ({spec.name})"
    extreme = "highest" if spec.better == HIGHER else "lowest"
    why = "these values are published" if published else "these models are not ranked on their samples here"
    return f"{extreme} {spec.name}: {shown}; {why}, so the differences are not tested"


def _lead(found: Ranking, best: RankedModel, behind: RankedModel) -> str:
    gap = best.place.value - behind.place.value
    amount = difference(gap, shown_unit(found.spec, found.binary))
    return f"{amount} {'over' if found.larger else 'against'} {behind.model}"


def _names(rows: Sequence[RankedModel]) -> str:
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return ", ".join(row.model for row in rows[:_NAMED]) + more


def _value(found: Ranking, value: float) -> str:
    return mean_score(value, shown_unit(found.spec, found.binary))
