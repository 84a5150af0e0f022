"""Accuracy by factor, such as ImageNet-X's, from stored scores and a file of annotations.

A file has a line for each image: JSON lines, or a CSV. One column names the image (``file_name`` or ``id``), each
column of 0 and 1 is a factor. An image may have several factors, or none.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testbed.db.store import Store
from testbed.errors import DataError
from testbed.extensions.analyses.error_ratio import ErrorRatio, error_ratio
from testbed.stored_results.mistakes import infos_of
from testbed.stored_results.side_by_side import SampleTable, Tell, choose, clusters_in, require_binary, side_by_side

NAMES = ("file_name", "id")
_FLAGS = {0: False, 1: True, "0": False, "1": True, "0.0": False, "1.0": True}


@dataclass(frozen=True)
class Factors:
    """A model by factor.

    Attributes:
        model: The model.
        n: The number of annotated samples.
        accuracy: The share of correct ones.
        factors: Factor → its error ratio; those with the largest ratio first.
    """

    model: str
    n: int
    accuracy: float
    factors: dict[str, ErrorRatio]


def by_factor(
    store: Store,
    setting: str,
    models: Sequence[str],
    score: str,
    annotations: Path,
    leave_out: Path | None = None,
    tell: Tell = lambda note: None,
) -> list[Factors]:
    """Computes the accuracy of models on the samples with each factor.

    Args:
        store: The results store.
        setting: The setting.
        models: Names or patterns; empty means all.
        score: A score of 0 and 1.
        annotations: The file of factors.
        leave_out: A file of images to leave out, with a column ``file_name`` or ``id``, such as ImageNet-X's
            prototypical images.
        tell: Called with notes on what was left out.

    Raises:
        StoreError: If there are no such scores.
        DataError: If a file is invalid, or has none of the samples.
    """
    evaluations = choose(store, [setting], models, score, tell=tell)[setting]
    samples = SampleTable(store)
    table = side_by_side(store, samples, setting, evaluations, score, tell)
    require_binary(table, score, "accuracy by factor")
    rows = read_factors(annotations)
    passed = set() if leave_out is None else set(_by_image(_rows(leave_out), leave_out))
    found = [_of(info.id, rows) for info in infos_of(samples, table)]
    left = [_of(info.id, dict.fromkeys(passed, ())) is not None for info in infos_of(samples, table)]
    kept = np.array([row is not None and not out for row, out in zip(found, left, strict=True)], dtype=bool)
    if not kept.any():
        raise DataError(
            f"{annotations} has no annotations of the {len(found):,} samples of {setting}; it has images such as"
            f" {next(iter(rows))!r}, the setting {infos_of(samples, table)[0].id!r}"
        )
    _tell_left_out(found, left, setting, annotations, leave_out, tell)
    names = sorted({name for row in rows.values() for name in row})
    having = {name: np.array([row[name] for row in found if row is not None], dtype=bool) for name in names}
    annotated = kept[[row is not None for row in found]]
    having = {name: flags[annotated] for name, flags in having.items()}
    clusters = clusters_in(samples, table)
    return [
        _factors(model, table.scores[kept, column], having, None if clusters is None else clusters[kept])
        for column, model in enumerate(table.models)
    ]


def _tell_left_out(
    found: Sequence[Any], left: Sequence[bool], setting: str, annotations: Path, leave_out: Path | None, tell: Tell
) -> None:
    missing = sum(row is None for row in found)
    if missing:
        tell(f"{missing:,} of {len(found):,} samples of {setting} are not in {annotations} and do not count")
    if any(left):
        tell(f"{sum(left):,} samples of {setting} are in {leave_out} and do not count")


def _factors(model: str, right: Any, having: Mapping[str, Any], clusters: Any) -> Factors:
    ratios = {name: error_ratio(right, flags, clusters) for name, flags in having.items() if flags.any()}
    ordered = sorted(ratios.items(), key=lambda item: (-(item[1].ratio or 0.0), item[0]))
    return Factors(model, len(right), float(right.mean()), dict(ordered))


def _of(sample: str, rows: Mapping[str, Any]) -> Any:
    """The annotations of a sample: by its id, or by the name of its file."""
    found = rows.get(sample)
    return rows.get(sample.rpartition("/")[2]) if found is None else found


# Files --------------------------------------------------------------------------------------------------------------


def read_factors(path: Path) -> dict[str, dict[str, bool]]:
    """Reads the factors of each image in a file.

    Raises:
        DataError: If it is invalid, or has no column of 0 and 1.
    """
    rows = _by_image(_rows(path), path)
    columns = [str(name) for name in next(iter(rows.values())) if name not in NAMES]
    factors = [name for name in columns if all(_flag(row.get(name)) is not None for row in rows.values())]
    if not factors:
        raise DataError(f"{path} has no column of 0 and 1; its columns are {', '.join(columns) or 'none'}")
    return {image: {name: bool(_flag(row[name])) for name in factors} for image, row in rows.items()}


def _flag(value: Any) -> bool | None:
    return _FLAGS.get(value) if isinstance(value, int | float | str) else None


def _by_image(rows: Iterable[Mapping[str, Any]], path: Path) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for number, row in enumerate(rows, start=1):
        image = next((row[name] for name in NAMES if row.get(name)), None)
        if not isinstance(image, str):
            raise DataError(
                f"{path}, image {number}: expected a column {' or '.join(NAMES)}; found {', '.join(row) or 'none'}"
            )
        if image in found:
            raise DataError(f"{path} has the image {image!r} twice")
        found[image] = row
    if not found:
        raise DataError(f"{path} has no images")
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV, or of a file of JSON lines."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() != ".csv":
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
            if not all(isinstance(row, dict) for row in rows):
                raise DataError(f"{path}: each line should be a JSON object")
            return rows
        return [dict(row) for row in csv.DictReader(text.splitlines())]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, json.JSONDecodeError, csv.Error) as error:
        raise DataError(f"{path} is neither a CSV nor JSON lines in UTF-8: {error}") from error
