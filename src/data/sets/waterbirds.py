"""Waterbirds (Sagawa et al. 2020): birds on backgrounds, most of them where such birds live.

The archive of https://nlp.stanford.edu/data/dro/waterbird_complete95_forest2water2.tar.gz holds ``metadata.csv`` with
the columns ``img_filename``, ``y`` (1: a waterbird), ``split`` (0: training, 1: validation, 2: test) and ``place`` (1:
water).
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from testbed.data.formats.image_lists import ListedImages
from testbed.errors import DataError

CLASSES = ("landbird", "waterbird")
PLACES = ("land", "water")
SPLITS = {"train": "0", "val": "1", "test": "2"}
_COLUMNS = ("img_filename", "y", "split", "place")


class Waterbirds(ListedImages):
    """The images of a split; each has its group and the share of this group in the training split.

    Args:
        root: The folder with ``metadata.csv``.
        name: The data set's name, for messages.
        split: One of `SPLITS`.

    Raises:
        DataError: If the table is missing or has other columns or values.
    """

    def __init__(self, root: Path, name: str, split: str) -> None:
        rows = _read(root / "metadata.csv", name)
        trained = Counter(_group(row) for row in rows if row["split"] == SPLITS["train"])
        kept = [row for row in rows if row["split"] == SPLITS[split]]
        super().__init__(root, name, [row["img_filename"] for row in kept], [int(row["y"]) for row in kept], CLASSES)
        self.slices = [
            {"group": _group(row), "group_training_share": trained[_group(row)] / max(1, trained.total())}
            for row in kept
        ]


def _group(row: dict[str, str]) -> str:
    return f"{CLASSES[int(row['y'])]} on {PLACES[int(row['place'])]}"


def _read(path: Path, name: str) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise DataError(f"data set {name!r}: {path} has no column {missing[0]}; expected {', '.join(_COLUMNS)}")
            rows = [dict(row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"data set {name!r}: {path} cannot be read ({error}); it is in waterbird_complete95_forest2water2.tar.gz"
        ) from error
    for line, row in enumerate(rows, start=2):
        if row["y"] not in ("0", "1") or row["place"] not in ("0", "1") or row["split"] not in SPLITS.values():
            raise DataError(f"data set {name!r}: {path}, line {line}: y and place are 0 or 1, split is 0, 1 or 2")
    return rows
