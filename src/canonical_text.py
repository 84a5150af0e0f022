"""Texts as they are compared: one form for the same characters, and nothing that a reader cannot see."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

# Marks besides format characters (Cf) that show nothing: they join graphemes, or choose how a character looks.
_UNSEEN = frozenset("\u034f\u180b\u180c\u180d\u20e3") | {chr(code) for code in range(0xFE00, 0xFE10)}

_STYLED = (*range(0x24B6, 0x24EA), *range(0x1D400, 0x1D800), *range(0x1F130, 0x1F14A))  # Ⓑ, 𝐁, 𝟓, 🄱
_LATIN = {code: unicodedata.normalize("NFKC", chr(code)) for code in _STYLED}
_PLAIN = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    **{code: letter for code, letter in _LATIN.items() if letter.isascii() and letter.isalnum()},
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)},  # ligatures
    **{ord(wide): narrow for wide, narrow in zip("\u3000。、【】−‐‑\xa0،؛؟।", " .,[]--- ,;?.", strict=True)},
}
_QUOTES = {'"': dict.fromkeys(map(ord, "「」『』“”„‟«»"), '"'), "'": dict.fromkeys(map(ord, "‘’‚‛"), "'")}


def canonical(text: str) -> str:
    """A text in Unicode's form NFC, without format characters such as zero-width spaces and marks of direction."""
    if text.isascii():
        return text
    seen = (char for char in text if char not in _UNSEEN and unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFC", "".join(seen))


def plain(text: str) -> str:
    """A canonical text with ASCII letters, digits and punctuation, where other scripts have their own: ``Ｂ：“是”``.

    Quotes stay as they are in a text that also has ASCII's, since these may delimit strings of JSON or of lists.
    """
    if text.isascii():
        return text
    text = canonical(text).translate(_PLAIN)
    for quote, others in _QUOTES.items():
        text = text if quote in text else text.translate(others)
    return text


def plain_columns(columns: Mapping[str, str]) -> Mapping[str, str]:
    """The columns of a row with plain texts."""
    if all(text.isascii() for text in columns.values()):
        return columns
    return {name: plain(text) for name, text in columns.items()}
