"""CLIP benchmark's list of the types of data sets, which has no values."""

from __future__ import annotations

from testbed.claims.document import Document
from testbed.claims.reading import Reading

NAME = "CLIP benchmark's types"
OTHERS = False


def matches(document: Document) -> bool:
    """Recognizes the file by its columns."""
    return list(document.header) == ["dataset", "type"]


def read(document: Document, reading: Reading) -> None:
    """Counts the types."""
    for _, fields in document.lines():
        reading.leave("type", fields["type"])
