"""The plan of a run that is not made."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.db.store import Store
from testbed.errors import StoreError
from testbed.record import Today
from testbed.registry.catalog import Catalog
from testbed.runner.doubts import find_doubts
from testbed.runner.options import RunOptions
from testbed.runner.plan import Plan, Planner


def make_plan(catalog: Catalog, options: RunOptions, models: Sequence[str], settings: Sequence[str]) -> Plan:
    """The plan of a run, without fetching weights and without touching the store (which need not exist)."""
    catalog.load(options.plugins)
    try:
        store = Store.open(options.db_url)
    except StoreError as error:
        if "there is no results store" not in str(error) and "holds no results" not in str(error):
            raise
        return Planner(catalog, None, options, fetch=False).plan(models, settings)
    with store:
        plan = Planner(catalog, store, options, fetch=False).plan(models, settings)
        if not options.trust:
            plan.doubts = find_doubts(plan, store, Today(catalog.plugins), frozenset(), {})
        return plan
