"""Documents that pages load: JSON values with paths such as ``index`` or ``samples/4/chunk/0``.

A local page loads each as a script, since it may not read files. A served page fetches them as JSON, since any page
in the same browser can run a script from anywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from testbed.jsontext import finite

Item = TypeVar("Item")


class DocumentPart(Protocol):
    """Some of the documents."""

    def paths(self) -> Iterator[str]:
        """Returns the path of every document that an export has."""

    def document(self, path: str) -> Any:
        """Returns a document as a JSON value.

        Raises:
            KeyError: If there is no document at this path.
        """


class Explorer:
    """All documents."""

    def __init__(self, parts: Sequence[DocumentPart]) -> None:
        self.parts = tuple(parts)

    def paths(self) -> Iterator[str]:
        """Returns the path of every document that an export has."""
        for part in self.parts:
            yield from part.paths()

    def document(self, path: str) -> Any:
        """Returns a document as a JSON value.

        Raises:
            KeyError: If there is no document at this path.
        """
        for part in self.parts:
            try:
                return part.document(path)
            except KeyError:
                continue
        raise KeyError(path)


def as_json(value: Any) -> bytes:
    """Encodes a document as JSON; non-finite numbers, which only damaged rows have, become null."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def script(path: str, value: Any) -> bytes:
    """Encodes a document as a script, which no name can terminate."""
    return b"T.give(%s, %s);\n" % (json.dumps(path).encode(), as_json(value).replace(b"</", b"<\\/"))


def item_at(items: Sequence[Item], text: str) -> Item:
    """Returns the item for a number in a path.

    Raises:
        KeyError: If there is no such item.
    """
    place = number_in(text)
    if place >= len(items):
        raise KeyError(text)
    return items[place]


def number_in(text: str) -> int:
    """Parses a number in a path.

    Raises:
        KeyError: If it is invalid, or larger than any in a store.
    """
    if not re.fullmatch("[0-9]{1,9}", text):
        raise KeyError(text)
    return int(text)
