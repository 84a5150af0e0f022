"""Prepared arrays in the store, keyed by the digest of their inputs: zero-shot heads, fitted probes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from testbed.db.base import StorePart, insert_new, insert_or_replace
from testbed.db.connection.retry import retried
from testbed.db.payloads import encoding
from testbed.db.tables import ArtifactRow, now

if TYPE_CHECKING:
    import numpy as np


class Artifacts(StorePart):
    """Arrays shared by several evaluations."""

    @retried
    def has(self, fingerprint: str) -> bool:
        """Returns whether a prepared array is stored."""
        with self.reading() as session:
            found = sa.select(ArtifactRow.fingerprint).where(ArtifactRow.fingerprint == fingerprint)
            return session.scalar(found) is not None

    @retried
    def get(self, fingerprint: str) -> np.ndarray[Any, Any] | None:
        """Returns a prepared array by the digest of its inputs; None if it is not stored."""
        with self.reading() as session:
            row = session.get(ArtifactRow, fingerprint)
            if row is None:
                return None
            encoding.verify(row.payload, row.checksum, f"artifact {fingerprint}")
            return encoding.decode(row.payload, row.dtype, row.shape[0], row.shape[1:])

    @retried
    def put(self, fingerprint: str, kind: str, values: Any, spec: dict[str, Any], replace: bool = False) -> None:
        """Stores a prepared array; an existing one is kept unless ``replace`` is set."""
        payload = encoding.encode(values)
        with self.writing() as session:
            row = {
                "fingerprint": fingerprint,
                "kind": kind,
                "spec": spec,
                "dtype": payload.dtype,
                "shape": [payload.count, *payload.shape],
                "checksum": payload.checksum,
                "payload": bytes(payload.data),
                "created_at": now(),
            }
            (insert_or_replace if replace else insert_new)(session, ArtifactRow, [row])
