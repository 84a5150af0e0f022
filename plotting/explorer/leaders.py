"""Documents of who leads: of each column the sentence that ``testbed rank`` prints, and ranks with their intervals."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from testbed.analyses.leading import in_order, leading
from testbed.analyses.ranking import Ranking, ranking
from testbed.db.store import Store
from testbed.entities import PUBLISHED
from testbed.errors import TestbedError
from testbed.metric_specs import MetricSpec
from testbed.plotting.explorer.documents import number_in
from testbed.plotting.explorer.overview import Overview

MOST_SCORES = 4_000_000  # samples × models that are ranked while a page waits


class Leaders:
    """``leaders/COLUMN``: words, whether they are of paired tests, and the ranks of those that were tested.

    Args:
        store: The results store.
        overview: The columns.
        sampled: The settings whose samples the store has.
    """

    def __init__(self, store: Store, overview: Overview, sampled: Collection[str]) -> None:
        self.store = store
        self.overview = overview
        self.sampled = set(sampled)

    def paths(self) -> Iterator[str]:
        """One for each column."""
        yield from (f"leaders/{number}" for number in range(len(self.overview.document("index")["columns"])))

    def document(self, path: str) -> Any:
        """One of these."""
        kind, _, number = path.partition("/")
        columns = self.overview.document("index")["columns"]
        if kind != "leaders" or number_in(number) >= len(columns):
            raise KeyError(path)
        column = columns[number_in(number)]
        values = self.overview.document(f"values/{number}")
        found = self._ranking(column)
        if found is None:
            return {"words": self._order(column, values), "tested": False, "ranks": {}}
        more = len(values["models"]) - len(found.rows)
        of = f"of the {len(found.rows)} models with samples here, " if more else ""
        places = {name: place for place, name in enumerate(self.overview.document("index")["models"]["name"])}
        return {
            "words": of + leading(found),
            "tested": True,
            "ranks": {
                str(places[row.model]): [row.place.rank, row.place.rank_low, row.place.rank_high] for row in found.rows
            },
        }

    def _ranking(self, column: dict[str, Any]) -> Ranking | None:
        """The ranking; None where samples, scores or a direction are missing, or there are too many to wait for."""
        index = self.overview.document("index")
        setting = None if column["setting"] is None else index["settings"][column["setting"]]["name"]
        too_many = column["own"] * (column["n"] or 0) > MOST_SCORES
        if setting not in self.sampled or column["own"] < 2 or too_many:
            return None
        try:
            return ranking(self.store, [setting], (), column["metric"])
        except TestbedError:
            return None

    def _order(self, column: dict[str, Any], values: dict[str, Any]) -> str:
        names = self.overview.document("index")["models"]["name"]
        told = [
            (names[model], value)
            for model, value in zip(values["models"], values["values"], strict=True)
            if value is not None
        ]
        origins = values["origins"] if isinstance(values["origins"], list) else [values["origins"]]
        spec = MetricSpec(column["metric"], column["unit"], better=column["better"])
        return in_order(told, spec, all(str(each).startswith(PUBLISHED) for each in origins))
