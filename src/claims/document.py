"""A file of published values as text: the columns and rows of a table, or the records of a JSON file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.claims.tables import table_in
from testbed.errors import StoreError, shortened
from testbed.paths import read_regular

_NAMED = 5  # columns in a message


@dataclass(frozen=True)
class Document:
    """A file, its numbers as they are printed.

    Attributes:
        path: In its repository, or on this machine.
        sha256: Of the file.
        header: The columns of a table.
        rows: Its rows.
        records: The records of a JSON file, in which numbers are text.
    """

    path: str
    sha256: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    records: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The file's name."""
        return PurePosixPath(self.path).name

    @property
    def stem(self) -> str:
        """The file's name without its suffix."""
        return PurePosixPath(self.path).stem

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of the folders that it lies in, the last one first."""
        return tuple(reversed(PurePosixPath(self.path).parts[:-1]))

    def lines(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Each row of the table: its number for people, and its fields."""
        for number, row in enumerate(self.rows, start=2):
            yield f"row {number}", dict(zip(self.header, row, strict=True))

    def require_columns(self, known: Collection[str], given: Collection[str] | None = None) -> None:
        """Checks that all columns or keys are known; raises StoreError if one is not."""
        unknown = [each for each in (self.header if given is None else given) if each not in known]
        if unknown:
            more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
            named = ", ".join(shortened(each) for each in unknown[:_NAMED])
            raise StoreError(
                f"{self.path}: what the columns {named}{more} hold is not known; remove them, or say with --map which"
                " columns to take"
            )

    def require_texts(self, record: Mapping[str, Any], keys: Iterable[str], row: str) -> None:
        """Checks that a record has a text or a number under each of these keys; raises StoreError if it has not."""
        for key in keys:
            if not isinstance(record.get(key), str):
                raise StoreError(f"{self.path}, {row}: {key} should be a text or a number")


def read_document(file: Path, path: str | None = None) -> Document:
    """A file: a table if its name ends in .csv or .tsv, else JSON, with a record in each line for .jsonl.

    Args:
        file: Where it is.
        path: Its path in its repository; None for one of your own.

    Raises:
        StoreError: If it cannot be read.
    """
    try:
        content = read_regular(file)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{file} cannot be read: {error}") from error
    place, sha256 = path or file.absolute().as_posix(), hashlib.sha256(content).hexdigest()
    suffix = file.suffix.lower()
    if suffix in (".csv", ".tsv"):
        header, rows = table_in(text, file, "\t" if suffix == ".tsv" else ",")
        return Document(place, sha256, header, rows)
    if suffix in (".json", ".jsonl"):
        return Document(place, sha256, records=_records(file, text, suffix == ".jsonl"))
    raise StoreError(f"{file} has no form that is known: a .csv, .tsv, .json or .jsonl was expected")


def _records(file: Path, text: str, in_lines: bool) -> list[Mapping[str, Any]]:
    parts = [line for line in text.splitlines() if line.strip()] if in_lines else [text]
    try:
        # Numbers stay as they are printed.
        read = [json.loads(part, parse_float=str, parse_int=str, parse_constant=str) for part in parts]
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{file} cannot be read as JSON: {error}") from error
    found = read[0] if len(read) == 1 and isinstance(read[0], list) else read
    if not found or not all(isinstance(each, dict) for each in found):
        raise StoreError(f"{file} should hold JSON objects")
    return list(found)
