"""Heads and probes that a cell needs and that are not stored yet."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.db.store import Store
from testbed.entities import SampleInfo
from testbed.errors import StoreError, TestbedError
from testbed.graph.cells import Cell
from testbed.graph.nodes import Given
from testbed.graph.values import RowValues


def lacks_ones(store: Store, cell: Cell) -> bool:
    """Whether a head or a probe must be made for a cell."""
    if cell.rows is None or not cell.rows.ones:
        return False
    assert cell.opened_model is not None
    assert cell.opened_setting is not None
    opened, definition = cell.opened_setting, cell.opened_model.definition

    def samples(role: str) -> Sequence[SampleInfo]:
        return cell.inputs[role].dataset.samples if role in cell.inputs else opened.dataset.samples

    given = Given(cell.model_identity, opened.setting, opened.dataset.class_names, samples, _no_rows)
    try:
        prints = [one.fingerprint(given, definition) for one in cell.rows.ones.values()]
    except StoreError:
        raise
    except TestbedError:  # the worker reports it
        return False
    return any(not store.has_artifact(each) for each in prints if each)


def _no_rows(role: str) -> RowValues:
    raise AssertionError(f"the embeddings {role} are not read before the run")
