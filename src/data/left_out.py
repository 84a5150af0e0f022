"""Files and entries left out while the samples of a data set are listed: counted by reason, named, never ignored."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = 5  # names for each reason

# Files that systems and programs put into folders beside the user's: names that begin with a dot
# (".DS_Store", "._photo.jpg", ".ipynb_checkpoints"), and these.
_OF_SYSTEMS = frozenset({"__macosx", "@eadir", "thumbs.db", "desktop.ini", "$recycle.bin", "lost+found"})

HIDDEN = "hidden or system files left out"
OTHER_EXTENSION = "files with other extensions left out"
OUTSIDE = "files outside of the class folders left out"
NO_FILE = "devices, pipes and sockets left out"
NO_SAMPLE = "records with neither an image nor a label left out"
NO_PICTURE = "rows without a picture left out"
NO_IMAGES = "classes without images"
SAME_CONTENT = "samples with the same content as an earlier one"
NOT_EVALUATED = "classes that the evaluated split lacks"


@dataclass(frozen=True)
class LeftOut:
    """Entries that are left out for one reason.

    Attributes:
        reason: The reason.
        count: Their number.
        names: The first few, printable.
        expected: True if it does not matter: ``--strict`` accepts it.
    """

    reason: str
    count: int
    names: tuple[str, ...]
    expected: bool = False

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.names) else ""
        return f"{self.reason}: {self.count:,} ({', '.join(self.names)}{more})"

    def as_object(self) -> dict[str, Any]:
        """Returns a value for JSON."""
        return {"reason": self.reason, "count": self.count, "names": list(self.names), "expected": self.expected}

    @classmethod
    def from_object(cls, stored: dict[str, Any]) -> LeftOut:
        """The result of `as_object` read again."""
        return cls(stored["reason"], stored["count"], tuple(stored["names"]), stored["expected"])


class LeftOutLog:
    """Collects what is left out while a data set is listed."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, bool], int] = {}
        self._names: dict[tuple[str, bool], list[str]] = {}

    def out(self, name: str, reason: str, expected: bool = False) -> None:
        """Notes that something is left out."""
        key = (reason, expected or reason == HIDDEN)
        self._counts[key] = self._counts.get(key, 0) + 1
        names = self._names.setdefault(key, [])
        if len(names) < SHOWN or name < names[-1]:  # the first by name, whatever the order of the file system
            names.append(name)
            names.sort()
            del names[SHOWN:]

    def found(self) -> tuple[LeftOut, ...]:
        """Returns what was left out, sorted by reason."""
        return tuple(
            LeftOut(reason, count, tuple(map(printable, self._names[reason, expected])), expected)
            for (reason, expected), count in sorted(self._counts.items())
        )


def is_hidden(name: str) -> bool:
    """Checks whether a file or folder of this name is not the user's: hidden, or made by a system or program."""
    return name.startswith(".") or name.lower() in _OF_SYSTEMS


def printable(name: str) -> str:
    """Returns a name that can be printed and stored: invalid text and terminal control characters are escaped."""
    text = name.encode("utf-8", "backslashreplace").decode()
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def composed(name: str) -> str:
    """A name in Unicode's composed form (NFC): equal for names that look the same, as macOS and Linux write them."""
    return unicodedata.normalize("NFC", name)


def merged(found: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """Merges what several parts of a data set leave out, by reason."""
    by_reason: dict[tuple[str, bool], list[LeftOut]] = {}
    for entry in found:
        by_reason.setdefault((entry.reason, entry.expected), []).append(entry)
    return tuple(
        LeftOut(reason, sum(part.count for part in parts), _first(parts), expected)
        for (reason, expected), parts in sorted(by_reason.items())
    )


def _first(parts: Sequence[LeftOut]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part.names))[:SHOWN]
