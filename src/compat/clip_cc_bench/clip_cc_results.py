"""Reads the result files that CLIP-CC-Bench publishes: means of captioners by decoders, not scores of videos.

They are imported as models on the settings ``clip-cc-bench@DECODER``, under the names that the files have. Means of the
published files are of unchanged cosines, and so have the names of the raw scale.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.entities import Metric
from testbed.errors import StoreError, shortened
from testbed.exchange.imported import ImportedCell, imported_cell, named
from testbed.metrics.caption_similarity import SPECS

FORM = "CLIP-CC-Bench's results"
NAME = "Model Name"  # the first column of aggregated_results.csv
RAW = "_raw"
SETTING = "clip-cc-bench"
_MOST = 1e300  # of numbers that the square root is taken of
# Columns of the CSV, and places in the JSON of a captioner by a decoder, with our names.
COLUMNS = {"coarse": "coarse_similarity", "fine_f1": "fine_f1", "hm_cf": "hm_cf"}
PLACES = {
    "coarse_similarity": ("coarse_grained_stats",),
    "fine_precision": ("fine_grained_stats", "precision"),
    "fine_recall": ("fine_grained_stats", "recall"),
    "fine_f1": ("fine_grained_stats", "f1"),
    "hm_cf": ("hybrid_stats", "hm_cf"),
}
# The same in the README's form, which has the unit scale unless it says otherwise.
README_PLACES = {
    "coarse_similarity": ("metrics", "coarse_similarity"),
    "fine_precision": ("metrics", "fine_grained_precision"),
    "fine_recall": ("metrics", "fine_grained_recall"),
    "fine_f1": ("metrics", "fine_grained_f1"),
    "hm_cf": ("metrics", "hm_cf"),
}
DECODER_KEYS = ("embedding_model_name", "decoder_name")

Summary = tuple[Path, Mapping[str, Any]]


def csv_cells(header: Sequence[str], rows: Sequence[Sequence[str]], path: Path) -> list[ImportedCell]:
    """A row for each captioner; columns ``DECODER_coarse``, ``DECODER_fine_f1`` and ``DECODER_hm_cf``.

    Raises:
        StoreError: If a column is another one, a captioner is there twice, or a value is no cosine.
    """
    columns = [column_of(each, path) for each in header[1:]]
    values: dict[tuple[str, str], list[Metric]] = {}
    seen: set[str] = set()
    for number, row in enumerate(rows, start=2):
        where = f"{path}, row {number}"
        model = named(row[0], where)
        if model in seen:
            raise StoreError(f"{where}: {model} is there twice")
        seen.add(model)
        for (decoder, metric), text, column in zip(columns, row[1:], header[1:], strict=True):
            if text.strip():
                value = cosine(text, f"{where}, column {column}")
                values.setdefault((model, decoder), []).append(
                    SPECS[metric + RAW].metric(value, published=text.strip())
                )
    return [imported_cell(model, _setting(decoder, path), metrics) for (model, decoder), metrics in values.items()]


def column_of(column: str, path: Path | str) -> tuple[str, str]:
    """The decoder and the metric of a column.

    Raises:
        StoreError: If it is none of CLIP-CC-Bench.
    """
    for suffix, metric in COLUMNS.items():
        if column.endswith(f"_{suffix}") and column != f"_{suffix}":
            return column[: -len(suffix) - 1], metric
    raise StoreError(
        f"{path} has the column {column!r}; after {NAME!r} CLIP-CC-Bench's columns end in _{', _'.join(COLUMNS)}"
    )


def summaries_in(path: Path) -> list[Summary] | None:
    """The summaries of captioners by decoders in a file, or in the folders of decoders below a folder.

    Returns:
        None if there are none: the file or folder is something else.
    """
    if path.is_dir():
        files = sorted(each for pattern in ("*.json", "*/*.json", "*/per_model/*.json") for each in path.glob(pattern))
    else:
        files = [path] if path.suffix == ".json" else []
    found = [(file, content) for file in files if (content := _content(file)) is not None]
    return found or None


def _content(file: Path) -> Mapping[str, Any] | None:
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None  # what is no JSON is told by the reader of CLIP benchmark's files
    if not isinstance(content, dict) or "model_name" not in content or not any(key in content for key in DECODER_KEYS):
        return None
    return content if any(places[0] in content for places in (*PLACES.values(), ("metrics",))) else None


def cells_of(summaries: Sequence[Summary]) -> list[ImportedCell]:
    """The cells of summaries, a captioner by a decoder each.

    Raises:
        StoreError: If one is there twice, lacks a name, or has a value that is no cosine.
    """
    cells: dict[tuple[str, str], tuple[Path, ImportedCell]] = {}
    for file, content in summaries:
        cell = _cell(file, content)
        other, _ = cells.setdefault((cell.model, cell.eval_setting), (file, cell))
        if other != file:
            raise StoreError(f"{other} and {file} are both about {cell.model} on {cell.eval_setting}")
    return [cell for _, cell in cells.values()]


def _cell(file: Path, content: Mapping[str, Any]) -> ImportedCell:
    readme = "metrics" in content
    suffix = "" if readme and content.get("scale", "unit") == "unit" else RAW
    decoder = next(str(content[key]) for key in DECODER_KEYS if key in content)
    count = content.get("successful_evaluations")
    metrics = []
    for name, place in (README_PLACES if readme else PLACES).items():
        found: Any = content
        for key in place:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, dict) and found.get("mean") is not None:
            value = cosine(found["mean"], f"{file}, {'.'.join(place)}.mean")
            n = count if isinstance(count, int) and 0 < count < _MOST else None
            error = _stderr(found.get("std"), n)
            metrics.append(SPECS[name + suffix].metric(value, n, error, published=str(found["mean"])))
    if not metrics:
        raise StoreError(f"{file} has no mean of any similarity; a summary of CLIP-CC-Bench has one of each")
    return imported_cell(named(str(content["model_name"]), str(file)), _setting(decoder, file), metrics)


def _setting(decoder: str, where: Path) -> str:
    return named(f"{SETTING}@{decoder}", str(where), "eval setting")


def cosine(given: Any, where: str) -> float:
    """A cosine as it is given.

    Raises:
        StoreError: If it is none.
    """
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if isinstance(given, bool) or not -1 <= value <= 1:
        raise StoreError(f"{where}: a number between -1 and 1 was expected, {shortened(repr(given))[1:-1]} was found")
    return value


def _stderr(deviation: Any, n: int | None) -> float | None:
    """The standard error of a mean, from the population standard deviation that the files have."""
    known = isinstance(deviation, int | float) and not isinstance(deviation, bool) and 0 <= deviation < _MOST
    return float(deviation) / math.sqrt(n - 1) if known and n is not None and n > 1 else None
