"""The plan of a run, for ``--dry-run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.errors import MissingStoreError, StoreError, TestbedError
from testbed.execution.items import requests_from
from testbed.graph.cells import Cell, ItemNode, Plan
from testbed.graph.fuse import Member, make_passes
from testbed.graph.options import RunOptions
from testbed.graph.passes import Pass, shards_of
from testbed.graph.stored import given_outputs, read_outputs
from testbed.inputs import active, using
from testbed.planning.plan import Planner
from testbed.provenance.manifest import Today
from testbed.registry.catalog import Catalog
from testbed.runner.greedy import with_stored_soups
from testbed.runner.stale_candidates import find_stale_candidates
from testbed.tasks.parts.recorded_sets import pairs_of
from testbed.tracing.patches import traced


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


@traced
def make_plan(catalog: Catalog, options: RunOptions, models: Sequence[str], settings: Sequence[str]) -> Plan:
    """The plan of a run, without fetching weights and without touching the store (which need not exist)."""
    with using(options.inputs or active()):
        catalog.load(options.plugins)
    try:
        store = Store.open(options.db_url)
    except MissingStoreError:
        return _make_plan(catalog, options, None, models, settings)
    with store:
        return _make_plan(catalog, options, store, models, settings)


def _make_plan(
    catalog: Catalog, options: RunOptions, store: Store | None, models: Sequence[str], settings: Sequence[str]
) -> Plan:
    options = with_stored_soups(catalog, options, store, models)
    with using(options.inputs or active()):
        pairs = pairs_of(catalog, models, settings)
        plan = Planner(catalog, store, options, fetch=False).plan_pairs(pairs)
        if store is not None and not options.trust:
            plan.stale_candidates = find_stale_candidates(plan, store, Today(catalog.plugins), frozenset(), {}, {})
        plan.passes = planned_passes(plan, store, options)
        return plan


def planned_passes(plan: Plan, store: Store | None, options: RunOptions) -> list[PlannedPass]:
    """The passes of a plan, with the remaining work in each; the store may not exist yet."""
    members = []
    for number, cell in enumerate(plan.computed(), 1):
        given = {} if store is None else given_outputs(store, cell)
        inputs = dict.fromkeys(cell.rows.inputs, (0, 0)) if cell.rows is not None else {}
        members.append(Member(cell, number, inputs, given))
    stored = {} if store is None or options.override else _stored_ranges(members, store)
    scored = [cell for cell in (*plan.computed(), *plan.derived()) if cell.items]
    found = []
    for each in make_passes(members, scored, options):
        if each.of_items:
            nodes = [(cell, node) for cell in scored for node in cell.items if node.key == each.node]
            found.append(PlannedPass(each, *_count_requests(nodes, each, store)))
        else:
            to_do = {position for shard in shards_of(each, stored, count()) for position in shard.positions}
            found.append(PlannedPass(each, len(each.positions), len(to_do)))
    return found


def _stored_ranges(members: Sequence[Member], store: Store) -> Mapping[int, Sequence[tuple[int, int]]]:
    """The ranges of samples that interrupted runs have stored, by the number of the cell."""
    begun = {member.evaluation_id: member.cell.stored.id for member in members if member.cell.stored is not None}
    ranges = store.outputs.stored_ranges(begun.values())
    return {number: ranges[evaluation_id] for number, evaluation_id in begun.items()}


def _count_requests(
    nodes: Sequence[tuple[Cell, ItemNode]], one_pass: Pass, store: Store | None
) -> tuple[int | None, int | None]:
    """Counts the requests of some cells, and those without a stored value; None if they are not known yet."""
    requests: dict[str, None] = {}
    for cell, node in nodes:
        found = _requests(cell, node, store)
        if found is None:
            return None, None
        requests.update(dict.fromkeys(found))
    lacking = list(requests) if store is None else store.items.lacking(one_pass.node, requests)
    return len(requests), len(lacking)


def _requests(cell: Cell, node: ItemNode, store: Store | None) -> list[str] | None:
    """The requests of a cell; None where they are made from values that are not stored yet."""
    opened, source = cell.opened_setting, cell.source
    assert opened is not None

    def read() -> object:
        if store is None or not isinstance(source, Evaluation) or source.dataset_id is None:
            raise StoreError("the outputs are not stored yet")
        if store.datasets.get(source.dataset_id).fingerprint != opened.dataset.fingerprint:
            raise StoreError("it takes some of these outputs")
        return read_outputs(store, source.id)

    try:
        return requests_from(cell, node, read)
    except TestbedError:  # not stored yet; or the run will say what is wrong
        return None
