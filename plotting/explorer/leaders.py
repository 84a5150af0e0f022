"""Documents of who leads: of each column the sentence that ``testbed rank`` prints, and ranks with their intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from testbed.analyses.leading import leading
from testbed.analyses.ranking import ranking
from testbed.db.store import Store
from testbed.errors import TestbedError
from testbed.plotting.explorer.documents import number_in
from testbed.plotting.explorer.overview import Overview


class Leaders:
    """``leaders/COLUMN``: words, and the ranks of the models; of columns whose models are ranked on their samples.

    Args:
        store: The results store.
        overview: The columns.
    """

    def __init__(self, store: Store, overview: Overview) -> None:
        self.store = store
        self.overview = overview

    def paths(self) -> Iterator[str]:
        """One for each such column."""
        columns = self.overview.document("index")["columns"]
        yield from (f"leaders/{number}" for number, each in enumerate(columns) if each["ranked"])

    def document(self, path: str) -> Any:
        """One of these; without words where scores or a direction are missing."""
        kind, _, number = path.partition("/")
        index = self.overview.document("index")
        columns = index["columns"]
        if kind != "leaders" or number_in(number) >= len(columns) or not columns[number_in(number)]["ranked"]:
            raise KeyError(path)
        column = columns[number_in(number)]
        try:
            found = ranking(self.store, [index["settings"][column["setting"]]["name"]], (), column["metric"])
        except TestbedError:
            return {"words": "", "ranks": {}}
        places = {name: str(place) for place, name in enumerate(index["models"]["name"])}
        few = len(found.rows) < column["models"]
        return {
            "words": (f"of the {len(found.rows)} models with samples here, " if few else "") + leading(found),
            "ranks": {
                places[row.model]: [row.place.rank, row.place.rank_low, row.place.rank_high] for row in found.rows
            },
        }
