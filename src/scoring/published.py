"""Compares the numbers of a run with published ones.

Most wrong numbers in this field come from wrong preprocessing, and the difference is often too small to notice.
Published numbers come from the model's definition and from results imported into the store for the same cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from testbed.db.store import Store
from testbed.entities import FRACTION, OVERALL, Result
from testbed.metric_specs import spec_of
from testbed.models.base.published import Published
from testbed.registry.catalog import Catalog

CONFIDENCE = 0.95
WHOLE = 1e-6  # the largest rounding error of a number of samples


def disagreements(store: Store, catalog: Catalog, evaluation_id: int) -> list[str]:
    """A line for each published number that lies outside the interval of an evaluation's own.

    Args:
        store: The results store, with the complete evaluation and imported results.
        catalog: The registry, with the model's definition if it still exists.
        evaluation_id: The evaluation. Untrained models have no published numbers.
    """
    evaluation = store.evaluations.get(evaluation_id)
    if evaluation.random_weights:
        return []
    model, setting = evaluation.model, evaluation.eval_setting
    published = [*_carried(catalog, model, setting), *_imported(store, model, setting)]
    if not published:
        return []
    own = {result.metric: result for result in store.results.of([evaluation_id]) if result.slice == OVERALL}
    lines = [_disagreement(own[each.metric], each) for each in published if each.metric in own]
    return [line for line in lines if line is not None]


def _carried(catalog: Catalog, model: str, setting: str) -> list[Published]:
    if not catalog.contains_model(model):
        return []
    return [each for each in catalog.get_model(model).published if each.eval_setting == setting]


def _imported(store: Store, model: str, setting: str) -> Iterable[Published]:
    """The imported results of a cell, from the latest import only."""
    imported = [each for each in store.evaluations.find([model], [setting]) if each.origin == "imported"]
    if not imported:
        return
    last = max(imported, key=lambda each: each.id)
    for result in store.results.of([last.id]):
        if result.slice == OVERALL and result.value is not None and result.unit == FRACTION:
            yield Published(setting, result.metric, result.value, f"imported from {last.source}")


def _disagreement(own: Result, published: Published) -> str | None:
    """A line about a rate whose interval excludes the published value; None if it includes it."""
    interval = _interval(own)
    if own.value is None or interval is None or interval[0] <= published.value <= interval[1]:
        return None
    low, high = interval
    return (
        f"{own.model} on {own.eval_setting}: {own.metric} is {100 * own.value:.2f} % ({100 * low:.2f} to"
        f" {100 * high:.2f} with {100 * CONFIDENCE:.0f} % confidence, n = {own.n:,}), but"
        f" {100 * published.value:.2f} % is published ({published.source}); check the preprocessing, the weights and"
        " the data"
    )


def _interval(own: Result) -> tuple[float, float] | None:
    """Wilson's interval for a share of samples; for other rates (means over classes), from the standard error."""
    if own.value is None or not own.n or own.unit != FRACTION:
        return None
    from testbed.metrics.inference.statistics import interval

    right = own.value * own.n
    whole = abs(right - round(right)) < WHOLE
    return interval(replace(spec_of(own), zero_one=whole), own.value, own.stderr, own.n)
