"""Adds files of published values to the store as claims."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from testbed.claims.document import Document, read_document
from testbed.claims.every_eval_ever import RECORD
from testbed.claims.form import Form
from testbed.claims.names import evaluated_names
from testbed.claims.reading import Reading
from testbed.claims.tables import repeated
from testbed.db.store import Store
from testbed.entities import Claim, ClaimSource
from testbed.errors import StoreError
from testbed.extensions.published import own_results
from testbed.extensions.published.forms import forms, robustbench_corruptions
from testbed.extensions.published.mapped import Map
from testbed.extensions.published.sources import SourceFile, usual_place

OTHERS = "files of another format"


@dataclass(frozen=True)
class FileClaims:
    """The contents of a file.

    Attributes:
        source: The file.
        claims: Its claims.
        new: Number of newly stored ones.
    """

    source: ClaimSource
    claims: list[Claim]
    new: int

    @property
    def unmapped(self) -> Counter[str]:
        """Reason → number of claims without a model or setting of testbed."""
        return Counter(claim.why for claim in self.claims if claim.why is not None)


def add_known(store: Store, file: SourceFile, path: Path) -> FileClaims:
    """Adds a file of the manifest.

    Raises:
        StoreError: If it cannot be read, or has another format than in the manifest.
    """
    about = {"repository": file.repository, "revision": file.commit, "licence": file.licence, "date": file.date}
    return add(store, [read_document(path, file.path)], file.source, about=about)


def add(
    store: Store,
    documents: Iterable[Document],
    name: str,
    columns: Map | None = None,
    about: Mapping[str, str] | None = None,
    own_names: bool = False,
    settings: Collection[str] | None = (),
) -> FileClaims:
    """Adds the claims of a file, or of the files of a folder, which have the same format.

    Args:
        store: Store open for writing.
        documents: The files.
        name: The source's name.
        columns: The columns to use; None recognises files by their columns.
        about: Further fields of `ClaimSource`.
        own_names: Whether to accept any names of models.
        settings: As for `Reading`.

    Raises:
        StoreError: If a file has an unknown format or column, or a value out of range; nothing is stored then.
    """
    left_out: Counter[str] = Counter()
    read: list[tuple[_File, list[Claim]]] = []
    rows = 0
    models, evaluated = evaluated_names(store)
    known = {**{model: model for model in models}, **{each.reference: each.name for each in store.names.own()}}
    for document, form in _of_one_form(documents, columns):
        if form is None:
            left_out[OTHERS] += 1
            continue
        reading = Reading(document, own_names or form.OTHERS, settings if own_names else evaluated, known)
        form.read(document, reading)
        left_out.update(reading.left_out)
        rows += reading.rows
        read.append((_File(document.path, document.name, document.sha256, form.NAME), reading.claims))
    first, several = read[0][0], len(read) > 1
    claims = [
        replace(claim, row=f"{file.name}, {claim.row}") if several else claim for file, of in read for claim in of
    ]
    source = ClaimSource(
        name,
        first.path if about else name if several else first.name,
        hashlib.sha256("".join(file.sha256 for file, _ in read).encode()).hexdigest() if several else first.sha256,
        first.form,
        rows=rows,
        left_out=dict(sorted(left_out.items())),
        place=usual_place(name),
        **(about or {}),
    )
    return FileClaims(source, claims, store.claims.add(source, claims))


class _File(NamedTuple):
    """The data kept of a file; a folder may have thousands of large ones."""

    path: str
    name: str
    sha256: str
    form: str


def _of_one_form(documents: Iterable[Document], columns: Map | None) -> Iterator[tuple[Document, Form | Map | None]]:
    """Each file with its format; None for unknown formats among known ones.

    Raises:
        StoreError: If none has a known format, or they have several.
    """
    known: tuple[str, Form | Map] | None = None
    unknown: Document | None = None
    for document in documents:
        form = columns or _form(document)
        if form is None:
            unknown = unknown or document
        elif known is None:
            known = document.path, columns or form_of(document)
        elif form is not known[1]:
            raise StoreError(f"{known[0]} is {known[1].NAME}, and {document.path} {form.NAME}; add them separately")
        yield document, form
    if known is None and unknown is not None:
        form_of(unknown)


def read_folder(folder: Path) -> Iterator[Document]:
    """Yields the JSON files of a folder.

    They are CLIP benchmark's, CLIP-CC-Bench's in folders of decoders, MTEB's in folders of models and revisions, or
    Every Eval Ever's in folders of collections, developers and models. For the output of testbed publish, only the
    manifest is read.

    Raises:
        StoreError: If there are none.
    """
    published = folder / own_results.MANIFEST
    if published.is_file() and own_results.matches(manifest := read_document(published)):
        return iter([manifest])
    patterns = ["*.json", "*/*.json", "*/per_model/*.json", "results/*/*/*.json"]
    patterns += [f"*/*/*/{RECORD}", f"data/*/*/*/{RECORD}"]
    patterns += ["*/*/*.json"] if folder.absolute().name == "results" else []
    paths = sorted({path for one in patterns for path in folder.glob(one)})
    if not paths:
        raise StoreError(f"the folder {folder} has no JSON files; CLIP benchmark writes one for each result")
    return map(read_document, paths)


def form_of(document: Document) -> Form:
    """Determines the format of a file.

    Raises:
        StoreError: If it is unknown.
    """
    found = _form(document)
    if found is None:
        given = document.header or list(document.records[0] if document.records else ())
        raise StoreError(
            f"{document.path} has an unknown format: it begins with"
            f" {', '.join(given[:6]) or 'nothing'};"
            f" the formats are {', '.join(form.NAME for form in forms())};"
            " --map model=COLUMN setting=COLUMN|NAME value=COLUMN reads any other table"
        )
    twice = repeated(document.header)
    if twice is not None and found is not robustbench_corruptions:
        raise StoreError(f"{document.path} has the column {twice!r} twice")
    return found


def _form(document: Document) -> Form | None:
    return next((form for form in forms() if form.matches(document)), None)
