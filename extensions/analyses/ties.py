"""Finds the models that do not differ significantly from the best one on a setting."""

from __future__ import annotations

import math
from collections.abc import Mapping

from testbed.db.store import Store
from testbed.errors import TestbedError
from testbed.metric_specs import HIGHER, LOWER, MetricSpec
from testbed.metrics.inference.intervals import Z
from testbed.stored_results.ranking import ranking
from testbed.stored_results.side_by_side import evaluations_on


def tied_with_best(
    store: Store,
    setting: str,
    spec: MetricSpec,
    values: Mapping[str, float],
    errors: Mapping[str, float],
    sizes: Mapping[str, float],
) -> tuple[set[str], set[str]]:
    """Finds the best models, and those that do not differ significantly from them.

    Models with stored samples are compared by paired tests, as in `ranking`; others are compared as if they had seen
    different samples, by the 95 % interval of the difference of two independent results.

    Args:
        store: The results store.
        setting: The setting.
        spec: Declaration of its metric.
        values: Model → result.
        errors: Model → standard error, if known.
        sizes: Model → number of samples, if known.
    """
    if spec.better not in (HIGHER, LOWER) or not values:
        return set(), set()
    top = (max if spec.better == HIGHER else min)(values.values())
    best = {model for model, value in values.items() if value == top}
    try:
        here = [model for model in evaluations_on(store, setting) if model in values]
        rows = ranking(store, [setting], here, spec.name).rows if len(here) > 1 else []
    except TestbedError:
        rows = []
    ranked = {row.model: {row.model, *row.tied_with} for row in rows}
    leader = rows[0].model if best & set(ranked) else min(best)

    def error(model: str) -> float:
        if model in errors:
            return errors[model]
        size = sizes.get(model, 0)
        return math.sqrt(values[model] * (1 - values[model]) / size) if spec.zero_one and size > 0 else math.nan

    def is_tied(model: str) -> bool:
        if model in ranked and leader in ranked:
            return model in ranked[leader]
        return abs(values[model] - top) <= Z * math.hypot(error(model), error(leader))

    return best, best | {leader} | {model for model in values if is_tied(model)}
