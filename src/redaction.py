"""Hides passwords, keys and tokens in the URLs of whatever is printed, logged or stored for others."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "***"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(\S+)")
_WORD = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.+)", re.DOTALL)
_END = re.compile(r"[)\]}>'\"`.,;:!…]*\Z")  # what may follow a URL in a sentence
_PATHS = ("file", "sqlite")  # schemes after which a question mark belongs to the path
_DATABASE = "postgres"
_SAID = frozenset("host hostaddr port dbname user service sslmode".split())  # where a database is, and who asks


def redacted(text: str) -> str:
    """A text whose URLs have no passwords and no values of parameters.

    Of the URL of a database, the parameters stay that say where it is.
    """
    return _URL.sub(_hidden, text) if "://" in text else text


def redacted_word(word: str) -> str:
    """The same for a word of a command line, in which a URL reaches to the end, whatever it contains."""
    return _WORD.sub(_hidden, word)


def redacted_values(value: Any) -> Any:
    """A JSON value whose texts are `redacted`."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {key: redacted_values(inner) for key, inner in value.items()}
    return [redacted_values(inner) for inner in value] if isinstance(value, list | tuple) else value


def _hidden(found: re.Match[str]) -> str:
    scheme, rest = found[1], found[2]
    kind = scheme.lower()
    if kind.partition("+")[0] in _PATHS:
        return found[0]
    end = _END.search(rest)
    assert end is not None  # it matches an empty end, too
    place, mark, query = rest[: end.start()].partition("?")
    login, at, place = place.rpartition("@")
    if at and (kind in ("http", "https") or ":" in login):
        user = "" if kind in ("http", "https") else login.partition(":")[0] + ":"
        login = f"{user}{HIDDEN}"
    shown = "&".join(_parameter(each, kind.startswith(_DATABASE)) for each in query.split("&")) if query else ""
    return f"{scheme}://{login}{at}{place}{mark}{shown}{end[0]}"


def _parameter(text: str, of_database: bool) -> str:
    name, mark, _ = text.partition("=")
    if of_database and name in _SAID:
        return text
    return f"{name}{mark}{HIDDEN}" if mark else HIDDEN
