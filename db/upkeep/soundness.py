"""Finds all faults of a store: damage, missing outputs, incomplete evaluations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sqlalchemy as sa

from testbed.calls import reason_of
from testbed.db.base import StorePart
from testbed.db.connection.retry import patiently
from testbed.db.tables import Base
from testbed.db.upkeep import check_payloads, check_rows
from testbed.db.upkeep.damage import Fault, Inventory
from testbed.errors import StoreDamagedError, StoreError, within

SALVAGE = "testbed store salvage NEW copies the readable part to a new store"
MOST_FAULTS, LONGEST_FAULT = 20, 300  # of SQLite's own check; and characters of one, which may list pages
BACKUP = "restore a backup: Postgres cannot repair its files"
_CHECKS: tuple[Callable[[Inventory], Iterator[Fault]], ...] = (
    check_rows.check_names,
    check_rows.check_definitions,
    check_rows.check_samples,
    check_rows.check_evaluations,
    check_payloads.check_chunks,
    check_rows.check_errors,
    check_payloads.check_scores,
    check_rows.check_metrics,
    check_payloads.check_artifacts,
    check_payloads.check_item_values,
    check_rows.check_records,
)


class Soundness(StorePart):
    """Checks whether stored data are complete and unchanged."""

    def check(self) -> Iterator[str]:
        """Yields a line for each fault, including unreadable parts of the store."""
        for fault in self.faults():
            yield f"{fault.text}; {fault.lasts}" if fault.lasts else fault.text

    def faults(self) -> Iterator[Fault]:
        """Yields faults with their repairs.

        Raises:
            StoreError: If the database does not answer or refuses a statement, which does not imply a fault of the
                stored data.
        """
        yield from self._guarded(self._check_file)
        whole: list[bool] = []
        yield from self._guarded(lambda: self._check_schema(whole))
        if whole == [False]:
            return  # only the current tables can be checked
        known: list[Inventory] = []
        yield from self._guarded(lambda: self._read_known(known))
        for check in _CHECKS if known else ():
            yield from self._guarded(lambda check=check: self._check(check, known[0]))  # type: ignore[misc]

    def _guarded(self, part: Callable[[], Iterator[Fault]]) -> Iterator[Fault]:
        """Yields the faults of a part, or a fault if the database reports it as corrupt."""
        try:
            yield from part()
        except StoreDamagedError as error:
            yield Fault(error.what, lasts=SALVAGE if self._on_sqlite else BACKUP)
        except StoreError:
            raise
        except Exception as error:  # data of a damaged file may break anything
            if not self._on_sqlite:
                raise
            yield Fault(f"a part of the store cannot be read: {reason_of(error)}", lasts=SALVAGE)

    @property
    def _on_sqlite(self) -> bool:
        return self.database.url.get_backend_name() == "sqlite"

    def _check_file(self) -> Iterator[Fault]:
        if self._on_sqlite:
            with self.reading() as session:
                rows = session.execute(sa.text("PRAGMA integrity_check")).scalars()
                lines = [line for row in rows for line in str(row).splitlines() if line.strip() and line != "ok"]
            found = [line for line in lines if not line.startswith("***")] or lines  # below the database's name
            for line in found[:MOST_FAULTS]:
                yield Fault(f"database: {within(' '.join(line.split()), LONGEST_FAULT)}", lasts=SALVAGE)
            if len(found) > MOST_FAULTS:
                yield Fault(f"database: {len(found) - MOST_FAULTS:,} more faults that SQLite finds", lasts=SALVAGE)

    def _check_schema(self, whole: list[bool]) -> Iterator[Fault]:
        """Yields missing tables, columns, indices and views; records whether tables and columns are complete."""
        tables, others = patiently(self._lacking)
        whole.append(not tables)
        for table in (*tables, *others):
            yield Fault(f"database: {table} is missing", lasts=SALVAGE if self._on_sqlite else BACKUP)

    def _lacking(self) -> tuple[list[str], list[str]]:
        """The missing tables and columns, and the missing indices and views."""
        with self.reading() as session:
            there = sa.inspect(session.connection())
            lost = [table for table in Base.metadata.tables if not there.has_table(table)]
            whole = {name: table for name, table in Base.metadata.tables.items() if name not in lost}
            for name, table in whole.items():
                columns = {column["name"] for column in there.get_columns(name)}
                lost += [f"the column {name}.{column.name}" for column in table.columns if column.name not in columns]
            others = [] if "results" in there.get_view_names() else ["the view results"]
            for name, table in whole.items():
                found = {index["name"] for index in there.get_indexes(name)}
                others += [str(index.name) for index in table.indexes if index.name not in found]
        return lost, others

    def _read_known(self, found: list[Inventory]) -> Iterator[Fault]:
        known = Inventory(self.database)
        found.append(known)
        yield from self._unreadable(known)

    def _check(self, check: Callable[[Inventory], Iterator[Fault]], known: Inventory) -> Iterator[Fault]:
        yield from check(known)
        yield from self._unreadable(known)

    def _unreadable(self, known: Inventory) -> Iterator[Fault]:
        """The faults of values that could not be read since the last call."""
        bad, known.bad = known.bad, []
        for table, row in bad:
            yield known.row(table, row)
