"""Files of published values become claims in the store."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.db.store import Store
from testbed.entities import Claim, ClaimSource
from testbed.errors import StoreError
from testbed.exchange.imported import repeated
from testbed.published.document import Document, read_document
from testbed.published.forms import ALL, Form, robustbench_corruptions
from testbed.published.mapped import Map
from testbed.published.reading import Reading
from testbed.published.sources import SourceFile, usual_place

OTHERS = "files of another form"


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
    return add(store, [read_document(path, file.path)], file.source, about=about)


def add(
    store: Store,
    documents: Sequence[Document],
    name: str,
    columns: Map | None = None,
    about: Mapping[str, str] | None = None,
    own_names: bool = False,
    settings: Collection[str] | None = (),
) -> Added:
    """Adds the claims of a file, or of the files of a folder, which are of one form.

    Args:
        store: Open to write.
        documents: The files.
        name: The source's name.
        columns: Which columns to take; None recognises files by their columns.
        about: Further fields of `ClaimSource`.
        own_names: Whether models may have any names.
        settings: As for `Reading`.

    Raises:
        StoreError: If a file is of no form that is known, has a column that is not, or a value out of range; nothing
            is stored then.
    """
    form, documents, others = (columns, documents, 0) if columns is not None else _of_one_form(documents)
    left_out = Counter({OTHERS: others} if others else {})
    claims: list[Claim] = []
    rows = 0
    for document in documents:
        reading = Reading(document, own_names or form.OTHERS, settings if own_names else ())
        form.read(document, reading)
        left_out.update(reading.left_out)
        rows += reading.rows
        before = f"{document.name}, " if len(documents) > 1 else ""
        claims += [replace(each, row=f"{before}{each.row}") for each in reading.claims] if before else reading.claims
    source = ClaimSource(
        name,
        documents[0].path if about else documents[0].name if len(documents) == 1 else name,
        documents[0].sha256 if len(documents) == 1 else digest_of(documents),
        form.NAME,
        rows=rows,
        left_out=dict(sorted(left_out.items())),
        place=usual_place(name),
        **(about or {}),
    )
    return Added(source, claims, store.claims.add(source, claims))


def _of_one_form(documents: Sequence[Document]) -> tuple[Form, Sequence[Document], int]:
    """The form that files are of, these files, and how many of the others in their folder are of no form.

    Raises:
        StoreError: If none is of a form that is known, or they are of several.
    """
    form = next((found for each in documents if (found := _form(each)) is not None), None) or form_of(documents[0])
    known = [each for each in documents if _form(each) is not None]
    for each in known:
        if (other := form_of(each)) is not form:
            raise StoreError(f"{known[0].path} is {form.NAME}, and {each.path} {other.NAME}; add them apart")
    return form, known, len(documents) - len(known)


def digest_of(documents: Sequence[Document]) -> str:
    """One digest for several files."""
    return hashlib.sha256("".join(each.sha256 for each in documents).encode()).hexdigest()


def read_folder(folder: Path) -> list[Document]:
    """The JSON files of a folder: CLIP benchmark's, or CLIP-CC-Bench's, which are in folders of decoders.

    Raises:
        StoreError: If there is none.
    """
    patterns = ("*.json", "*/*.json", "*/per_model/*.json")
    documents = [read_document(path) for path in sorted({each for one in patterns for each in folder.glob(one)})]
    if not documents:
        raise StoreError(f"the folder {folder} has no JSON files; CLIP benchmark writes one for each result")
    return documents


def form_of(document: Document) -> Form:
    """The form that a file is of.

    Raises:
        StoreError: If none is.
    """
    found = _form(document)
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


def _form(document: Document) -> Form | None:
    return next((each for each in ALL if each.matches(document)), None)
