"""Texts as they are compared: one form for the same characters, and nothing that a reader cannot see."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

# Marks besides format characters (Cf) that show nothing: they join graphemes, or choose how a character looks.
_UNSEEN = frozenset("\u034f\u180b\u180c\u180d") | {chr(code) for code in range(0xFE00, 0xFE10)}


def canonical(text: str) -> str:
    """A text in Unicode's form NFC, without format characters such as zero-width spaces and marks of direction."""
    if text.isascii():
        return text
    seen = (char for char in text if char not in _UNSEEN and unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFC", "".join(seen))


def canonical_columns(columns: Mapping[str, str]) -> Mapping[str, str]:
    """The columns of a row with canonical texts."""
    if all(text.isascii() for text in columns.values()):
        return columns
    return {name: canonical(text) for name, text in columns.items()}
