"""Documents: what pages load, JSON values found by paths such as ``index`` or ``samples/4/chunk/0``.

A page loads each as a script, since a page of the file system may not read files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol


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
    """All documents.

    Args:
        parts: Asked in turn.
    """

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


def script(path: str, value: Any) -> bytes:
    """A document as a script, which nothing in a name can end."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    return f"T.give({json.dumps(path)}, {text});\n".encode("utf-8", "backslashreplace")
