"""Reads ImageNet-testbed's table: a row for each model, a column for each setting, top-1 in percent."""

from __future__ import annotations

from testbed.claims.document import Document
from testbed.claims.names import eval_setting
from testbed.claims.reading import PERCENT, Reading
from testbed.errors import StoreError
from testbed.stored_results.imagenet_testbed_table import COLUMN_METRICS, split_column

NAME = "ImageNet-testbed's table"
OTHERS = False
NAMED = 3  # columns in a message
LARGEST = 0.01  # value of a table that seems to be in fractions


def matches(document: Document) -> bool:
    """Recognizes the file by its first column."""
    return len(document.header) > 1 and document.header[0] == "model"


def read(document: Document, reading: Reading) -> None:
    """Yields the columns as settings."""
    places = {text: split_column(text) for text in document.header[1:]}
    unknown = [each for each, (name, _) in places.items() if not eval_setting(name)[1] and not reading.takes(name)]
    if unknown:
        more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        raise StoreError(
            f"{document.path}: each column after 'model' is an eval setting with top-1 in percent; neither the registry"
            f" nor the store has {', '.join(map(repr, unknown[:NAMED]))}{more}; remove other columns (testbed"
            " list"
            " settings lists the settings), select columns with --map, or accept all as new settings with"
            " testbed import --override"
        )
    for row, fields in document.lines():
        for column, (setting, metric) in places.items():
            reading.claim(fields["model"], setting, COLUMN_METRICS[metric], fields[column], row, column, PERCENT)
    if reading.claims and max(claim.value for claim in reading.claims) <= LARGEST:
        raise StoreError(f"{document.path}: no value exceeds 1, so these seem to be fractions; give a table in percent")
