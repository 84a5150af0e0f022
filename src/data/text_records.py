"""Files that give a text for each id: captions, references, recorded predictions.

- An object: ``{"video_001": "A caption …"}``.
- A list of records, or records one after the other (one in each line, say): ``{"id": "video_001", "summary": "…"}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from testbed.data.annotations import checked_text, read_text
from testbed.errors import DataError

SUFFIXES = (".json", ".jsonl")
MAX_BYTES = 1 << 30  # of a file; it is read whole
MAX_CHARACTERS = 1_000_000  # of one text

ID = "id"


def read_text_records(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """What such a file gives for each id, in the order of the file; whether it is a text is not checked.

    Args:
        path: The file, UTF-8.
        keys: Under which a record may have its text; it has one of them.

    Raises:
        DataError: If the file cannot be read, is of another form or holds nothing, or an id or a key occurs twice.
    """
    values = list(_values(path))
    if len(values) == 1 and isinstance(values[0], dict) and not _is_record(values[0], keys):
        entries = iter([(_id(name, f"{path}, {name!r}"), value) for name, value in values[0].items()])
    elif len(values) == 1 and isinstance(values[0], list):
        entries = _of_records(values[0], keys, path)
    else:
        entries = _of_records(values, keys, path)
    found: dict[str, Any] = {}
    for name, value in entries:
        if name in found:
            raise DataError(f"{path} has the id {name!r} twice; which one counts? Leave out the other")
        found[name] = value
    if not found:
        raise DataError(f"{path} holds nothing; {_expected(keys)}")
    return found


def fault_of(value: Any) -> str | None:
    """Why a value is no text that can be stored and embedded; None for one that is."""
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
    """The JSON values of a file, one after the other."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if size > MAX_BYTES:
        raise DataError(f"{path} has {size:,} bytes; at most {MAX_BYTES:,} are read")
    text = read_text(path)
    decoder = json.JSONDecoder(object_pairs_hook=_object)
    position = _next(text, 0)
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
        except _KeyTwiceError as error:
            raise DataError(f"{path}: one object has the key {error.args[0]!r} twice; leave out one") from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} is no JSON: {error}; it may have been cut off when it was copied") from error
        yield value
        position = _next(text, end)


def _next(text: str, position: int) -> int:
    """Where the next value begins."""
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


class _KeyTwiceError(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        raise _KeyTwiceError(next(name for name in made if names.count(name) > 1))
    return made


def _is_record(value: dict[str, Any], keys: Sequence[str]) -> bool:
    return ID in value and any(key in value for key in keys)


def _of_records(values: Sequence[Any], keys: Sequence[str], path: Path) -> Iterator[tuple[str, Any]]:
    for number, record in enumerate(values, start=1):
        where = f"{path}, record {number:,}"
        if not isinstance(record, dict) or ID not in record:
            found = f"an object with {', '.join(record) or 'nothing'}" if isinstance(record, dict) else _kind(record)
            raise DataError(f"{where} is {found[:200]}; {_expected(keys)}")
        there = [key for key in keys if key in record]
        if len(there) != 1:
            found = " and ".join(there) or f"only {', '.join(record)}"
            raise DataError(f"{where} has {found[:200]}; one of {', '.join(keys)} is expected beside {ID}")
        yield _id(record[ID], where), record[there[0]]


def _id(value: Any, where: str) -> str:
    """An id; a whole number is one in decimal."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: the id {value!r} is no id; a text that is not blank is expected")
    return checked_text(value, f"{where}: the id")


def _expected(keys: Sequence[str]) -> str:
    return (
        f'expected is {{"ID": "TEXT", …}}, or a list (or one in each line) of objects with {ID} and one of'
        f" {', '.join(keys)}"
    )


def _kind(value: Any) -> str:
    """A JSON value, for messages."""
    if value is None or isinstance(value, bool | int | float):
        return f"the value {json.dumps(value)[:60]}"
    kinds: dict[type, str] = {str: "a text", list: "a list", dict: "an object"}
    return kinds[type(value)]
