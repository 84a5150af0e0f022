"""Hides passwords, keys and tokens in the URLs of whatever is printed, logged or stored for others."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "***"
# USER:PASSWORD@HOST where it is not after "://": in a URL with too few slashes or no colon, or in none.
_LOGIN = r"""(?x:
    (?<![^\s'"(=,@]) (?P<before>
        [A-Za-z0-9+.-]{0,30} :? //{1,3}                                              # postgresql//me:pw@host
        | (?: postgres(?:ql)? | https? | s3a? | gs | gcs | az | abfss? | s?ftp | mysql ) (?:\+\w{1,30})? [:/]{1,3}
        | (?= [^\s@]{1,300} @ (?: [\w-]{1,60} (?:\.[\w-]{1,60}){0,9} | \[[0-9a-f:]{2,40}\] ) :\d )   # …@host:5432
        | (?= [^\s@]{1,300} @ [\w-]{1,60} (?:\.[\w-]{1,60}){0,9} \.[A-Za-z]{2,20} / )             # …@host.org/
    )
    (?P<user> (?! api: ) [\w.%+-]{1,300} ) : [^\s@]{1,300} (?: @ [^\s@/]{1,300} ){0,9} @ (?= [\w\[] )
)"""
_PASSWORD = re.compile(r":[^\s@:]{1,300}@")
_SCHEME = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30})"
_URL = re.compile(rf"{_SCHEME}://(?P<rest>\S+)|{_LOGIN}")
_WORD = re.compile(rf"(?s:{_SCHEME}://(?P<rest>.+))|{_LOGIN}")
_END = re.compile(r"[)\]}>'\"`.,;:!…]*\Z")  # what may follow a URL in a sentence
_PATHS = ("file", "sqlite")  # schemes after which a question mark belongs to the path
_DATABASE = "postgres"
_SAID = frozenset("host hostaddr port dbname user service sslmode".split())  # where a database is, and who asks


def redacted(text: str) -> str:
    """A text whose URLs have no passwords and no values of parameters.

    A database's URL keeps the parameters that locate it.
    """
    return _URL.sub(_hidden, text) if "://" in text or _PASSWORD.search(text) else text


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


def _hidden(match: re.Match[str]) -> str:
    if match["scheme"] is None:
        return f"{match['before']}{match['user']}:{HIDDEN}@"
    scheme, rest = match["scheme"], match["rest"]
    kind = scheme.lower()
    if kind.partition("+")[0] in _PATHS:
        return match[0]
    end = _END.search(rest)
    assert end is not None  # it also matches an empty end
    place, mark, query = rest[: end.start()].partition("?")
    login, at, place = place.rpartition("@")
    if at and (kind in ("http", "https") or ":" in login):
        user = "" if kind in ("http", "https") else login.partition(":")[0] + ":"
        login = f"{user}{HIDDEN}"
    shown = "&".join(_parameter(part, kind.startswith(_DATABASE)) for part in query.split("&")) if query else ""
    return f"{scheme}://{login}{at}{place}{mark}{shown}{end[0]}"


def _parameter(text: str, of_database: bool) -> str:
    name, mark, _ = text.partition("=")
    if of_database and name in _SAID:
        return text
    return f"{name}{mark}{HIDDEN}" if mark else HIDDEN
