"""How moments and text for people are stored in columns of the tables."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import DateTime, Dialect, Text, TypeDecorator

from testbed.redaction import redacted


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, stored without a time zone in UTC, handed out with it."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Converts to UTC."""
        return value.astimezone(UTC).replace(tzinfo=None) if value is not None else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Marks as UTC."""
        return value.replace(tzinfo=UTC) if value is not None else None


class Prose(TypeDecorator[str]):
    """Text for people, of any origin: what Postgres cannot store of it (NUL, half a surrogate pair) is replaced.

    URLs in it show no passwords: everyone who can read the store reads it.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replaces what cannot be stored, and what must not be."""
        if value is None:
            return None
        return redacted(value).replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
