"""Hooks of runs: called for each cell and at the end; a faulty one ends no run."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from toy import toy_catalog, toy_model, toy_setting

from testbed import extending
from testbed.errors import StoreError
from testbed.execution.state import Hooks
from testbed.graph.cells import Plan


class Counter:
    """Counts cells."""

    def __init__(self):
        self.cells = []

    def completed(self, store, plan, evaluation_id):
        self.cells.append(evaluation_id)
        return [f"{len(plan.cells)} cells, {store.evaluations.get(evaluation_id).model} is done"]

    def ended(self, store, plan, evaluation_ids):
        return {"counted": self.cells, "all": list(evaluation_ids)}


class Faulty(Counter):
    def completed(self, store, plan, evaluation_id):
        raise ValueError("no such luck")


def test_hooks_of_extensions_see_every_cell_and_a_faulty_one_is_one_line(lab, monkeypatch):
    module = ModuleType("stranger")
    module.Counter, module.Faulty = Counter, Faulty
    monkeypatch.setitem(sys.modules, "stranger", module)
    points = {"hook.counter": "stranger:Counter", "hook.faulty": "stranger:Faulty"}
    own = [extending.EntryPoint(name, value, extending.GROUP) for name, value in points.items()]
    monkeypatch.setattr(extending, "installed_points", lambda group: own)
    extending._installed.cache_clear()
    try:
        notes = []
        lab.progress.note = notes.append
        report = lab.run(toy_catalog(toy_model(), toy_setting()))
        again = lab.run(toy_catalog(toy_model(), toy_setting()))
    finally:
        extending._installed.cache_clear()
    (cell,) = report.evaluations
    assert report.hooks == {"published": [], "counter": {"counted": [cell], "all": [cell]}}
    assert "1 cells, toy is done" in notes
    assert "the hook faulty failed: ValueError: no such luck; the results are stored" in notes
    assert again.hooks["counter"] == {"counted": [], "all": [cell]}  # stored before


def test_an_unreachable_store_ends_the_run():
    class Unreachable(Counter):
        def ended(self, store, plan, evaluation_ids):
            raise StoreError("gone")

    with pytest.raises(StoreError, match="gone"):
        Hooks({"one": Unreachable()}, print).ended(None, Plan(), [])
