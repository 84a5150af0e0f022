"""Files of published values become claims in the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.db.store import Store
from testbed.entities import Claim, ClaimSource
from testbed.errors import StoreError
from testbed.published.document import Document, read_document, repeated
from testbed.published.forms import ALL, Form, robustbench_corruptions
from testbed.published.mapped import Map
from testbed.published.reading import Reading
from testbed.published.sources import SourceFile


@dataclass(frozen=True)
class Added:
    """What was read of a file.

    Attributes:
        source: The file.
        claims: The values that are claims.
        new: How many of them were stored now.
    """

    source: ClaimSource
    claims: list[Claim]
    new: int

    @property
    def unmapped(self) -> Counter[str]:
        """Why → how many claims name no model or setting of testbed."""
        return Counter(each.why for each in self.claims if each.why is not None)


def add_known(store: Store, file: SourceFile, path: Path) -> Added:
    """Adds a file of the manifest.

    Raises:
        StoreError: If it cannot be read, or is of another form than the manifest says.
    """
    about = {"repository": file.repository, "revision": file.commit, "licence": file.licence, "date": file.date}
    return add(store, read_document(path, file.path), file.source, about=about)


def add(
    store: Store, document: Document, name: str, columns: Map | None = None, about: Mapping[str, str] | None = None
) -> Added:
    """Adds the claims of a file.

    Args:
        store: Open to write.
        document: The file.
        name: The source's name.
        columns: Which columns to take; None recognises the file by its columns.
        about: Further fields of `ClaimSource`.

    Raises:
        StoreError: If the file is of no form that is known, has a column that is not, or a value out of range;
            nothing is stored then.
    """
    if columns is None:
        form = form_of(document)
        reading, kind = Reading(document, form.OTHERS), form.NAME
        form.read(document, reading)
    else:
        reading, kind = Reading(document, own_names=False), columns.form
        columns.read(document, reading)
    source = ClaimSource(
        name,
        document.path if about else document.name,
        document.sha256,
        kind,
        rows=reading.rows,
        left_out=dict(sorted(reading.left_out.items())),
        **(about or {}),
    )
    return Added(source, reading.claims, store.claims.add(source, reading.claims))


def form_of(document: Document) -> Form:
    """The form that a file is of.

    Raises:
        StoreError: If none is.
    """
    found = next((each for each in ALL if each.matches(document)), None)
    if found is None:
        given = document.header or list(document.records[0] if document.records else ())
        raise StoreError(
            f"{document.path} is of no form that is known: it begins with {', '.join(given[:6]) or 'nothing'};"
            f" the forms are {', '.join(each.NAME for each in ALL)};"
            " --map model=COLUMN setting=COLUMN|NAME value=COLUMN reads any other table"
        )
    twice = repeated(document.header)
    if twice is not None and found is not robustbench_corruptions:
        raise StoreError(f"{document.path} has the column {twice!r} twice")
    return found
