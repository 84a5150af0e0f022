"""Resolves and displays database URLs."""

from __future__ import annotations

import re

from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from testbed.db.sqlite_file import given_url, sqlite_path
from testbed.errors import StoreError

_PASSWORD_PARAMETER = re.compile(r"([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)


def resolve_url(given: str | None = None) -> URL:
    """The database: the given URL or path, else ``$TESTBED_DB``, else ``testbed.db`` in the working folder.

    A plain path, or what follows ``sqlite:///``, is the literal path of a SQLite file: no ``%20``, no ``?``.
    ``postgres://`` and ``postgresql://`` mean Postgres through psycopg 3.

    Raises:
        StoreError: If it is neither SQLite nor Postgres.
    """
    text = given_url(given)
    path = sqlite_path(text)
    if path is not None:
        return URL.create("sqlite", database=str(path))
    if text.startswith("postgres://"):
        text = text.replace("postgres", "postgresql", 1)
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        raise StoreError(
            f"{_without_password(text)!r} is not a database URL; write a path, sqlite:///PATH or"
            " postgresql://USER@HOST/DATABASE"
        ) from None
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    raise StoreError(
        f"the store runs on SQLite and Postgres, not on {url.get_backend_name()!r} ({url.render_as_string()})"
    )


def full_url(url: URL) -> str:
    """The URL as `resolve_url` understands it, with the password: for another process; never display it."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database}"
    return url.render_as_string(hide_password=False)


def display_url(url: URL) -> str:
    """The URL for display, with passwords hidden."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database}"
    shown = url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)
    return _PASSWORD_PARAMETER.sub(r"\1***", shown)


def _without_password(text: str) -> str:
    """A text that could not be parsed as a URL, without what may be a password."""
    return _PASSWORD_PARAMETER.sub(r"\1***", re.sub(r"(://[^:@/]*:)[^@]*@", r"\1***@", text))
