"""Models and eval settings in the store: add, list, rename, hide and restore."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.base import StorePart, check_text, in_parts, insert_new
from testbed.db.connection.retry import retried
from testbed.db.tables import ClaimRow, EvalSettingRow, EvaluationRow, ModelRow, now
from testbed.entities import REFERENCE, Kind, StoredDefinition
from testbed.errors import DuplicateNameError, StoreError, UnknownNameError, shortened, unknown_name
from testbed.inputs import OwnName
from testbed.registry.own_files import own_path
from testbed.registry.references import SettingReference, is_part, says_parts

TABLES: dict[str, Any] = {"model": ModelRow, "eval setting": EvalSettingRow}
NAMES: dict[str, Any] = {"model": ModelRow.name, "eval setting": EvalSettingRow.full_name}
_LONGEST = 512  # the limit of the tables; Postgres enforces it, SQLite does not
_LONGEST_PATTERN = 4096  # characters; fnmatch takes quadratic time
_SHOWN = 5  # names that a message lists
_LISTING = {"model": "testbed list models --stored", "eval setting": "testbed list settings --stored"}


def key_of(kind: Kind, name: str) -> dict[str, str]:
    """The columns that identify the row of a name."""
    if kind == "model":
        return {"name": name}
    reference = SettingReference.parse(name)
    return {"name": str(reference.setting), "node": reference.node}


def row_of(session: Session, kind: Kind, name: str, hidden: bool | None = False) -> Any:
    """The row of a name: a visible one (hidden=False), a hidden one (True), or any (None).

    Raises:
        UnknownNameError: If there is none; the message suggests the nearest names.
    """
    table = TABLES[kind]
    row = session.scalar(sa.select(table).filter_by(**key_of(kind, name)))
    if row is not None and (hidden is None or (row.hidden_at is not None) == hidden):
        return row
    wanted = sa.true() if hidden is None else table.hidden_at.is_not(None) if hidden else table.hidden_at.is_(None)
    known = list(session.scalars(sa.select(NAMES[kind]).where(wanted).order_by(table.name)))
    where = "the store's removed ones" if hidden else "the store"
    other: Kind = "eval setting" if kind == "model" else "model"
    if session.scalar(sa.select(TABLES[other]).filter_by(**key_of(other, name))) is not None:
        raise UnknownNameError(f"{name} is {_article(other)}, not {_article(kind)}; names of models come first")
    if found := _matches(name, known):
        listed = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
        raise UnknownNameError(f"the pattern {name!r} matches {listed}; write one name of {_article(kind)} here")
    raise unknown_name(kind, name, known, where, _LISTING[kind])


def _matches(word: str, names: Iterable[str]) -> list[str]:
    """The names that a pattern matches; none for a word that is not a pattern."""
    if len(word) > _LONGEST_PATTERN or not any(character in word for character in "*?["):
        return []
    return [name for name in names if fnmatchcase(name, word)]


def _article(kind: Kind) -> str:
    return "an eval setting" if kind == "eval setting" else "a model"


def check_name(kind: Kind, name: str) -> None:
    """Checks that both databases can store a name, and that it can be typed.

    Raises:
        StoreError: If it is empty, too long, or has control characters.
    """
    if not name.strip():
        raise StoreError(f"the name of the {kind} is empty")
    if len(name) > _LONGEST:
        raise StoreError(
            f"the name of the {kind} is too long: {len(name)} characters; the maximum is {_LONGEST}: {shortened(name)}"
        )
    control = [character for character in name if not character.isprintable()]
    if control:
        shown = "NUL" if control[0] == "\0" else repr(control[0])
        raise StoreError(f"the name of the {kind} has a character that cannot be printed ({shown}): {shortened(name)}")


def ensure_row(session: Session, kind: Kind, name: str, **fields: Any) -> Any:
    """Returns the row of a name, created or restored if necessary, with its fields updated."""
    check_name(kind, name)
    table = TABLES[kind]
    key = key_of(kind, name)
    insert_new(session, table, [{**key, "created_at": now(), **fields}])
    row = session.scalars(sa.select(table).filter_by(**key)).one()
    row.hidden_at = None
    for field, value in fields.items():
        if value is not None and getattr(row, field) != value:
            setattr(row, field, value)
    return row


def ids_of(session: Session, kind: Kind, names: Iterable[str]) -> dict[str, int]:
    """Returns the ids of names; creates missing names and restores hidden ones.

    Rows are locked in the order of their names, as by every writer, to prevent deadlocks.
    """
    table = TABLES[kind]
    wanted = sorted(set(names))
    for name in wanted:
        check_name(kind, name)
    insert_new(session, table, [{**key_of(kind, name), "created_at": now()} for name in wanted])
    ids: dict[str, int] = {}
    for part in in_parts(wanted):
        session.execute(
            sa.update(table).where(NAMES[kind].in_(part), table.hidden_at.is_not(None)).values(hidden_at=None)
        )
        found = session.execute(sa.select(NAMES[kind], table.id).where(NAMES[kind].in_(part)))
        ids.update((row[0], row[1]) for row in found)
    return ids


def matching_names(kind: Kind, words: Sequence[str], names: Iterable[str], parts: bool = False) -> set[str]:
    """Selects names of models (or settings) with outputs.

    Args:
        kind: The kind of name, for the message.
        words: Names or patterns; empty means all.
        names: The available names.
        parts: Whether all, and patterns, include parts of settings, such as ``val.random-500`` and
            ``val.anchors:FILE.json``. By default these must be named, or a pattern must contain ``.random-`` or
            ``.anchors:``, so that they are not averaged or ranked together with whole settings.

    Raises:
        UnknownNameError: If a word matches no name.
    """
    known = set(names)
    usual = known if parts or kind == "model" else set(without_parts(known))
    chosen: set[str] = set()
    for word in words:
        found = {word} & known
        if not found or any(character in word for character in "*?["):
            among = known if says_parts(word) else usual
            found |= {name for name in among if len(word) <= _LONGEST_PATTERN and fnmatchcase(name, word)}
        if not found:
            raise UnknownNameError(f"the store has no outputs of {kind} {word!r}; {_LISTING[kind]} lists the names")
        chosen |= found
    return chosen if words else usual


def without_parts(settings: Iterable[str]) -> list[str]:
    """The settings that are not parts of others, in the same order; these are shown by default."""
    return [name for name in settings if not is_part(name)]


def parts_left_out(settings: Iterable[str]) -> str:
    """A note about parts of settings that are hidden because they were not named; empty if there are none."""
    parts = sorted({name for name in settings if is_part(name)})
    if not parts:
        return ""
    counted = f"{len(parts):,} parts of settings, such as" if len(parts) > 1 else "a part of a setting,"
    return f"left out: {counted} {parts[0]}; parts are shown only if they are named"


class Names(StorePart):
    """The names in the store."""

    @retried
    def all(self, kind: Kind) -> list[StoredDefinition]:
        """The visible models or eval settings, by name, with their numbers of complete visible evaluations."""
        table = TABLES[kind]
        link = EvaluationRow.model_id if table is ModelRow else EvaluationRow.eval_setting_id
        counts = (
            sa.select(link.label("id"), sa.func.count().label("evaluations"))
            .where(EvaluationRow.status == "complete", EvaluationRow.hidden_at.is_(None))
            .group_by(link)
            .subquery()
        )
        statement = (
            sa.select(table, sa.func.coalesce(counts.c.evaluations, 0))
            .outerjoin(counts, counts.c.id == table.id)
            .where(table.hidden_at.is_(None), NAMES[kind] == table.name)  # no nodes
            .order_by(table.name)
        )
        with self.reading() as session:
            return [_named(row, count) for row, count in session.execute(statement)]

    @retried
    def add(self, kind: Kind, name: str, **fields: Any) -> bool:
        """Adds a model or an eval setting; returns whether it was new or hidden before."""
        check_name(kind, name)
        table = TABLES[kind]
        with self.writing() as session:
            row = session.scalar(sa.select(table).filter_by(**key_of(kind, name)))
            fresh = row is None or row.hidden_at is not None
            ensure_row(session, kind, name, **fields)
            return fresh

    @retried
    def set_types(self, types: Mapping[str, str]) -> None:
        """Stores the types of models, skipping those that are not in the store."""
        with self.writing() as session:
            for model, model_type in sorted(types.items()):
                check_text(ModelRow, "model_type", model_type)
                session.execute(sa.update(ModelRow).where(ModelRow.name == model).values(model_type=model_type))

    @retried
    def taken(self, kind: Kind) -> set[str]:
        """All names, including those of removed rows."""
        with self.reading() as session:
            return set(session.scalars(sa.select(NAMES[kind])))

    @retried
    def matching(self, kind: Kind, words: Iterable[str], hidden: bool = False) -> list[str]:
        """The visible or hidden names that words name or match as patterns; a word that matches none stays as it is."""
        table = TABLES[kind]
        wanted = table.hidden_at.is_not(None) if hidden else table.hidden_at.is_(None)
        with self.reading() as session:
            known = list(session.scalars(sa.select(NAMES[kind]).where(wanted).order_by(table.name)))
        return list(dict.fromkeys(name for word in words for name in _matches(word, known) or [word]))

    @retried
    def own(self) -> tuple[OwnName, ...]:
        """The short names of models in files, each with its most recent meaning."""
        text = EvaluationRow.environment[REFERENCE].as_string()
        statement = (
            sa.select(ModelRow.name, text, sa.func.max(EvaluationRow.id))
            .join(ModelRow, ModelRow.id == EvaluationRow.model_id)
            .where(text.is_not(None), ModelRow.hidden_at.is_(None))
            .group_by(ModelRow.name, text)
        )
        with self.reading() as session:
            found = sorted(session.execute(statement), key=lambda row: int(row[2]))
        return tuple({name: OwnName.of_text(name, content) for name, content, _ in found}.values())

    @retried
    def rename(self, kind: Kind, old: str, new: str) -> None:
        """Renames a stored model, or an eval setting with its nodes.

        Raises:
            UnknownNameError: If the name is unknown.
            DuplicateNameError: If the new name is taken, even by a removed row.
            StoreError: If a name belongs to a node.
        """
        check_name(kind, new)
        table = TABLES[kind]
        for name in (old, new) if kind == "eval setting" else ():
            if node := SettingReference.parse(name).node:
                raise StoreError(f"{name} is a node of {name.removesuffix(f'.{node}')}; rename that setting")
        with self.writing() as session:
            row_of(session, kind, old)
            taken = session.scalar(sa.select(table).where(table.name == new))
            if taken is not None:
                removed = " (removed, not purged)" if taken.hidden_at else ""
                raise DuplicateNameError(f"the {kind} {new!r} is already in the store{removed}; choose another name")
            session.execute(sa.update(table).where(table.name == old).values(name=new))
            claimed = ClaimRow.model if kind == "model" else ClaimRow.eval_setting
            session.execute(sa.update(ClaimRow).where(claimed == old, ClaimRow.why.is_(None)).values({claimed: new}))
            if kind == "model" and own_path(old) is not None:
                _note_reference(session, new, OwnName(new, old))
            if kind == "eval setting":
                session.execute(sa.update(EvalSettingRow).where(EvalSettingRow.parent == old).values(parent=new))

    @retried
    def hide(self, kind: Kind, name: str) -> int:
        """Hides a name and its evaluations, including those of nodes; returns the number of evaluations hidden.

        Nodes stay if results of other settings use their outputs.
        """
        with self.writing() as session:
            row = row_of(session, kind, name)
            own, other = sa.orm.aliased(EvaluationRow), sa.orm.aliased(EvaluationRow)
            taken = sa.select(own.eval_setting_id).where(
                other.derived_from_id == own.id, other.eval_setting_id != row.id, other.hidden_at.is_(None)
            )
            rows = [row, *(session.scalars(_nodes_of(row).where(EvalSettingRow.id.not_in(taken))))]
            moment = now()
            for row_id in rows:
                row_id.hidden_at = moment
            hidden = session.execute(
                sa.update(EvaluationRow)
                .where(_of(kind, rows), EvaluationRow.hidden_at.is_(None))
                .values(hidden_at=moment)
            )
            return int(hidden.rowcount)  # type: ignore[attr-defined]

    @retried
    def unhide(self, kind: Kind, name: str) -> int:
        """Undoes the last `hide`; returns the number of evaluations restored.

        A later run may already have restored the name. Then the evaluations that were hidden last are restored, except
        those that were run again.

        Raises:
            StoreError: If nothing is hidden under that name.
        """
        with self.writing() as session:
            found = session.scalar(sa.select(TABLES[kind]).filter_by(**key_of(kind, name)))
            row = found or row_of(session, kind, name, hidden=True)
            rows = [row, *session.scalars(_nodes_of(row))]
            of_it = sa.select(sa.func.max(EvaluationRow.hidden_at)).where(_of(kind, rows))
            last = row.hidden_at or session.scalar(of_it)
            if last is None:
                raise StoreError(f"the {kind} {name} has nothing to restore")
            own, other = sa.orm.aliased(EvaluationRow), sa.orm.aliased(EvaluationRow)
            back = sa.select(own.id).where(
                _of(kind, rows, own),
                own.hidden_at == last,
                ~sa.exists().where(
                    other.model_id == own.model_id,
                    other.eval_setting_id == own.eval_setting_id,
                    other.fingerprint == own.fingerprint,
                    other.hidden_at.is_(None),
                ),
            )
            ids = list(session.scalars(back))
            for part in in_parts(ids):
                session.execute(sa.update(EvaluationRow).where(EvaluationRow.id.in_(part)).values(hidden_at=None))
            for row_id in rows:
                row_id.hidden_at = None
            return len(ids)

    @retried
    def set_parameters(self, model: str, count: int) -> None:
        """Stores the number of parameters of a known model if it has changed."""
        news = sa.and_(ModelRow.name == model, ModelRow.parameters.is_distinct_from(count))
        with self.reading() as session:
            if session.scalar(sa.select(ModelRow.id).where(news)) is None:
                return
        with self.writing() as session:
            session.execute(sa.update(ModelRow).where(news).values(parameters=count))

    @retried
    def require(self, kind: Kind, name: str) -> None:
        """Checks that a visible model or eval setting has this name.

        Raises:
            UnknownNameError: If there is none; the message suggests the nearest names.
        """
        with self.reading() as session:
            row_of(session, kind, name)

    @retried
    def tasks(self) -> dict[str, tuple[str | None, str | None]]:
        """Eval setting → its task and its parent, if known."""
        with self.reading() as session:
            rows = session.execute(sa.select(EvalSettingRow.full_name, EvalSettingRow.task, EvalSettingRow.parent))
            return {name: (task, parent) for name, task, parent in rows}


def _note_reference(session: Session, model: str, own: OwnName) -> None:
    """Records the meaning of a short name in the evaluations that do not have it."""
    statement = sa.select(EvaluationRow).join(ModelRow, ModelRow.id == EvaluationRow.model_id)
    for row in session.scalars(statement.where(ModelRow.name == model)):
        row.environment = {REFERENCE: own.as_text(), **(row.environment or {})}


def _of(kind: Kind, rows: Iterable[Any], table: Any = EvaluationRow) -> sa.ColumnElement[bool]:
    link = table.model_id if kind == "model" else table.eval_setting_id
    return cast("sa.ColumnElement[bool]", link.in_([row.id for row in rows]))


def _nodes_of(row: Any) -> Any:
    """Selects the nodes of a setting; other kinds have none."""
    is_setting = isinstance(row, EvalSettingRow) and not row.node
    return sa.select(EvalSettingRow).where(
        EvalSettingRow.name == row.name, EvalSettingRow.node != "", sa.true() if is_setting else sa.false()
    )


def _named(row: Any, count: int) -> StoredDefinition:
    return StoredDefinition(
        id=row.id,
        name=row.name,
        hidden=row.hidden_at is not None,
        evaluations=int(count),
        model_type=row.model_type if isinstance(row, ModelRow) else None,
        parent=row.parent if isinstance(row, EvalSettingRow) else None,
    )
