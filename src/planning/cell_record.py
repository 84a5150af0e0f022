"""Descriptions of cells for the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.db.parts.evaluations import UNIDENTIFIED
from testbed.db.store import Store
from testbed.entities import REFERENCE, CellRecord
from testbed.graph.cells import Cell
from testbed.graph.options import RunOptions
from testbed.inputs import active
from testbed.planning.left_out import KEY, as_object

COMPUTED_FROM = "computed from"  # the key of what `when_begun` says of a derived model's members, in the environment


def cell_record(
    cell: Cell,
    options: RunOptions,
    environment: dict[str, Any],
    derived_from: int | None = None,
    computed_from: Mapping[str, str] | None = None,
) -> CellRecord:
    """What the store records when an evaluation of a cell begins.

    Args:
        cell: The cell.
        options: The options of the run.
        environment: Versions and hardware; what the data sets leave out is added.
        derived_from: The evaluation whose outputs it reuses.
        computed_from: From `when_begun`, for the evaluations whose outputs its own are computed from.
    """
    opened = cell.opened_setting
    limit = options.limit
    limited = (
        limit is not None and opened is not None and cell.size < len(opened.setting.samples.positions(opened.source))
    )
    return CellRecord(
        model=cell.model,
        eval_setting=cell.setting,
        fingerprint=cell.fingerprint or UNIDENTIFIED,
        forward_fingerprint=cell.forward,
        size=cell.size or None,
        sample_limit=limit if limited else None,
        dtype=(cell.identity or {}).get("dtype", options.dtype),
        random_weights=options.random_weights,
        origin="derived" if derived_from is not None else "run",
        derived_from=derived_from,
        identity=cell.identity or None,
        environment={
            **environment,
            **({KEY: as_object(cell.left_out)} if cell.left_out else {}),
            **_reference(cell.model, options),
            **({COMPUTED_FROM: dict(computed_from)} if computed_from else {}),
        },
    )


def _reference(model: str, options: RunOptions) -> dict[str, str]:
    """The file that a short name stands for."""
    own = next((each for each in (options.inputs or active()).own_names if each.name == model), None)
    return {} if own is None else {REFERENCE: own.as_text()}


def when_begun(store: Store, evaluations: Mapping[str, int]) -> dict[str, str]:
    """The moment at which each of some evaluations began, which tells it apart from others of its cell in any store.

    Args:
        store: The results store.
        evaluations: Role → the id of the evaluation.
    """
    return {role: store.evaluations.get(each).created_at.isoformat() for role, each in evaluations.items()}


def columns_of(cell: Cell) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of the model's and the setting's rows; empty for a definition that could not be opened."""
    model = cell.opened_model.definition if cell.opened_model else None
    setting = cell.opened_setting.setting if cell.opened_setting else None
    return (
        {"model_type": model.model_type} if model else {},
        {"parent": setting.parent_eval_setting, "task": setting.task} if setting else {},
    )
