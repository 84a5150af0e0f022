"""The samples of an evaluation as a pandas frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testbed.analyses.predictions import has_logits, predictions_of
from testbed.errors import TestbedError

if TYPE_CHECKING:
    import pandas as pd

    from testbed.db.store import Store
    from testbed.entities import DatasetInfo, Evaluation

TEXT = "text"  # the kind of outputs
OWN = ("sample", "target", "prediction", "text", "error")


def sample_frame(store: Store, evaluation: Evaluation) -> pd.DataFrame:
    """A row for each sample; see `testbed.api.results.Results.samples`."""
    import pandas as pd

    dataset = store.datasets.get(evaluation.dataset_id or 0)
    columns: dict[str, Any] = {"sample": [each.id for each in dataset.samples]}
    columns |= _classes(store, evaluation, dataset)
    if TEXT in store.outputs.kinds(evaluation.id):
        from testbed.tasks.parts.generation import texts_and_status

        columns["text"], _ = texts_and_status(store.outputs.read(evaluation.id, TEXT))
    for (scorer, name), values in store.scores.read(evaluation.id).items():
        columns[name if name not in columns and name not in OWN else f"{name} ({scorer})"] = values
    errors = store.outputs.errors(evaluation.id)
    columns["error"] = [errors.get(index) for index in range(len(dataset.samples))]
    return pd.DataFrame(columns)


def _classes(store: Store, evaluation: Evaluation, dataset: DatasetInfo) -> dict[str, Any]:
    """Targets, and predictions where there are any; classes by their names."""
    targets: list[Any] = [each.target for each in dataset.samples]
    if not has_logits(store, evaluation):
        return {"target": targets}
    try:
        found = predictions_of(store, evaluation, dataset)
    except TestbedError:  # logits that are not of classes
        return {"target": targets}
    names = found.classes_named
    return {
        "target": [names.of(each) if type(each) is int else each for each in targets],
        "prediction": [names.of(each) if each >= 0 else None for each in found.classes.tolist()],
    }
