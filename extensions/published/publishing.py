"""Publishes measured results: a table, a manifest and a README, for a git repository or a data set on the hub.

``results.csv`` has a row for each metric, sorted, with enough digits to restore the numbers exactly. ``manifest.json``
has the protocol of each cell and the digest of the table. `own_results` reads both. Equal stores give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

from testbed.claims.agreement import IMAGE_SIZE, sides_of
from testbed.db.store import Store
from testbed.entities import FRACTION, OVERALL, Metric
from testbed.errors import StoreError
from testbed.extensions.published.own_results import COLUMNS, FORM, MANIFEST, TABLE, VERSION
from testbed.formatting import metric_value
from testbed.metric_specs import main_metric, spec_of
from testbed.paths import read_regular, write_atomically
from testbed.redaction import redacted
from testbed.spreadsheet import as_csv
from testbed.stored_results.measured_cells import MeasuredCell, measured_cells, public_name

README, ATTRIBUTES = "README.md", ".gitattributes"
LARGE = 10_000_000  # bytes above which git should use LFS, as the hub requires
UNDEFINED = "metrics have no value"
OUTSIDE = "values are outside of the range of a fraction"
_MARK = "<!-- written by testbed publish -->"
_SHOWN = 500  # rows of the README's table


@dataclass
class Publication:
    """The outcome of publishing.

    Attributes:
        cells: Number of cells.
        values: Number of values.
        left_out: What was left out → count.
    """

    cells: int = 0
    values: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def publish(store: Store, folder: Path, models: Sequence[str] = (), settings: Sequence[str] = ()) -> Publication:
    """Writes the measured results of models on settings.

    Args:
        store: The results store.
        folder: The output folder; created if missing.
        models: Names or patterns; empty means all.
        settings: Names or patterns; empty means all except parts of others.

    Raises:
        StoreError: If none of these were measured here, or the folder has a README or a manifest of another
            kind.
        UnknownNameError: If a word matches nothing.
    """
    _require_own(folder)
    cells, left_out = measured_cells(store, models, settings)
    cells.sort(key=lambda each: (each.model, each.eval_setting, each.evaluation.fingerprint))
    done = Publication(len(cells), left_out=left_out)
    rows = [_row(cell, metric) for cell in cells for metric in _metrics(cell, done)]
    done.values = len(rows)
    done.left_out = +done.left_out
    table = as_csv([COLUMNS, *rows]).encode()
    sides = sides_of(store, [cell.evaluation.id for cell in cells])
    manifest = {
        "form": FORM,
        "version": VERSION,
        "results": {"file": TABLE, "rows": len(rows), "sha256": hashlib.sha256(table).hexdigest()},
        "left_out": dict(sorted(done.left_out.items())),
        "cells": [_about(cell, sides.get(cell.evaluation.id)) for cell in cells],
    }
    folder.mkdir(parents=True, exist_ok=True)
    # Written last: until then, the manifest's digest belongs to an earlier table.
    write_atomically(folder / TABLE, table)
    write_atomically(folder / ATTRIBUTES, _attributes(len(table)).encode())
    write_atomically(folder / README, _readme(cells, done).encode())
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(folder / MANIFEST, f"{text}\n".encode())
    return done


def _metrics(cell: MeasuredCell, done: Publication) -> list[Metric]:
    """The metrics that can be published, in the order of their names, those of all samples first."""
    found = []
    for metric in sorted(cell.metrics, key=lambda each: (each.name, each.slice != OVERALL, each.slice, each.scorer)):
        if metric.value is None or not math.isfinite(metric.value):
            done.left_out[UNDEFINED] += 1
        elif metric.unit == FRACTION and not 0 <= metric.value <= 1:
            done.left_out[OUTSIDE] += 1
        else:
            found.append(metric)
    return found


def _row(cell: MeasuredCell, metric: Metric) -> list[Any]:
    error = metric.stderr if metric.stderr is not None and math.isfinite(metric.stderr) else None
    numbers = (metric.value, error, metric.lowest, metric.highest)
    value, stderr, lowest, highest = (None if number is None else repr(float(number)) for number in numbers)
    named = [cell.model, cell.eval_setting, cell.evaluation.fingerprint, metric.name, metric.slice]
    declared = [metric.better, lowest, highest, metric.headline, str(metric.zero_one).lower()]
    return [*named, value, stderr, metric.n, metric.unit, *declared, metric.scorer]


def _about(cell: MeasuredCell, side: int | None) -> dict[str, Any]:
    """The protocol of a cell's claims, as texts."""
    evaluation, dataset = cell.evaluation, cell.dataset
    done = evaluation.completed_at
    view = {name: value for name, value in cell.part("view").items() if value is not None}
    generation = cell.part("forward", "generation")
    told: dict[str, Any] = {
        "data": public_name(dataset.name) if dataset else None,
        "data digest": dataset.fingerprint if dataset else None,
        "samples": dataset.size if dataset else None,
        "sample limit": evaluation.sample_limit,
        "weights": cell.part("model", "weights") or None,
        "random weights": "true" if evaluation.random_weights else None,
        "dtype": evaluation.dtype,
        IMAGE_SIZE: side,
        "task": cell.part("forward", "task") or None,
        "generation": json.dumps(generation, sort_keys=True) if generation else None,
        "scoring": json.dumps(view, sort_keys=True) if view and set(view) != {"scorer"} else None,
        "measured at": done.astimezone(UTC).isoformat() if done else None,
        "testbed": cell.environment.get("testbed"),
        "libraries": ", ".join(" ".join(library) for library in (cell.environment.get("libraries") or {}).items()),
    }
    protocol = {name: redacted(str(value)) for name, value in told.items() if value not in (None, "")}
    names = {"model": cell.model, "eval_setting": cell.eval_setting, "cell": evaluation.fingerprint}
    return {**names, "protocol": protocol}


def _require_own(folder: Path) -> None:
    """Checks that files to be replaced come from an earlier publication."""
    for name, mark in ((README, _MARK), (MANIFEST, FORM)):
        path = folder / name
        if path.exists() and mark not in read_regular(path).decode("utf-8", "replace"):
            raise StoreError(f"{path} was not written by testbed publish; give another folder, or remove it")


def _attributes(size: int) -> str:
    """Git attributes that preserve line ends, which the digest covers."""
    return f"{TABLE} filter=lfs diff=lfs merge=lfs -text\n" if size >= LARGE else f"{TABLE} -text\n"


def _readme(cells: Sequence[MeasuredCell], done: Publication) -> str:
    rows = [line for cell in cells if (line := _line(cell)) is not None]
    more = f"\n… and {len(rows) - _SHOWN:,} more in {TABLE}.\n" if len(rows) > _SHOWN else ""
    left = "".join(f"- {number:,} {what}\n" for what, number in sorted(done.left_out.items()))
    return f"""---
configs:
- config_name: default
  data_files: {TABLE}
---
{_MARK}

# Results

{done.values:,} values of {done.cells:,} cells (a model on an eval setting), measured with testbed. `{TABLE}` has all of
them, `{MANIFEST}` how they were measured. To read them into a store:

    testbed published add FOLDER

The main metric of each setting, with its standard error:

| model | eval setting | metric | value | n |
|---|---|---|--:|--:|
{"".join(rows[:_SHOWN])}{more}{f"{chr(10)}Left out:{chr(10)}{chr(10)}{left}" if left else ""}"""


def _line(cell: MeasuredCell) -> str | None:
    found = {spec_of(each): each for each in cell.metrics if each.slice == OVERALL and each.value is not None}
    main = main_metric(found)
    if main is None:
        return None
    metric = found[main]
    value = metric_value(metric.value, metric.unit, metric.stderr)
    names = [_escaped(text) for text in (cell.model, cell.eval_setting, metric.name)]
    n = "" if metric.n is None else f"{metric.n:,}"
    return f"| {' | '.join(names)} | {value} | {n} |\n"


def _escaped(text: str) -> str:
    """Escapes markup in a cell of a Markdown table."""
    safe = "".join(f"\\{entry}" if entry in r"\`*_{}[]<>|#!~" else entry for entry in text)
    return " ".join(safe.split())
