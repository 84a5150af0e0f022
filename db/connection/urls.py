"""Resolves and displays database URLs."""

from __future__ import annotations

import re

from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from testbed.db.connection.sqlite_file import given_url, sqlite_path
from testbed.errors import StoreError
from testbed.redaction import redacted_word

_SCHEMES = ("sqlite", "postgres", "postgresql", "postgresql+psycopg")
# libpq's keywords: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS
_LIBPQ = re.compile(r"^\s*(host|hostaddr|port|dbname|user|service|sslmode)\s*=|\bpass(word|file)\s*=", re.IGNORECASE)
# A scheme with too few slashes, or USER:PASSWORD@HOST without a scheme.
_HALF_A_URL = re.compile(
    r"\s*((sqlite|postgres(ql)?)(\+\w+)?(:|//)|([a-z][\w+]*)?:?/{0,2}[\w.%-]*:[^\s@]*@([^\s@]*@)*[\w.\[\]:-]+(/|$))",
    re.IGNORECASE,
)


def resolve_url(given: str | None = None) -> URL:
    """Resolves the database: the given URL or path, else ``$TESTBED_DB``, else ``testbed.db`` in the working folder.

    A plain path, or what follows ``sqlite:///``, is the literal path of a SQLite file: no ``%20``, no ``?``.
    ``postgres://`` and ``postgresql://`` mean Postgres through psycopg 3.

    Raises:
        StoreError: If it is neither SQLite nor Postgres.
    """
    text = given_url(given)
    _refuse_mistaken(text)
    path = sqlite_path(text)
    if path is not None:
        return URL.create("sqlite", database=str(path))
    if text.startswith("postgres://"):
        text = text.replace("postgres", "postgresql", 1)
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        raise StoreError(_no_url(text)) from None
    if url.get_backend_name() != "postgresql":
        raise StoreError(f"the store runs on SQLite and Postgres, not on {url.get_backend_name()!r}")
    if "@" in (url.host or "") or "@" in (url.database or ""):
        raise StoreError(f"{_no_url(text)}; in a password, @ is written as %40 and / as %2F")
    return url.set(drivername="postgresql+psycopg")


def _refuse_mistaken(text: str) -> None:
    """Rejects text that would be read as a file path but looks like a URL, and may contain a password.

    Raises:
        StoreError: If it does; the message omits the text.
    """
    if "://" in text:
        return
    if _LIBPQ.search(text):
        raise StoreError(
            "the database is given in libpq's form (KEYWORD=VALUE …); write postgresql://USER@HOST:PORT/DATABASE, and"
            " the password into ~/.pgpass or PGPASSWORD"
        )
    if _HALF_A_URL.match(text):
        raise StoreError(_no_url(text))


def _no_url(text: str) -> str:
    """Builds the message about an invalid URL; shows only its beginning, since it may contain a password."""
    scheme = re.match(r"[A-Za-z0-9+.-]*(?=:)", text)
    shown = f"{scheme[0]}:…" if scheme and scheme[0] in _SCHEMES else "the given text"
    return f"{shown} is not a database URL; write a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"


def full_url(url: URL) -> str:
    """The URL for `resolve_url`, including the password: for another process; never display it."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database}"
    return url.render_as_string(hide_password=False)


def display_url(url: URL) -> str:
    """The URL for display, with passwords hidden."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database}"
    return redacted_word(url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True))
