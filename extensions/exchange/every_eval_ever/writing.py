"""Writes the measured cells of a store in the folders of Every Eval Ever's data store.

``<collection>/<developer>/<model>/<uuid>.json`` has a cell's record, and ``<uuid>_samples.jsonl`` beside it a line for
each sample. Everything comes from the store: equal stores give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.claims.every_eval_ever import SAMPLES_SUFFIX
from testbed.db.store import Store
from testbed.entities import OVERALL, Metric
from testbed.extensions.exchange.every_eval_ever.record import finite_value, folder_of, record_of, result_id
from testbed.extensions.exchange.every_eval_ever.samples import SampleLines
from testbed.jsontext import finite
from testbed.metric_specs import main_metric, spec_of
from testbed.paths import write_atomically
from testbed.stored_results.measured_cells import MeasuredCell, measured_cells

UNDEFINED = "metrics have no value"
NO_SAMPLES = "cells have no per-sample scores: their samples are not written"
NO_DATASET = "cells have no samples, and no data set that could be named"


@dataclass
class RecordExport:
    """The outcome of an export.

    Attributes:
        records: The number of cells.
        samples: The number of their samples.
        left_out: What was left out or could not be expressed → count.
    """

    records: int = 0
    samples: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def write(
    store: Store,
    folder: Path,
    models: Sequence[str] = (),
    settings: Sequence[str] = (),
    organization: str = "unknown",
    relationship: str = "other",
) -> RecordExport:
    """Writes records with their samples.

    Args:
        store: The results store.
        folder: The output folder; created if missing.
        models: Names or patterns; empty means all.
        settings: Names or patterns; empty means all except parts of others.
        organization: The evaluating organization.
        relationship: Its relationship to the models: one of `testbed.claims.every_eval_ever.RELATIONSHIPS`.

    Raises:
        StoreError: If none of these were measured here.
        UnknownNameError: If a word matches nothing.
    """
    cells, left_out = measured_cells(store, models, settings)
    done = RecordExport(left_out=left_out)
    for cell in cells:
        if cell.evaluation.dataset_id is None:
            done.left_out[NO_DATASET] += 1
        else:
            _write_cell(store, cell, folder, organization, relationship, done)
    done.left_out = +done.left_out
    return done


def _write_cell(
    store: Store, cell: MeasuredCell, folder: Path, organization: str, relationship: str, done: RecordExport
) -> None:
    assert cell.evaluation.dataset_id is not None
    dataset = store.datasets.get(cell.evaluation.dataset_id)
    record = record_of(cell, dataset, organization, relationship)
    done.left_out[UNDEFINED] += sum(finite_value(metric) is None for metric in cell.metrics)
    link = {
        "evaluation_id": record["evaluation_id"],
        "model_id": record["model_info"]["id"],
        "evaluation_name": cell.eval_setting,
    }
    main = _main(cell.metrics)
    link |= {"evaluation_result_id": result_id(main)} if main else {}
    samples = SampleLines(cell, dataset, link)
    lines = [_line(sample_line) for sample_line in samples.lines(store)]
    content = "".join(f"{line}\n" for line in lines).encode()
    done.left_out.update(samples.incomplete)
    # Their data store accepts only random UUIDs (version 4); this one has their format, but is a hash of the content.
    digest = hashlib.sha256(_line(record).encode() + content).digest()
    name = str(uuid.UUID(bytes=digest[:16], version=4))
    parts = folder_of(cell, dataset)
    place = folder.joinpath(*parts)
    place.mkdir(parents=True, exist_ok=True)
    if lines:
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": "/".join(("data", *parts, f"{name}{SAMPLES_SUFFIX}")),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(content).hexdigest(),
            "total_rows": len(lines),
        }
        write_atomically(place / f"{name}{SAMPLES_SUFFIX}", content)
    else:
        done.left_out[NO_SAMPLES] += 1
    write_atomically(place / f"{name}.json", f"{json.dumps(finite(record), indent=2, allow_nan=False)}\n".encode())
    done.records += 1
    done.samples += len(lines)


def _main(metrics: Sequence[Metric]) -> Metric | None:
    """The main metric of all samples."""
    found = {
        spec_of(metric): metric for metric in metrics if metric.slice == OVERALL and finite_value(metric) is not None
    }
    main = main_metric(found)
    return None if main is None else found[main]


def _line(value: dict[str, Any]) -> str:
    """Formats JSON in ASCII, since some readers treat other characters as line ends."""
    return json.dumps(finite(value), allow_nan=False)
