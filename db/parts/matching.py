"""Matches the samples of a data set with those of another one, whose outputs are read for them."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.db.tables import SampleRow
from testbed.errors import StoreError


def source_positions(session: Session, dataset_id: int | None, source_id: int | None) -> list[int]:
    """Finds the position of each sample of a data set, in order, in another data set.

    Two samples are the same if they have the same name and content, or the same content if that is the name.

    Raises:
        StoreError: If one is missing there.
    """
    if dataset_id == source_id:
        statement = sa.select(SampleRow.position).where(SampleRow.dataset_id == dataset_id).order_by(SampleRow.position)
        return list(session.scalars(statement))
    found = matching_positions(session, dataset_id, source_id)
    positions = [position for position in found if position is not None]
    if len(positions) != len(found):
        raise StoreError(
            f"{len(found) - len(positions)} samples of data set {dataset_id} are not among those of data set"
            f" {source_id}, whose outputs it should be derived from"
        )
    return positions


def matching_positions(session: Session, dataset_id: int | None, source_id: int | None) -> list[int | None]:
    """Finds the position of each sample of a data set, in order, in another one; None if it is missing there."""
    columns = (SampleRow.position, SampleRow.digest, SampleRow.sample_id)
    own, there = (
        session.execute(sa.select(*columns).where(SampleRow.dataset_id == number).order_by(SampleRow.position)).all()
        for number in (dataset_id, source_id)
    )
    # Matched in Python: a database without up-to-date statistics may compare every pair of rows.
    places: dict[tuple[str, str], int] = {}
    for position, digest, name in there:
        places.setdefault((digest, name), position)
    # Embedded images are named by their content.
    both = [(places.get((digest, name)), places.get((digest, digest))) for _, digest, name in own]
    return [min((place for place in entry if place is not None), default=None) for entry in both]
