"""The plan of a run, for ``--dry-run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from testbed.db.entities import Evaluation
from testbed.db.store import Store
from testbed.errors import StoreError, TestbedError
from testbed.graph.fuse import encoder_of, make_passes
from testbed.graph.passes import Pass, Reads, shards_of
from testbed.record import Today
from testbed.registry.catalog import Catalog
from testbed.runner.cells import Action, Cell
from testbed.runner.doubts import find_doubts
from testbed.runner.judged import texts_of
from testbed.runner.options import RunOptions
from testbed.runner.plan import Plan, Planner
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
    """The plan of a run. Downloads no weights and does not change the store, which need not exist."""
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
    numbered = list(zip([*plan.prerequisites, *plan.of(Action.RUN)], count(1), strict=False))
    judged = plan.of(Action.SCORE)
    passes = make_passes(numbered, judged, {number: {} for _, number in numbered}, options)
    stored = {} if store is None or options.override else _stored_ranges(numbered, store)
    found = []
    for each in passes:
        if each.reads is Reads.TEXTS:
            cells = [cell for cell in judged if encoder_of(cell) == (each.encoder, each.language)]
            found.append(PlannedPass(each, *_count_texts(cells, each, store)))
        else:
            ranges = {(shard.start, shard.stop) for shard in shards_of(each, stored, count())}
            found.append(PlannedPass(each, len(each.positions), sum(stop - start for start, stop in ranges)))
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
    """The number of distinct texts of some cells, and how many of them are not embedded yet."""
    texts: dict[str, None] = {}
    for cell in cells:
        source = cell.source
        assert cell.opened_setting is not None
        if store is None or not isinstance(source, Evaluation) or source.dataset_id is None or not one_pass.encoder:
            return None, None
        if store.dataset(source.dataset_id).fingerprint != cell.opened_setting.dataset.fingerprint:
            return None, None  # only some of these outputs are scored
        try:
            texts.update(dict.fromkeys(texts_of(store, cell, source.id)))
        except TestbedError:  # the run will report it
            return None, None
    assert store is not None
    return len(texts), len(store.lacking_texts(one_pass.encoder, texts))
