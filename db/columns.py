"""Column types for times and for text meant for people."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import DateTime, Dialect, Text, TypeDecorator

from testbed.redaction import redacted


class UtcDateTime(TypeDecorator[datetime]):
    """A time, stored in UTC without a time zone, and returned with one."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Converts to UTC."""
        return value.astimezone(UTC).replace(tzinfo=None) if value is not None else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Marks as UTC."""
        return value.replace(tzinfo=UTC) if value is not None else None


class Prose(TypeDecorator[str]):
    """Text for people, of any origin; characters that Postgres cannot store (NUL, lone surrogates) are replaced.

    Passwords in URLs are hidden, since everyone with access to the store can read the text.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replaces what cannot or must not be stored."""
        if value is None:
            return None
        return redacted(value).replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
