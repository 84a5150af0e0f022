"""The samples of an evaluation as a pandas frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testbed.errors import TestbedError, well_formed
from testbed.stored_results.predictions import has_logits, predictions_of

if TYPE_CHECKING:
    import pandas as pd

    from testbed.db.store import Store
    from testbed.entities import DatasetInfo, Evaluation

TEXT = "text"  # kind of outputs
OWN = ("sample", "target", "prediction", "text", "error")


def sample_frame(store: Store, evaluation: Evaluation) -> pd.DataFrame:
    """A row for each sample; see `testbed.api.results.Results.samples`."""
    import pandas as pd

    from testbed.tasks.parts.generation import replies_of

    dataset = store.datasets.get(evaluation.dataset_id or 0)
    columns: dict[str, Any] = {"sample": [sample.id for sample in dataset.samples]}
    columns |= _classes(store, evaluation, dataset)
    refusals: dict[int, str | None] = {}
    if TEXT in store.outputs.kinds(evaluation.id):
        replies = replies_of(store.outputs.read(evaluation.id, TEXT))
        refusals = dict(enumerate(replies.refusals))
        columns["text"] = [None if refusals[place] else text for place, text in enumerate(replies.texts)]
    for (scorer, name), values in store.scores.read(evaluation.id).items():
        columns[name if name not in columns and name not in OWN else f"{name} ({scorer})"] = values
    errors = store.outputs.errors(evaluation.id)
    columns["error"] = [errors.get(index) or refusals.get(index) for index in range(len(dataset.samples))]
    return pd.DataFrame({name: _as_shown(values) for name, values in columns.items()})


def _as_shown(values: Any) -> Any:
    """Prepares a column's values; removes lone surrogates from texts, which pandas cannot store."""
    if not isinstance(values, list):
        return values
    return [well_formed(value) if isinstance(value, str) else value for value in values]


def _classes(store: Store, evaluation: Evaluation, dataset: DatasetInfo) -> dict[str, Any]:
    """Targets, and predictions if there are any; classes by name."""
    targets: list[Any] = [sample.target for sample in dataset.samples]
    if not has_logits(store, evaluation):
        return {"target": targets}
    try:
        found = predictions_of(store, evaluation, dataset)
    except TestbedError:  # logits that do not stand for classes
        return {"target": targets}
    names = found.classes_named
    return {
        "target": [names.of(entry) if type(entry) is int else entry for entry in targets],
        "prediction": [names.of(class_name) if class_name >= 0 else None for class_name in found.classes.tolist()],
    }
