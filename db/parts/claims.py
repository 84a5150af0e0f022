"""Claims: published values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.base import StorePart, in_parts, insert_new
from testbed.db.connection.retry import retried
from testbed.db.parts.names import ids_of
from testbed.db.tables import ClaimRow, ClaimSourceRow
from testbed.entities import OVERALL, Claim, ClaimSource

_OWN = {"row": "file_row", "column": "file_column"}  # fields of a claim with other names in the table
_FIELDS = [field.name for field in fields(Claim) if field.name != "source"]
_COLUMNS = [getattr(ClaimRow, _OWN.get(name, name)) for name in _FIELDS]
_SOURCE_FIELDS = [field.name for field in fields(ClaimSource)]
_IDENTITY = ("name", "repository", "revision", "path", "sha256", "form")
_NAMES = sa.select(ClaimSourceRow.name).order_by(ClaimSourceRow.place, ClaimSourceRow.name)


class Claims(StorePart):
    """Published values, by source file."""

    @retried
    def add(self, source: ClaimSource, claims: Sequence[Claim]) -> int:
        """Stores the claims of a file. A stored file is skipped unless more claims are read from it now.

        Returns:
            The number of stored claims; 0 for an unchanged file.
        """
        fingerprint = _digest([getattr(source, name) for name in _IDENTITY])
        rows = [{_OWN.get(name, name): getattr(claim, name) for name in _FIELDS} for claim in claims]
        digest = _digest([source.rows, source.left_out, rows])
        about = {name: getattr(source, name) for name in _SOURCE_FIELDS}
        about |= {"fingerprint": fingerprint, "digest": digest}
        mapped = [claim for claim in claims if claim.why is None]
        with self.writing() as session:
            _alone(session)
            held = session.scalar(sa.select(ClaimSourceRow).where(ClaimSourceRow.fingerprint == fingerprint))
            if held is not None and held.digest == digest:
                held.date = source.date or held.date  # may have become known since
                return 0
            touched = {claim.model for claim in mapped}
            if held is not None:
                of_held = sa.select(ClaimRow.model).where(ClaimRow.source_id == held.id, ClaimRow.preferred)
                touched |= set(session.scalars(of_held))
                session.execute(sa.delete(ClaimRow).where(ClaimRow.source_id == held.id))
                session.execute(sa.delete(ClaimSourceRow).where(ClaimSourceRow.id == held.id))
            place = session.scalar(sa.select(ClaimSourceRow.place).where(ClaimSourceRow.name == source.name).limit(1))
            about["place"] = source.place if place is None else place
            insert_new(session, ClaimSourceRow, [about])
            made = session.scalars(sa.select(ClaimSourceRow.id).where(ClaimSourceRow.fingerprint == fingerprint)).one()
            of = {"source_id": made, "preferred": False}
            insert_new(session, ClaimRow, [{**row, **of, "position": number} for number, row in enumerate(rows)])
            ids_of(session, "model", {each.model for each in mapped})
            ids_of(session, "eval setting", {each.eval_setting for each in mapped})
            _prefer(session, touched)
        return len(rows)

    @retried
    def sources(self) -> list[ClaimSource]:
        """The source files, by name and path."""
        return [source for _, source in self._sources()]

    @retried
    def prefer(self, names: Sequence[str]) -> None:
        """Puts sources before all others, in this order; the first source's claim about a number becomes a result."""
        with self.writing() as session:
            _alone(session)
            for place, name in enumerate(dict.fromkeys([*names, *session.scalars(_NAMES)])):
                session.execute(sa.update(ClaimSourceRow).where(ClaimSourceRow.name == name).values(place=place))
            _prefer(session, None)

    @retried
    def order(self) -> list[str]:
        """The names of the sources, in order of preference."""
        with self.reading() as session:
            return list(dict.fromkeys(session.scalars(_NAMES)))

    @retried
    def sources_of_results(self) -> dict[tuple[str, str, str], str]:
        """Model, setting and metric of all samples → the name of the source of the result, if any."""
        columns = (ClaimRow.model, ClaimRow.eval_setting, ClaimRow.metric, ClaimSourceRow.name)
        chosen = sa.select(*columns).join(ClaimSourceRow, ClaimSourceRow.id == ClaimRow.source_id)
        with self.reading() as session:
            rows = session.execute(chosen.where(ClaimRow.preferred, ClaimRow.slice == OVERALL))
            return {(model, setting, metric): name for model, setting, metric, name in rows}

    @retried
    def counts(self) -> list[tuple[str, str, int]]:
        """Source, model, and the number of the source's claims about the model."""
        of = (ClaimSourceRow.name, ClaimRow.model)
        counted = sa.select(*of, sa.func.count()).join(ClaimSourceRow, ClaimSourceRow.id == ClaimRow.source_id)
        with self.reading() as session:
            rows = session.execute(counted.group_by(*of).order_by(*of))
            return [(source, model, number) for source, model, number in rows]

    @retried
    def models(self, eval_settings: Iterable[str]) -> set[str]:
        """The names of the models with claims on these settings."""
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
        """Finds the claims about the given models, settings and metrics from the given sources; None means all.

        They are sorted by source, path and position in the file, independent of the order in which files were added.
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


def _alone(session: Session) -> None:
    """Blocks other writers of claims, since the preferred claim depends on all. SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(sa.text("LOCK TABLE claim_sources IN SHARE ROW EXCLUSIVE MODE"))


def _prefer(session: Session, models: Iterable[str] | None) -> None:
    """Marks the first source's claim about each number of these models (None means all), among mapped claims."""
    named = ("place", "name", "repository", "revision", "path")
    # The latest version of a file.
    order = [*(getattr(ClaimSourceRow, name) for name in named), ClaimSourceRow.id.desc()]
    place = {key: number for number, key in enumerate(session.scalars(sa.select(ClaimSourceRow.id).order_by(*order)))}
    keys = (ClaimRow.source_id, ClaimRow.position)
    chosen = sa.select(
        *keys, ClaimRow.preferred, ClaimRow.model, ClaimRow.eval_setting, ClaimRow.metric, ClaimRow.slice
    ).where(ClaimRow.why.is_(None))
    first: dict[tuple[str, ...], tuple[int, int, int]] = {}
    held: set[tuple[int, int]] = set()
    for part in [None] if models is None else in_parts(models):
        statement = chosen if part is None else chosen.where(ClaimRow.model.in_(part))
        for source, position, preferred, *number in session.execute(statement):
            this = place[source], source, position
            first[*number] = min(this, first.get((*number,), this))
            if preferred:
                held.add((source, position))
    table: Any = ClaimRow.__table__
    wanted = {(source, position) for _, source, position in first.values()}
    for changed, value in ((held - wanted, False), (wanted - held, True)):
        if changed:
            session.execute(
                sa.update(table)
                .where(ClaimRow.source_id == sa.bindparam("of"), ClaimRow.position == sa.bindparam("at"))
                .values(preferred=value),
                [{"of": source, "at": position} for source, position in sorted(changed)],
            )
