"""Texts of any origin as a terminal may show them: what would act on it, such as move its cursor, is spelled out."""

from __future__ import annotations

import re

# Control characters but line feed and tab; marks that turn the direction of text; what some take for the end of a line.
_ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_BREAKS = re.compile("[\t\n]")


def visible(text: str) -> str:
    """A text with its control characters spelled out; lines and tabs stay."""
    return _ACTIVE.sub(_spelled, text)


def visible_line(text: str) -> str:
    """Returns a text for one line, such as a name in a table: line feeds and tabs are also spelled out."""
    return _BREAKS.sub(_spelled, visible(text))


def escaped_json(text: str) -> str:
    """Returns JSON whose strings escape such characters, so that its value stays the same."""
    return _ACTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _spelled(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
