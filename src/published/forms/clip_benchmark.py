"""CLIP benchmark's table, and records in its form: a row for each model on each data set, fractions."""

from __future__ import annotations

from testbed.compat.clip_benchmark import clip_benchmark_files as files
from testbed.published.document import Document
from testbed.published.reading import Reading

NAME = files.FORM
OTHERS = False


def matches(document: Document) -> bool:
    """By its columns."""
    return set(files.KEYS) <= set(document.header)


def read(document: Document, reading: Reading) -> None:
    """The cells as `testbed import` takes them."""
    for row, fields in document.lines():
        record = files.Record(fields, document.path, row)
        model, setting = files.cell_of(record)
        for column, spec in files.metric_columns(record):
            reading.claim(model, setting, spec, fields[column], row, column)
