"""Data sets in the store: lists of samples, each stored once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.base import StorePart, in_parts, insert_new
from testbed.db.connection.retry import retried
from testbed.db.rows import sample_row
from testbed.db.tables import DatasetRow, SampleRow, now
from testbed.entities import DatasetInfo, SampleColumns, SampleInfo

KEPT_DATASETS = 4  # data sets with samples kept in memory: consecutively scored cells often share one


class DatasetHead(NamedTuple):
    """A data set without its samples."""

    name: str
    fingerprint: str
    size: int
    class_names: list[str] | None


class Datasets(StorePart):
    """The data sets in the store."""

    @retried
    def ensure(self, dataset: DatasetInfo) -> int:
        """Stores a data set's list of samples if it is new; returns its id."""
        with self.writing() as session:
            known = sa.select(DatasetRow.id).where(DatasetRow.fingerprint == dataset.fingerprint)
            row_id = session.scalar(known)
            if row_id is None:
                row = {"fingerprint": dataset.fingerprint, **_about(dataset), "created_at": now()}
                insert_new(session, DatasetRow, [row])
                row_id = session.scalars(known).one()
                _add_samples(session, row_id, dataset)
            return row_id

    @retried
    def restore_samples(self, datasets: Mapping[str, DatasetInfo]) -> bool:
        """Stores samples, by fingerprint, of data sets whose list `repair` dropped; returns whether there were any."""
        lost = DatasetRow.size > 0, ~sa.exists().where(SampleRow.dataset_id == DatasetRow.id)
        with self.reading() as session:
            rows = session.execute(sa.select(DatasetRow.fingerprint, DatasetRow.id).where(*lost))
            found = {row.id: datasets[row.fingerprint] for row in rows if row.fingerprint in datasets}
        if not found:
            return False
        self.database.kept_samples.clear()
        with self.writing() as session:
            for row_id, dataset in found.items():
                session.execute(sa.update(DatasetRow).where(DatasetRow.id == row_id).values(_about(dataset)))
                _add_samples(session, row_id, dataset)
        return True

    @retried
    def get(self, dataset_id: int) -> DatasetInfo:
        """A data set with all its samples, in order."""
        with self.reading() as session:
            row = session.get_one(DatasetRow, dataset_id)
            samples = self.database.kept_samples.get(row.fingerprint)
            if samples is None:
                samples = _samples(session, dataset_id)
                while len(self.database.kept_samples) >= KEPT_DATASETS:
                    self.database.kept_samples.pop(next(iter(self.database.kept_samples)), None)
                self.database.kept_samples[row.fingerprint] = samples
            return DatasetInfo(row.name, row.fingerprint, samples, row.class_names)

    @retried
    def head(self, dataset_id: int) -> DatasetHead:
        """The name, the size and the class names of a data set."""
        with self.reading() as session:
            row = session.get_one(DatasetRow, dataset_id)
            return DatasetHead(row.name, row.fingerprint, row.size, row.class_names)

    @retried
    def samples(self, dataset_id: int, positions: Iterable[int]) -> dict[int, SampleInfo]:
        """Some samples of a data set, by position."""
        table = SampleRow
        columns = (table.position, table.sample_id, table.digest, table.target, table.group_name, table.slices)
        found = {}
        with self.reading() as session:
            for part in in_parts(positions):
                chosen = sa.select(*columns).where(table.dataset_id == dataset_id, table.position.in_(part))
                found.update({row[0]: SampleInfo(*row[1:]) for row in session.execute(chosen)})
        return found

    @retried
    def sample_ids(self, dataset_id: int, start: int, stop: int) -> list[str]:
        """The ids of a range of samples, in order."""
        table = SampleRow
        within = (table.dataset_id == dataset_id, table.position >= start, table.position < stop)
        with self.reading() as session:
            return list(session.scalars(sa.select(table.sample_id).where(*within).order_by(table.position)))


def _samples(session: Session, dataset_id: int) -> SampleColumns:
    columns = (SampleRow.sample_id, SampleRow.digest, SampleRow.target, SampleRow.group_name, SampleRow.slices)
    of_one = sa.select(*columns).where(SampleRow.dataset_id == dataset_id)
    rows = session.execute(of_one.order_by(SampleRow.position), execution_options={"yield_per": 2000})
    return SampleColumns.of(SampleInfo(*row) for row in rows)


def _about(dataset: DatasetInfo) -> dict[str, Any]:
    names = list(dataset.class_names) if dataset.class_names is not None else None
    return {"name": dataset.name, "size": len(dataset.samples), "class_names": names}


def _add_samples(session: Session, dataset_id: int, dataset: DatasetInfo) -> None:
    for positions in in_parts(range(len(dataset.samples))):
        rows = [sample_row(dataset_id, position, dataset.samples[position]) for position in positions]
        insert_new(session, SampleRow, rows)
