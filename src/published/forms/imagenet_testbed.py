"""ImageNet-testbed's table: a row for each model, a column for each setting, top-1 in percent."""

from __future__ import annotations

from testbed.compat.importing import COLUMN_METRICS, split_column
from testbed.published.document import Document
from testbed.published.reading import PERCENT, Reading, eval_setting

NAME = "ImageNet-testbed's table"
OTHERS = False


def matches(document: Document) -> bool:
    """By its first column, and one of ImageNet's validation set."""
    return bool(document.header) and document.header[0] == "model" and "val" in document.header


def read(document: Document, reading: Reading) -> None:
    """The columns as settings."""
    places = {each: split_column(each) for each in document.header[1:]}
    document.require_columns(("model", *(each for each, (setting, _) in places.items() if eval_setting(setting)[1])))
    for row, fields in document.lines():
        for column, (setting, metric) in places.items():
            reading.claim(fields["model"], setting, COLUMN_METRICS[metric], fields[column], row, column, PERCENT)
