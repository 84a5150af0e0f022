"""Documents: what pages load, JSON values found by paths such as ``index`` or ``samples/4/chunk/0``.

A page of the file system loads each as a script, since it may not read files. A page that is served fetches them as
JSON, since any page in the same browser can run a script from anywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from testbed.jsontext import finite

Item = TypeVar("Item")


class Part(Protocol):
    """Some of the documents."""

    def paths(self) -> Iterator[str]:
        """The path of every document that an export has."""

    def document(self, path: str) -> Any:
        """A document, as a JSON value.

        Raises:
            KeyError: If there is none of this path.
        """


class Explorer:
    """All documents."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)

    def paths(self) -> Iterator[str]:
        """The path of every document that an export has."""
        for part in self.parts:
            yield from part.paths()

    def document(self, path: str) -> Any:
        """A document, as a JSON value.

        Raises:
            KeyError: If there is none of this path.
        """
        for part in self.parts:
            try:
                return part.document(path)
            except KeyError:
                continue
        raise KeyError(path)


def as_json(value: Any) -> bytes:
    """A document as JSON; numbers that are none, which only damaged rows have, as null."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def script(path: str, value: Any) -> bytes:
    """A document as a script, which nothing in a name can end."""
    return b"T.give(%s, %s);\n" % (json.dumps(path).encode(), as_json(value).replace(b"</", b"<\\/"))


def item_at(items: Sequence[Item], text: str) -> Item:
    """The item that a number in a path says.

    Raises:
        KeyError: If there is none.
    """
    place = number_in(text)
    if place >= len(items):
        raise KeyError(text)
    return items[place]


def number_in(text: str) -> int:
    """A number in a path.

    Raises:
        KeyError: If it is none, or larger than any that a store has.
    """
    if not re.fullmatch("[0-9]{1,9}", text):
        raise KeyError(text)
    return int(text)
