"""Reads the result files that CLIP-CC-Bench publishes: means of captioners by decoders, not scores of videos.

They are imported as models on the settings ``clip-cc-bench@DECODER``, under the names in the files. The
published files have means of unchanged cosines, which get the names of the raw scale.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from testbed.errors import StoreError, shortened

FORM = "CLIP-CC-Bench's results"
NAME = "Model Name"  # the first column of aggregated_results.csv
RAW = "_raw"
SETTING = "clip-cc-bench"
_MOST = 1e15  # largest accepted number of samples or deviation
# Columns of the CSV, and places in the JSON of a captioner by a decoder, with our names.
COLUMNS = {"coarse": "coarse_similarity", "fine_f1": "fine_f1", "hm_cf": "hm_cf"}
PLACES = {
    "coarse_similarity": ("coarse_grained_stats",),
    "fine_precision": ("fine_grained_stats", "precision"),
    "fine_recall": ("fine_grained_stats", "recall"),
    "fine_f1": ("fine_grained_stats", "f1"),
    "hm_cf": ("hybrid_stats", "hm_cf"),
}
# The same in the README's layout, which has the unit scale by default.
README_PLACES = {
    "coarse_similarity": ("metrics", "coarse_similarity"),
    "fine_precision": ("metrics", "fine_grained_precision"),
    "fine_recall": ("metrics", "fine_grained_recall"),
    "fine_f1": ("metrics", "fine_grained_f1"),
    "hm_cf": ("metrics", "hm_cf"),
}
DECODER_KEYS = ("embedding_model_name", "decoder_name")


def column_of(column: str, path: str) -> tuple[str, str]:
    """Determines the decoder and the metric of a column.

    Raises:
        StoreError: If it is not a column of CLIP-CC-Bench.
    """
    for suffix, metric in COLUMNS.items():
        if column.endswith(f"_{suffix}") and column != f"_{suffix}":
            return column[: -len(suffix) - 1], metric
    raise StoreError(
        f"{path} has the column {column!r}; after {NAME!r} CLIP-CC-Bench's columns end in _{', _'.join(COLUMNS)}"
    )


def is_summary(record: Mapping[str, Any]) -> bool:
    """Returns whether a record is the summary of a captioner by a decoder."""
    if "model_name" not in record or not any(key in record for key in DECODER_KEYS):
        return False
    return any(places[0] in record for places in (*PLACES.values(), ("metrics",)))


class Mean(NamedTuple):
    """A mean in a summary, as printed."""

    metric: str
    text: str
    n: int | None
    stderr: float | None
    place: str


def means_of(summary: Mapping[str, Any], where: str) -> tuple[str, str, list[Mean]]:
    """Reads the captioner, the decoder and the means of a summary; numbers stay text.

    Raises:
        StoreError: If it has no means, or a value is not a cosine.
    """
    readme = "metrics" in summary
    suffix = "" if readme and summary.get("scale", "unit") == "unit" else RAW
    decoder = next(str(summary[key]) for key in DECODER_KEYS if key in summary)
    count = _number(summary.get("successful_evaluations"))
    n = int(count) if count is not None and count.is_integer() and count > 0 else None
    means = []
    for name, place in (README_PLACES if readme else PLACES).items():
        found: Any = summary
        for key in place:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, dict) and found.get("mean") is not None:
            at = f"{'.'.join(place)}.mean"
            cosine(found["mean"], f"{where}, {at}")
            means.append(Mean(name + suffix, str(found["mean"]), n, _stderr(_number(found.get("std")), n), at))
    if not means:
        raise StoreError(f"{where} has no mean of any similarity; a summary of CLIP-CC-Bench has one for each")
    return str(summary["model_name"]), decoder, means


def _number(given: Any) -> float | None:
    try:
        value = float(given) if isinstance(given, str) else math.nan
    except ValueError:
        value = math.nan
    return value if 0 <= value < _MOST else None


def cosine(given: Any, where: str) -> float:
    """Parses a cosine.

    Raises:
        StoreError: If it is invalid.
    """
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if isinstance(given, bool) or not -1 <= value <= 1:
        raise StoreError(f"{where}: a number between -1 and 1 was expected, {shortened(repr(given))[1:-1]} was found")
    return value


def _stderr(deviation: float | None, n: int | None) -> float | None:
    """The standard error of a mean, from the population standard deviation that the files have."""
    return deviation / math.sqrt(n - 1) if deviation is not None and n is not None and n > 1 else None
