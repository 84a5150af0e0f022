"""Writes generated texts, such as captions, to a JSON file for each model, in the format of ``replay:FILE``."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

from testbed.db.store import Store
from testbed.entities import ELSEWHERE, Evaluation
from testbed.errors import StoreError, UnknownNameError
from testbed.jsontext import to_json
from testbed.models.base.capability import FAILED, NO_ANSWER
from testbed.paths import safe_name, write_atomically
from testbed.stored_results.side_by_side import matching_models

TEXT = "text"  # the kind of outputs


def save_texts(store: Store, eval_setting: str, folder: Path, models: Sequence[str] | None = None) -> list[Path]:
    """Writes the texts of models on a setting, one file per model with an object from sample ids to texts.

    The text of a sample without an answer is null.

    Args:
        folder: The output folder; created if missing.
        models: The models; None means all that were evaluated on it.

    Raises:
        UnknownNameError: If the setting, or one of the models on it, has no stored texts.
    """
    found = reported_with(store, TEXT, "texts", eval_setting, models)
    folder.mkdir(parents=True, exist_ok=True)
    return [write_texts(store, evaluation, folder / f"{safe_name(evaluation.model)}.json") for evaluation in found]


def reported_with(
    store: Store, kind: str, what: str, eval_setting: str, models: Sequence[str] | None
) -> list[Evaluation]:
    """The reported evaluations on a setting that have outputs of a kind.

    Raises:
        UnknownNameError: If the setting, or one of the models on it, has none.
    """
    store.names.require("eval setting", eval_setting)
    of = store.results.find(matching_models(store, models) if models else None, [eval_setting])
    ids = sorted({result.evaluation_id for result in of if result.origin not in ELSEWHERE})
    found = [evaluation for evaluation in map(store.evaluations.get, ids) if kind in store.outputs.kinds(evaluation.id)]
    names = {evaluation.model for evaluation in found}
    missing = [word for word in models or () if word not in names and not fnmatch.filter(names, word)]
    if missing or not found:
        raise UnknownNameError(f"the store has no {what} {f'of {missing[0]} ' if missing else ''}on {eval_setting}")
    return found


def write_texts(store: Store, evaluation: Evaluation, path: Path) -> Path:
    """Writes the texts of one evaluation."""
    if evaluation.dataset_id is None:
        raise StoreError(f"evaluation {evaluation.id} has no samples")
    samples = store.datasets.get(evaluation.dataset_id).samples
    values = store.outputs.read(evaluation.id, TEXT)
    said = {sample.id: _text(value) for sample, value in zip(samples, values, strict=True)}
    write_atomically(path, to_json(said).encode("utf-8", "replace"))
    return path


def _text(value: dict[str, str | None] | None) -> str | None:
    """The generated text; None for a sample that was unreadable, has no answer, or failed."""
    if value is None or str(value["finish_reason"]).startswith((NO_ANSWER, FAILED)):
        return None
    return value["text"]
