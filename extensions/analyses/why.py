"""Differences of two evaluations: definitions, files and versions they were computed from, and outputs."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from testbed.certificates import Certificate
from testbed.db.parts.records import SET_ASIDE
from testbed.db.store import Store
from testbed.entities import OVERALL, Evaluation
from testbed.errors import StoreError
from testbed.provenance.manifest import MISSING_RECORD, Today, record_differences

if TYPE_CHECKING:
    from testbed.registry.catalog import Catalog

TODAY = "today"
# The first of these kinds that both evaluations have is compared.
KINDS = ("logits", "image_embeddings", "text")


@dataclass(frozen=True)
class Difference:
    """A part of an identity that differs.

    Attributes:
        where: The path, such as ``model / spec / transform``.
        before: The value in A; None if A does not have this part.
        after: The value in B.
        lines: For source code, a unified diff of the lines that differ.
    """

    where: str
    before: Any
    after: Any
    lines: tuple[str, ...] = ()


@dataclass
class Why:
    """The differences between two evaluations, or between one and the current definition.

    Attributes:
        identity: Differences of the definitions.
        record: Differences of the files, variables and versions that they were computed from.
        because: The changes for which A or B was set aside.
        outputs: The comparison of the outputs on shared samples; None if they cannot be compared.
        metrics: (name, value in A, value in B) of the metrics that differ.
        certificates: For a comparison with the current definition, the previous checks of A.
    """

    a: str
    b: str
    identity: list[Difference] = field(default_factory=list)
    record: list[str] = field(default_factory=list)
    because: list[str] = field(default_factory=list)
    outputs: Certificate | None = None
    metrics: list[tuple[str, float | None, float | None]] = field(default_factory=list)
    certificates: Sequence[Certificate] = ()


def why(store: Store, first: Evaluation, second: Evaluation) -> Why:
    """Finds the differences between two evaluations."""
    found = Why(_label(first), _label(second))
    one, other = store.evaluations.identity(first), store.evaluations.identity(second)
    found.identity = list(changes(_content(one), _content(other)))
    records = store.records.of([first.id, second.id])
    latest = [records[evaluation.id][0].content if records[evaluation.id] else None for evaluation in (first, second)]
    if latest[0] is None or latest[1] is None:
        found.record = [
            MISSING_RECORD.format(_label(evaluation)) for evaluation in (first, second) if not records[evaluation.id]
        ]
    else:
        found.record = record_differences(latest[0], latest[1])
    found.because = [line for evaluation in (one, other) for line in evaluation.get(SET_ASIDE, {}).get("because", ())]
    found.outputs = _compare_outputs(store, first, second)
    found.metrics = _metrics(store, first.id, second.id)
    return found


def why_today(store: Store, catalog: Catalog, evaluation: Evaluation) -> Why:
    """Finds the differences between an evaluation and the current definition of its model and setting.

    Runs nothing: ``testbed run`` compares the outputs; its previous checks are included.

    Raises:
        StoreError: If model or setting can no longer be opened.
    """
    from testbed.graph.options import RunOptions
    from testbed.inputs import active, using
    from testbed.planning.plan import Planner
    from testbed.runner.greedy import with_stored_soups

    options = RunOptions(
        dtype=evaluation.dtype or "float32", limit=evaluation.sample_limit, random_weights=evaluation.random_weights
    )
    options = with_stored_soups(catalog, options, store, [evaluation.model])
    with using(options.inputs or active()):
        planner = Planner(catalog, store, options, fetch=False)
        cell = planner.plan([evaluation.model], [evaluation.eval_setting]).cells[0]
    if not cell.identity:
        raise StoreError(f"{cell.name} cannot be opened today: {cell.reason}")
    identity = store.evaluations.identity(evaluation)
    found = Why(_label(evaluation), "today's definition")
    found.identity = list(changes(_content(identity), _content(cell.identity)))
    found.because = list(identity.get(SET_ASIDE, {}).get("because", ()))
    today = Today(catalog.plugins)
    records = store.records.of([evaluation.id])[evaluation.id]
    if records:
        found.record = min((today.differences(record.content) for record in records), key=len)
    else:
        found.record = [MISSING_RECORD.format(_label(evaluation))]
    found.certificates = store.records.certificates([evaluation.id])[evaluation.id]
    return found


def changes(before: Any, after: Any, where: str = "") -> Iterator[Difference]:
    """Finds the smallest differing parts of two JSON values, in order."""
    if before == after and _same_order(before, after):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _mapping_changes(before, after, where)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from changes(old, new, f"{where} / {index}")
    elif isinstance(before, str) and isinstance(after, str) and "\n" in f"{before}{after}":
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "A", "B", lineterm="", n=1)
        yield Difference(where, before, after, tuple(lines))
    else:
        yield Difference(where, before, after)


def _mapping_changes(before: Mapping[str, Any], after: Mapping[str, Any], where: str) -> Iterator[Difference]:
    parts = list(dict.fromkeys([*before, *after]))
    found = [change for key in parts for change in changes(before.get(key), after.get(key), _under(where, key))]
    if found:
        yield from found
    else:  # the same keys in a different order
        yield Difference(where, list(before), list(after))


def _same_order(before: Any, after: Any) -> bool:
    if isinstance(before, Mapping):
        return list(before) == list(after) and all(_same_order(before[key], after[key]) for key in before)
    if isinstance(before, list):
        return all(_same_order(old, new) for old, new in zip(before, after, strict=True))
    return True


def _under(where: str, key: str) -> str:
    return f"{where} / {key.lstrip('!')}" if where else key


def _content(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in identity.items() if key != SET_ASIDE}


def _label(evaluation: Evaluation) -> str:
    return f"evaluation {evaluation.id}, {evaluation.model} on {evaluation.eval_setting}"


def _compare_outputs(store: Store, first: Evaluation, second: Evaluation) -> Certificate | None:
    """Compares the outputs of two evaluations sample by sample."""
    from testbed.runner.comparison import OutputComparison, places_in, tolerance

    kind = next(
        (kind for kind in KINDS if all(kind in store.outputs.kinds(evaluation.id) for evaluation in (first, second))),
        None,
    )
    if kind is None or first.dataset_id is None or second.dataset_id is None:
        return None
    there = places_in(store.datasets.get(first.dataset_id), store.datasets.get(second.dataset_id).samples)
    before, now = store.outputs.read(first.id, kind), store.outputs.read(second.id, kind)
    unread = store.outputs.errors(first.id), store.outputs.errors(second.id)
    comparison = OutputComparison(tolerance(first.dtype or "float32"))
    for index, position in enumerate(there):
        if position is not None and position not in unread[0] and index not in unread[1]:
            comparison.add(before[position], now[index], answers=kind == "logits")
    return comparison.certificate() if comparison.samples else None


def _metrics(store: Store, first: int, second: int) -> list[tuple[str, float | None, float | None]]:
    before, now = (
        {metric.name: metric.value for metric in store.results.metrics(evaluation) if metric.slice == OVERALL}
        for evaluation in (first, second)
    )
    return [
        (name, before.get(name), now.get(name))
        for name in dict.fromkeys([*before, *now])
        if not _equal(before.get(name), now.get(name))
    ]


def _equal(before: float | None, now: float | None) -> bool:
    if before is None or now is None:
        return before is now
    return before == now or (math.isnan(before) and math.isnan(now))
