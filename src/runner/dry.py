"""The plan of a run, for ``--dry-run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.errors import StoreError, TestbedError
from testbed.graph.fuse import make_passes
from testbed.graph.passes import Pass, Reads, shards_of
from testbed.graph.reuse import given_outputs
from testbed.inputs import active, using
from testbed.record import Today
from testbed.registry.catalog import Catalog
from testbed.runner.cells import Cell
from testbed.runner.doubts import find_doubts
from testbed.runner.judged import texts_of
from testbed.runner.options import RunOptions
from testbed.runner.plan import Plan, Planner, computed_and_judged
from testbed.tasks.task_base import get_task


@dataclass(frozen=True)
class PlannedPass:
    """A pass that a run would make.

    Attributes:
        one_pass: The pass; the ids of its evaluations are placeholders.
        samples: The total number of samples or texts; None if it depends on outputs that are not stored yet.
        to_do: How many of them a run would compute; the others are stored.
    """

    one_pass: Pass
    samples: int | None
    to_do: int | None


def make_plan(catalog: Catalog, options: RunOptions, models: Sequence[str], settings: Sequence[str]) -> Plan:
    """The plan of a run, without fetching weights and without touching the store (which need not exist)."""
    with using(options.inputs or active()):
        return _make_plan(catalog, options, models, settings)


def _make_plan(catalog: Catalog, options: RunOptions, models: Sequence[str], settings: Sequence[str]) -> Plan:
    catalog.load(options.plugins)
    try:
        store = Store.open(options.db_url)
    except StoreError as error:
        if "there is no results store" not in str(error) and "holds no results" not in str(error):
            raise
        plan = Planner(catalog, None, options, fetch=False).plan(models, settings)
        plan.passes = planned_passes(plan, None, options)
        return plan
    with store:
        plan = Planner(catalog, store, options, fetch=False).plan(models, settings)
        if not options.trust:
            plan.doubts = find_doubts(plan, store, Today(catalog.plugins), frozenset(), {})
        plan.passes = planned_passes(plan, store, options)
        return plan


def planned_passes(plan: Plan, store: Store | None, options: RunOptions) -> list[PlannedPass]:
    """The passes of a plan, with the remaining work in each.

    Args:
        plan: The plan.
        store: The results store; None if it does not exist yet.
        options: The options of the run.
    """
    cells, judged = computed_and_judged(plan)
    numbered = list(zip(cells, count(1), strict=False))
    stored = {} if store is None or options.override else _stored_ranges(numbered, store)
    given = {} if store is None else {number: given_outputs(store, cell) for cell, number in numbered}
    passes = make_passes(numbered, judged, {number: {} for _, number in numbered}, given, options)
    found = []
    for each in passes:
        if each.reads is Reads.TEXTS:
            members = [cell for cell in judged if cell.encoder is not None and cell.encoder.key == each.node]
            found.append(PlannedPass(each, *_count_texts(members, each, store)))
        else:
            to_do = {position for shard in shards_of(each, stored, count()) for position in shard.positions}
            found.append(PlannedPass(each, len(each.positions), len(to_do)))
    return found


def _stored_ranges(cells: Sequence[tuple[Cell, int]], store: Store) -> Mapping[int, Sequence[tuple[int, int]]]:
    """The ranges of samples that interrupted runs have stored, by the number of the cell."""
    found = {}
    for cell, number in cells:
        if cell.stored is not None and cell.opened_setting is not None:
            kind = get_task(cell.opened_setting.setting.task).output_kind
            found[number] = store.stored_ranges([cell.stored.id], kind)[cell.stored.id]
    return found


def _count_texts(cells: Sequence[Cell], one_pass: Pass, store: Store | None) -> tuple[int | None, int | None]:
    """How many different texts some cells have, and how many of them are not embedded yet; None where it is open."""
    texts: dict[str, None] = {}
    for cell in cells:
        found = _texts(cell, store)
        if found is None:
            return None, None
        texts.update(dict.fromkeys(found))
    lacking = list(texts) if store is None else store.lacking_texts(one_pass.node, texts)
    return len(texts), len(lacking)


def _texts(cell: Cell, store: Store | None) -> list[str] | None:
    """The texts of a cell; None where they are in outputs that are not stored yet."""
    opened, source = cell.opened_setting, cell.source
    assert opened is not None
    try:
        if opened.setting.scoring is None:
            return get_task(opened.setting.task).texts(opened.setting, opened.dataset.samples, tuple)
        if store is None or not isinstance(source, Evaluation) or source.dataset_id is None:
            return None
        if store.dataset(source.dataset_id).fingerprint != opened.dataset.fingerprint:
            return None  # it is scored from some of these outputs
        return texts_of(store, cell, source.id)
    except TestbedError:  # the run will say so
        return None
