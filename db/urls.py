"""Which database a name means, and how it is shown."""

from __future__ import annotations

import re

from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from testbed.db.sqlite_file import given_url, sqlite_path
from testbed.errors import StoreError

_PASSWORD_PARAMETER = re.compile(r"([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)


def resolve_url(given: str | None = None) -> URL:
    """The database that is meant: the given URL or path, else ``$TESTBED_DB``, else ``testbed.db`` where one stands.

    A plain path, or what follows ``sqlite:///``, means a SQLite file and is taken as it stands: no ``%20``, no ``?``.
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
    """The URL as `resolve_url` understands it, with the password: for another process, never to be shown."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database}"
    return url.render_as_string(hide_password=False)


def display_url(url: URL) -> str:
    """The URL as a person would write it, passwords hidden."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database}"
    shown = url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)
    return _PASSWORD_PARAMETER.sub(r"\1***", shown)


def _without_password(text: str) -> str:
    """A text that could not be parsed as a URL, less what may be a password in it."""
    return _PASSWORD_PARAMETER.sub(r"\1***", re.sub(r"(://[^:@/]*:)[^@]*@", r"\1***@", text))
