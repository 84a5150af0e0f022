"""Files with a text for each id: captions, references, recorded predictions.

- An object: ``{"video_001": "A caption …"}``.
- A list of records, or consecutive records (for example one per line): ``{"id": "video_001", "summary": "…"}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from testbed.data.formats.annotations import checked_text, read_text
from testbed.errors import DataError

SUFFIXES = (".json", ".jsonl")
MAX_BYTES = 1 << 30  # of a file, which is read into memory
MAX_CHARACTERS = 1_000_000  # of one text

ID = "id"


def read_text_records(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """The value of each id, in the order of the file; does not check that it is a text.

    Args:
        path: The file, UTF-8.
        keys: The possible keys of the text in a record; a record has one of them.

    Raises:
        DataError: If the file cannot be read, is invalid or empty, or an id or a key occurs twice.
    """
    values = list(_values(path))
    if len(values) == 1 and isinstance(values[0], dict) and not _is_record(values[0], keys):
        entries = iter([(_id(name, f"{path}, {name!r}"), value) for name, value in values[0].items()])
    elif len(values) == 1 and isinstance(values[0], list):
        entries = _of_records(values[0], keys, path)
    else:
        entries = _of_records(values, keys, path)
    by_id: dict[str, Any] = {}
    for name, value in entries:
        if name in by_id:
            raise DataError(f"{path} has the id {name!r} twice; remove one of them")
        by_id[name] = value
    if not by_id:
        raise DataError(f"{path} is empty; {_expected(keys)}")
    return by_id


def fault_of(value: Any) -> str | None:
    """Explains why a value is not a text that can be stored and embedded; None if it is."""
    if not isinstance(value, str):
        return f"a text was expected, {_kind(value)} was found"
    if len(value) > MAX_CHARACTERS:
        return f"the text has {len(value):,} characters; at most {MAX_CHARACTERS:,} are taken"
    try:
        checked_text(value, "the text")
    except DataError as error:
        return str(error)[:200]
    return None


def _values(path: Path) -> Iterator[Any]:
    """The JSON values of a file, in order."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if size > MAX_BYTES:
        raise DataError(f"{path} has {size:,} bytes; the maximum is {MAX_BYTES:,}")
    text = read_text(path)
    decoder = json.JSONDecoder(object_pairs_hook=_object)
    position = _next(text, 0)
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
        except _KeyTwiceError as error:
            raise DataError(f"{path}: an object has the key {error.args[0]!r} twice; remove one of them") from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} is not valid JSON: {error}; the copy may be incomplete") from error
        yield value
        position = _next(text, end)


def _next(text: str, position: int) -> int:
    """The position of the next value."""
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


class _KeyTwiceError(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _KeyTwiceError(name)
            seen.add(name)
    return made


def _is_record(value: dict[str, Any], keys: Sequence[str]) -> bool:
    return ID in value and any(key in value for key in keys)


def _of_records(values: Sequence[Any], keys: Sequence[str], path: Path) -> Iterator[tuple[str, Any]]:
    for number, record in enumerate(values, start=1):
        where = f"{path}, record {number:,}"
        if not isinstance(record, dict) or ID not in record:
            content = f"an object with {', '.join(record) or 'nothing'}" if isinstance(record, dict) else _kind(record)
            raise DataError(f"{where} is {content[:200]}; {_expected(keys)}")
        there = [key for key in keys if key in record]
        if len(there) != 1:
            content = " and ".join(there) or f"only {', '.join(record)}"
            raise DataError(f"{where} has {content[:200]}; expected one of {', '.join(keys)} besides {ID}")
        yield _id(record[ID], where), record[there[0]]


def _id(value: Any, where: str) -> str:
    """An id; integers are converted to text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: the id {value!r} is invalid; expected a text that is not blank")
    return checked_text(value, f"{where}: the id")


def _expected(keys: Sequence[str]) -> str:
    return (
        f'expected {{"ID": "TEXT", …}}, or a list (or one per line) of objects with {ID} and one of {", ".join(keys)}'
    )


def _kind(value: Any) -> str:
    """A JSON value, for messages."""
    if value is None or isinstance(value, bool | int | float):
        return f"the value {json.dumps(value)[:60]}"
    kinds: dict[type, str] = {str: "a text", list: "a list", dict: "an object"}
    return kinds[type(value)]
