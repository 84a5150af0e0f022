"""Readers of files of published values, and what they report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from testbed.claims.document import Document
from testbed.claims.reading import Reading


class Form(Protocol):
    """A kind of file of published values.

    Attributes:
        NAME: For people.
        OTHERS: Whether its models have names of the publisher's own, which need not be testbed's.
    """

    NAME: str
    OTHERS: bool

    def matches(self, document: Document) -> bool:
        """Returns whether a file is of this form, by its columns or keys."""

    def read(self, document: Document, reading: Reading) -> None:
        """Reads all of the file.

        Raises:
            StoreError: If it has a column that the form does not know, or a value out of range.
        """


@dataclass
class ImportReport:
    """The outcome of an import.

    Attributes:
        form: The kind of file that was recognised.
        values: Numbers in it.
        cells: How many models on settings they are of.
        new: Numbers that were not in the store yet.
        notes: What is left out.
    """

    form: str
    values: int = 0
    cells: int = 0
    new: int = 0
    notes: list[str] = field(default_factory=list)
