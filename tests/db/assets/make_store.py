"""Made the stores ``store_1.db``, …: one of each schema version, with the same few rows of everything.

    python tests/db/assets/make_store.py tests/db/assets/store_2.db

It works with the testbed of that schema version only. A file that was made is never made again: later versions must
read that very file. ``test_schema.py`` says what is in it.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import numpy as np
import torch

from testbed.db.migrations import HEAD
from testbed.db.store import Store
from testbed.entities import CellRecord, Chunk, DatasetInfo, Metric, SampleInfo, Score

IDENTITY = {
    "model": {"spec": {"name": "net", "layers": [1, 2]}, "weights": "sha256:1"},
    "forward": {"task": "classification", "restricted": False},
    "samples": "fingerprint-photos",
    "dtype": "float16",
}


def fill(store: Store) -> None:
    """A few rows of everything."""
    samples = [
        SampleInfo("photos/0.png", "d0", 0, "group a", {"hard": True}),
        SampleInfo("photos/1 ü.png", "d1", 2),
        SampleInfo("photos/2.png", "d2", None),
        SampleInfo("photos/3.png", "d3", ["yes", {"n": 1.5}]),
    ]
    photos = store.datasets.ensure(DatasetInfo("photos", "fingerprint-photos", samples, ["cat", "dog", "owl"]))
    part = store.datasets.ensure(DatasetInfo("part", "fingerprint-part", [samples[3], samples[0]]))

    record = CellRecord(
        model="net",
        eval_setting="val",
        fingerprint="f-run",
        forward_fingerprint="forward",
        size=4,
        dtype="float16",
        identity=IDENTITY,
        environment={"torch": "2.15.0"},
    )
    run = store.evaluations.begin(record, photos, {"model_type": "Standard training"}, {"task": "classification"})
    logits = (np.arange(12).reshape(4, 3) / 8).astype(np.float16)
    store.outputs.append([Chunk(run.id, "logits", 0, logits[:3]), Chunk(run.id, "logits", 3, logits[3:])])
    store.outputs.append(
        [Chunk(run.id, "embeddings", 0, torch.arange(8.0).reshape(4, 2).to(torch.bfloat16))], {run.id: {2: "x"}}
    )
    scores = [Score("top1", np.array([1, 0, 0, 1], np.uint8), "classification@1")]
    metrics = [
        Metric("top1", 0.5, 4, 0.25, "overall", "fraction", "classification@1"),
        Metric("top1", 1.0, 1, None, "hard", "fraction", "classification@1"),
        Metric("top5", None, 4, scorer="classification@1"),
    ]
    store.evaluations.complete(run.id, scores, metrics)

    record = CellRecord(
        model="net", eval_setting="part", fingerprint="f-derived", size=2, origin="derived", derived_from=run.id
    )
    derived = store.evaluations.begin(record, part, {}, {"parent": "val", "task": "classification"})
    store.evaluations.complete(derived.id, [], [Metric("top1", 1.0, 2)])

    limited = CellRecord("net", "val", "f-limited", size=4, sample_limit=4, random_weights=True)
    evaluation = store.evaluations.begin(limited, photos, {}, {})
    store.outputs.append([Chunk(evaluation.id, "logits", 0, np.zeros((4, 3), np.float32))])
    store.evaluations.complete(evaluation.id, [], [Metric("top1", 0.0, 4)])

    record = CellRecord("net", "val", "f-imported", origin="imported", source="table.csv")
    imported = store.evaluations.begin(record, None, {}, {})
    store.evaluations.complete(imported.id, [], [Metric("top1", 0.75)])
    running = store.evaluations.begin(CellRecord("net", "sketch", "f-running", size=4), photos, {}, {})
    store.outputs.append([Chunk(running.id, "logits", 1, np.ones((2, 3), np.float32))])
    failed = store.evaluations.begin(CellRecord("net", "objectnet", "f-failed", size=4), photos, {}, {})
    store.evaluations.fail(failed.id, "out of memory")
    store.evaluations.record_failure(
        CellRecord("clip", "sketch", "unidentified"), "unsupported", "lacks logits", {}, {}
    )
    store.evaluations.begin(CellRecord("removed", "val", "f-removed", size=4), photos, {}, {})
    store.names.hide("model", "removed")
    store.items.put("f-texts", ["a dog", "ein Hund ü"], np.arange(6, dtype=np.float16).reshape(2, 3))  # since 0004
    store.artifacts.put("f-head", "zero-shot head", np.eye(3, dtype=np.float32), {"prompts": ["a {c}"]})


def main(path: Path) -> None:
    """Writes the file."""
    if path.name != f"store_{HEAD}.db" or path.exists():
        raise SystemExit(f"this testbed has schema version {HEAD}, or {path} exists; a file is made once")
    with sqlite3.connect(path) as connection:  # small pages, since most tables hold a row or two
        connection.execute("PRAGMA page_size=1024")
        connection.execute("VACUUM")
    connection.close()
    with Store.create(str(path)) as store:
        fill(store)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
