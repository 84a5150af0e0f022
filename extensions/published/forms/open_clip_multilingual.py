"""open_clip's table of retrieval in many languages: columns ``SET image_retrieval_recall@1 LANGUAGE``, fractions."""

from __future__ import annotations

import re

from testbed.claims.document import Document
from testbed.claims.reading import Reading
from testbed.eval_settings.benchmark_families.clip_benchmark_names import RETRIEVAL, ClipBenchmarkFields, setting_of
from testbed.metrics.scorers.retrieval import recall

NAME = "open_clip's multilingual table"
OTHERS = False
KEYS = ("model", "version")
COLUMN = re.compile(r"(\S+) (image|text)_retrieval_recall@(\d+) (\S+)")
MEAN = "avg"


def matches(document: Document) -> bool:
    """Recognizes the file by its columns."""
    return tuple(document.header[:2]) == KEYS


def read(document: Document, reading: Reading) -> None:
    """Yields the models as ``MODEL,VERSION``."""
    found = {name: parts for name in document.header if (parts := COLUMN.fullmatch(name)) is not None}
    document.require_columns((*KEYS, MEAN, *found))
    left_out = [MEAN, *(column for column, parts in found.items() if parts[4] == MEAN)]
    places = {
        column: (
            setting_of(ClipBenchmarkFields(parts[1], RETRIEVAL, parts[4])),
            recall(f"{parts[2]}_retrieval", int(parts[3])),
        )
        for column, parts in found.items()
        if parts[4] != MEAN
    }
    for row, fields in document.lines():
        model = f"{fields['model']},{fields['version']}"
        for column, (setting, spec) in places.items():
            reading.claim(model, setting, spec, fields[column], row, column)
        for column in left_out:
            reading.leave(column, fields.get(column))
