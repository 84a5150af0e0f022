"""Writes stored outputs and metrics to files that can be read without testbed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from testbed.arrays import Array
from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.errors import MissingExtraError, StoreError
from testbed.jsontext import to_json
from testbed.metrics.classification import grouped
from testbed.paths import safe_name, write_atomically
from testbed.spreadsheet import cell
from testbed.stored_results.export_texts import TEXT, reported_with, write_texts
from testbed.stored_results.labels import unreported
from testbed.stored_results.predictions import LOGITS, viewed_class_names

Format = Literal["npz", "csv", "parquet"]

MANIFEST = "manifest.json"


def save_logits(
    store: Store,
    eval_setting: str,
    folder: Path,
    models: Sequence[str] | None = None,
    form: Format = "npz",
    everything: bool = False,
) -> list[dict[str, Any]]:
    """Writes the logits of models on a setting, a file for each, and a manifest.

    Args:
        folder: The output folder; created if missing.
        models: The models; None means all that were evaluated on it.
        form: ``"npz"``: arrays logits, targets, sample_ids, class_names, for numpy alone; ``"csv"`` and ``"parquet"``:
            one row for each sample.
        everything: Whether to write all evaluations of each model rather than the reported one; the files of the others
            have their id in the name, and a label in the manifest.

    Returns:
        The manifest's entries.

    Raises:
        UnknownNameError: If the setting, or one of the models on it, has no stored logits.
    """
    chosen = sorted(reported_with(store, LOGITS, "logits", eval_setting, models), key=lambda each: each.model)
    others = unreported(store, models, [eval_setting]) if everything else {}
    chosen += [each for each in map(store.evaluations.get, others) if LOGITS in store.outputs.kinds(each.id)]
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for evaluation in chosen:
        stem = f"{safe_name(eval_setting)}__{safe_name(evaluation.model)}"
        stem += f"__evaluation-{evaluation.id}" if evaluation.id in others else ""
        entry = _write(store, evaluation, folder / f"{stem}.{form}", form)
        entries.append({**entry, "label": others[evaluation.id]} if evaluation.id in others else entry)
    write_atomically(folder / MANIFEST, to_json({"files": entries}).encode())
    return entries


def write_run(store: Store, evaluation_ids: Iterable[int], folder: Path) -> int:
    """Writes ``metrics.json`` and outputs, as ImageNet-testbed's ``--logdir``; returns the number of output files."""
    folder.mkdir(parents=True, exist_ok=True)
    metrics, files = [], 0
    for evaluation_id in evaluation_ids:
        evaluation = store.evaluations.get(evaluation_id)
        entry: dict[str, Any] = {"model": evaluation.model, "eval_setting": evaluation.eval_setting}
        entry["metrics"] = [
            {"metric": metric.name, "slice": metric.slice, "value": metric.value, "unit": metric.unit, "n": metric.n,
             "stderr": metric.stderr}
            for metric in store.results.metrics(evaluation_id)
        ]  # fmt: skip
        kinds = store.outputs.kinds(evaluation_id)
        form = "npz" if LOGITS in kinds else "json" if TEXT in kinds and evaluation.origin == "run" else None
        if form is not None:
            path = folder / safe_name(evaluation.eval_setting) / f"{safe_name(evaluation.model)}.{form}"
            path.parent.mkdir(parents=True, exist_ok=True)
            entry["outputs"] = str(path.relative_to(folder))
            if form == "npz":
                _write(store, evaluation, path, "npz")
            else:
                write_texts(store, evaluation, path)
            files += 1
        metrics.append(entry)
    write_atomically(folder / "metrics.json", to_json(metrics).encode())
    return files


def arrays_of(store: Store, evaluation: Evaluation) -> dict[str, Array]:
    """The logits that the metrics were computed from, with targets, sample ids and class names."""
    import numpy as np

    if evaluation.dataset_id is None:
        raise StoreError(f"evaluation {evaluation.id} has no samples")
    logits = store.outputs.read(evaluation.id, LOGITS)
    dataset = store.datasets.get(evaluation.dataset_id)
    identity = store.evaluations.identity(evaluation)
    view: dict[str, Any] = identity.get("view", {})
    sublist = view.get("class_sublist")
    arrays: dict[str, Any] = {
        "targets": _targets([sample.target for sample in dataset.samples]),
        "sample_ids": np.asarray([sample.id for sample in dataset.samples], dtype=np.str_),
    }
    if sublist is not None:
        arrays["class_sublist"] = np.asarray(sublist)
        if not identity.get("forward", {}).get("restricted"):
            # As the metrics saw them: targets index into the list.
            logits = logits[:, sublist]
    if view.get("class_groups"):
        logits = grouped(logits, view["class_groups"])
    names = viewed_class_names(identity, dataset.class_names, logits.shape[1])
    return {"logits": logits, "class_names": np.asarray(names, dtype=np.str_), **arrays}


def _targets(targets: Sequence[Any]) -> Array:
    """An array of the targets; as JSON texts if they are lists of different lengths or have mixed types."""
    import numpy as np

    try:
        array = np.asarray(targets)
    except ValueError:
        array = np.asarray(None)
    texts = [isinstance(target, str) for target in targets]
    if array.dtype.kind in "biuf" or all(texts):
        return array
    return np.asarray([json.dumps(target) for target in targets], dtype=np.str_)


def _write(store: Store, evaluation: Evaluation, path: Path, form: Format) -> dict[str, Any]:
    import numpy as np

    arrays = arrays_of(store, evaluation)
    temporary = path.with_name(f"{path.name}.part")
    try:
        if form == "npz":
            with temporary.open("wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        else:
            _write_table(temporary, arrays, form)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    rows, classes = arrays["logits"].shape
    return {
        "model": evaluation.model,
        "eval_setting": evaluation.eval_setting,
        "file": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "samples": rows,
        "classes": classes,
        "stored_dtype": store.outputs.kinds(evaluation.id)[LOGITS],
        "evaluation": evaluation.id,
        "fingerprint": evaluation.fingerprint,
        "random_weights": evaluation.random_weights,
        "sample_limit": evaluation.sample_limit,
        "metrics": {
            metric.name: metric.value for metric in store.results.metrics(evaluation.id) if metric.slice == "overall"
        },
    }


def _cell(value: Any) -> Any:
    """A value that neither a spreadsheet takes for a formula nor pandas, which does not quote it, for a new row."""
    return cell(value.replace("\r", "\\r")) if isinstance(value, str) else value


def _write_table(path: Path, arrays: dict[str, Any], form: Format) -> None:
    """One row for each sample: its id, its target, and a column ``logit_<i>`` for each class."""
    import pandas as pd

    logits = arrays["logits"]
    frame = pd.DataFrame(logits, columns=[f"logit_{index}" for index in range(logits.shape[1])])
    targets = arrays["targets"]
    frame.insert(0, "target", targets if targets.ndim == 1 else [json.dumps(target) for target in targets.tolist()])
    frame.insert(0, "sample_id", arrays["sample_ids"])
    if form == "csv":
        frame = frame.assign(sample_id=frame["sample_id"].map(_cell), target=frame["target"].map(_cell))
        # Enough digits to restore every value exactly.
        frame.to_csv(path, index=False, float_format="%.9g" if logits.dtype.itemsize <= 4 else "%.17g")
        return
    try:
        frame.to_parquet(path, index=False)
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "--format parquet") from None
