"""Reads published values from CLIP benchmark's tables and records: a row for each model on each data set, fractions."""

from __future__ import annotations

from testbed.claims.document import Document
from testbed.claims.reading import Reading
from testbed.extensions.clip_benchmark import clip_benchmark_files as files

NAME = files.FORM
OTHERS = False
FURTHER = "further evaluations of a cell"


def matches(document: Document) -> bool:
    """Recognizes the file by its columns, or by the keys of its first record."""
    keys = document.header or list(document.records[0] if document.records else ())
    return set(files.KEYS) <= set(keys) and ("metrics" in keys or bool(document.header))


def read(document: Document, reading: Reading) -> None:
    """Yields a cell for each row or record; further evaluations of a cell are not claims about it."""
    for record in files.records_of(document.path, document.lines(), document.records, reading.leave):
        if label := record.fields.get(files.LABEL, "").strip():
            reading.leave(FURTHER, label)
            continue
        model, setting = files.cell_of(record)
        for column, spec in files.metric_columns(record):
            reading.claim(model, setting, spec, record.fields[column], record.place, column)
