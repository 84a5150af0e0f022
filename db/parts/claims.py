"""Claims: values that others published."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from testbed.db.base import Part, in_parts, insert_new
from testbed.db.connection.retry import retried
from testbed.db.tables import ClaimRow, ClaimSourceRow
from testbed.entities import Claim, ClaimSource

_OWN = {"row": "file_row", "column": "file_column"}  # fields of a claim with other names in the table
_FIELDS = [each.name for each in fields(Claim) if each.name != "source"]
_COLUMNS = [getattr(ClaimRow, _OWN.get(name, name)) for name in _FIELDS]
_SOURCE_FIELDS = [each.name for each in fields(ClaimSource)]
_IDENTITY = ("name", "repository", "revision", "path", "sha256", "form")


class Claims(Part):
    """What others published, by the file that it is from."""

    @retried
    def add(self, source: ClaimSource, claims: Sequence[Claim]) -> int:
        """Stores the claims of a file. A file that is stored changes nothing, unless more is read of it than then.

        Returns:
            How many claims were stored; 0 for a file that is stored as it is.
        """
        fingerprint = _digest([getattr(source, name) for name in _IDENTITY])
        rows = [{_OWN.get(name, name): getattr(claim, name) for name in _FIELDS} for claim in claims]
        digest = _digest([source.rows, source.left_out, rows])
        about = {name: getattr(source, name) for name in _SOURCE_FIELDS}
        about |= {"fingerprint": fingerprint, "digest": digest}
        with self.writing() as session:
            held = session.scalar(sa.select(ClaimSourceRow).where(ClaimSourceRow.fingerprint == fingerprint))
            if held is not None and held.digest == digest:
                return 0
            if held is not None:
                session.execute(sa.delete(ClaimRow).where(ClaimRow.source_id == held.id))
                session.execute(sa.delete(ClaimSourceRow).where(ClaimSourceRow.id == held.id))
            insert_new(session, ClaimSourceRow, [about])  # another run may add the same at this moment
            made = session.scalars(sa.select(ClaimSourceRow.id).where(ClaimSourceRow.fingerprint == fingerprint)).one()
            numbered = [{**row, "source_id": made, "position": place} for place, row in enumerate(rows)]
            insert_new(session, ClaimRow, numbered)
        return len(rows)

    @retried
    def sources(self) -> list[ClaimSource]:
        """The files, by name and path."""
        return [source for _, source in self._sources()]

    @retried
    def models(self, eval_settings: Iterable[str]) -> set[str]:
        """The names of the models that there are claims about on these settings."""
        with self.reading() as session:
            return {
                name
                for part in in_parts(set(eval_settings))
                for name in session.scalars(sa.select(ClaimRow.model).where(ClaimRow.eval_setting.in_(part)).distinct())
            }

    @retried
    def find(
        self,
        models: Iterable[str] | None = None,
        eval_settings: Iterable[str] | None = None,
        metrics: Iterable[str] | None = None,
        sources: Iterable[str] | None = None,
    ) -> list[Claim]:
        """The claims about the given models, settings and metrics from the given sources; None means all.

        They come by source, path and place in the file, so that the order in which files were added does not matter.
        """
        named = None if sources is None else set(sources)
        of = {key: source for key, source in self._sources() if named is None or source.name in named}
        chosen = sa.select(ClaimRow.source_id, ClaimRow.position, *_COLUMNS)
        for column, words in ((ClaimRow.eval_setting, eval_settings), (ClaimRow.metric, metrics)):
            chosen = chosen if words is None else chosen.where(column.in_(list(words)))
        if named is not None:
            chosen = chosen.where(ClaimRow.source_id.in_(list(of)))
        found: list[tuple[int, int, Claim]] = []
        with self.reading() as session:
            for part in [None] if models is None else in_parts(models):
                statement = chosen if part is None else chosen.where(ClaimRow.model.in_(part))
                for key, position, *values in session.execute(statement):
                    told: dict[str, Any] = dict(zip(_FIELDS, values, strict=True))
                    found.append((key, position, Claim(**told, source=of[key])))
        order = {key: place for place, key in enumerate(of)}
        return [claim for *_, claim in sorted(found, key=lambda each: (order[each[0]], each[1]))]

    def _sources(self) -> list[tuple[int, ClaimSource]]:
        columns = [getattr(ClaimSourceRow, name) for name in _SOURCE_FIELDS]
        order = [getattr(ClaimSourceRow, name) for name in _IDENTITY]
        with self.reading() as session:
            rows = session.execute(sa.select(ClaimSourceRow.id, *columns).order_by(*order)).all()
        return [(key, ClaimSource(*values)) for key, *values in rows]


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
