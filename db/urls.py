"""Which database a name means, and how it is shown."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from testbed.errors import StoreError
from testbed.paths import ENV_DB

DEFAULT_URL = "sqlite:///testbed.db"

_PASSWORD_PARAMETER = re.compile(r"([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)


def resolve_url(given: str | None = None) -> URL:
    """The database that is meant: the given URL or path, else ``$TESTBED_DB``, else ``testbed.db`` where one stands.

    A plain path, or what follows ``sqlite:///``, means a SQLite file and is taken as it stands: no ``%20``, no ``?``.
    ``postgres://`` and ``postgresql://`` mean Postgres through psycopg 3.

    Raises:
        StoreError: If it is neither SQLite nor Postgres.
    """
    text = given or os.environ.get(ENV_DB) or DEFAULT_URL
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _file(text)
    if re.fullmatch(r"sqlite(\+\w+)?", scheme):
        return _file(rest.removeprefix("/"))
    if scheme == "postgres":
        text = f"postgresql://{rest}"
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


def _file(path: str) -> URL:
    if path in ("", ":memory:"):
        raise StoreError("a store in memory would be gone with the process; give a file: sqlite:///PATH")
    return URL.create("sqlite", database=str(Path(path).expanduser().absolute()))


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
