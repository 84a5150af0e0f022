"""Per-sample scores in the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from testbed.db.base import StorePart, in_parts
from testbed.db.connection.retry import retried
from testbed.db.payloads import encoding
from testbed.db.tables import ScoreRow
from testbed.metric_specs import DECLARED, MetricSpec

if TYPE_CHECKING:
    import numpy as np


class Scores(StorePart):
    """The per-sample scores of evaluations."""

    @retried
    def read(self, evaluation_id: int, name: str | None = None) -> dict[tuple[str, str], np.ndarray[Any, Any]]:
        """(scorer, name) → per-sample values, array of shape [samples]; for one name, or for all."""
        named = sa.true() if name is None else ScoreRow.name == name
        with self.reading() as session:
            rows = list(session.scalars(sa.select(ScoreRow).where(ScoreRow.evaluation_id == evaluation_id, named)))
            for row in rows:
                encoding.verify(row.payload, row.checksum, f"evaluation {evaluation_id}, score {row.name}")
            return {(row.scorer, row.name): encoding.decode(row.payload, row.dtype, row.count, ()) for row in rows}

    @retried
    def of_each(self, evaluation_ids: Iterable[int], name: str) -> dict[int, np.ndarray[Any, Any]]:
        """Evaluation → the per-sample values of a score, for those that have it."""
        found: dict[int, np.ndarray[Any, Any]] = {}
        with self.reading() as session:
            for part in in_parts(evaluation_ids):
                chosen = sa.select(ScoreRow).where(ScoreRow.evaluation_id.in_(part), ScoreRow.name == name)
                for row in session.scalars(chosen.order_by(ScoreRow.evaluation_id, ScoreRow.scorer)):
                    if row.evaluation_id not in found:
                        encoding.verify(row.payload, row.checksum, f"evaluation {row.evaluation_id}, score {name}")
                        found[row.evaluation_id] = encoding.decode(row.payload, row.dtype, row.count, ())
        return found

    @retried
    def names(self, evaluation_ids: Iterable[int]) -> dict[int, set[str]]:
        """The names of the per-sample scores of each of these evaluations."""
        return {key: set(specs) for key, specs in self.specs(evaluation_ids).items()}

    @retried
    def specs(self, evaluation_ids: Iterable[int]) -> dict[int, dict[str, MetricSpec]]:
        """Evaluation → the name of each of its per-sample scores → its declaration."""
        found: dict[int, dict[str, MetricSpec]] = {evaluation_id: {} for evaluation_id in evaluation_ids}
        columns = [getattr(ScoreRow, name) for name in ("name", "unit", *DECLARED)]
        with self.reading() as session:
            for part in in_parts(found):
                statement = sa.select(ScoreRow.evaluation_id, *columns).where(ScoreRow.evaluation_id.in_(part))
                for evaluation_id, name, *declared in session.execute(statement.order_by(ScoreRow.scorer)):
                    found[evaluation_id].setdefault(name, MetricSpec(name, *declared))
        return found

    @retried
    def rows(
        self, wanted: Mapping[int, Sequence[int | None]], names: Iterable[str] | None = None
    ) -> dict[int, dict[str, list[float | None]]]:
        """Reads the scores of some samples of evaluations, by name; None if missing or not finite.

        Args:
            wanted: Evaluation → positions; None for a sample that it does not have.
            names: The names of the scores; None means all.
        """
        found: dict[int, dict[str, list[float | None]]] = {entry: {} for entry in wanted}
        table = ScoreRow
        named = sa.true() if names is None else table.name.in_(list(names))
        alike: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        with self.reading() as session:
            for part in in_parts(wanted):
                chosen = sa.select(table.evaluation_id, table.dtype).where(table.evaluation_id.in_(part), named)
                for evaluation_id, dtype in session.execute(chosen.distinct()):
                    known = [place for place in wanted[evaluation_id] if place is not None]
                    if known:
                        alike[min(known), max(known), encoding.width(dtype)].append(evaluation_id)
            for (first, last, width), several in alike.items():
                data: Any = sa.func.substr(table.payload, first * width + 1, (last - first + 1) * width)
                columns = (table.evaluation_id, table.name, table.dtype, data)
                for those in in_parts(several):
                    parts: Any = sa.select(*columns).where(table.evaluation_id.in_(those), named)
                    for evaluation_id, name, dtype, read in session.execute(parts):
                        if encoding.width(dtype) == width:
                            values = encoding.decode(read, dtype, len(read) // width, ())
                            places = wanted[evaluation_id]
                            found[evaluation_id][name] = [_value(values, place, first) for place in places]
        return found


def _value(values: Any, place: int | None, first: int) -> float | None:
    if place is None or not 0 <= place - first < len(values):
        return None
    number = float(values[place - first])
    return number if number - number == 0 else None
