"""Documents of who leads: of each column the sentence of ``testbed rank``, ranks with their intervals, and ties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from testbed.db.store import Store
from testbed.errors import TestbedError
from testbed.extensions.explorer.documents import number_in
from testbed.extensions.explorer.overview import Overview
from testbed.metrics.inference.ranks import Resamples
from testbed.stored_results.leading import leading
from testbed.stored_results.ranking import ranking


class Leaders:
    """``leaders/COLUMN``: of columns whose models are ranked on their samples.

    A document has the words; the models' places in the index, the best first; of each its rank with the two ends of the
    interval; and of each those that it is tied with, as `_ranges` of that order.

    Args:
        store: The results store.
        overview: The columns.
    """

    def __init__(self, store: Store, overview: Overview) -> None:
        self.store = store
        self.overview = overview
        self._drawn = Resamples()  # most settings have as many samples as another one

    def paths(self) -> Iterator[str]:
        """One for each such column."""
        columns = self.overview.document("index")["columns"]
        yield from (f"leaders/{number}" for number, each in enumerate(columns) if each["ranked"])

    def document(self, path: str) -> Any:
        """One of these; without words and models where scores or a direction are missing."""
        kind, _, number = path.partition("/")
        if kind != "leaders":
            raise KeyError(path)
        index = self.overview.document("index")
        columns = index["columns"]
        if number_in(number) >= len(columns) or not columns[number_in(number)]["ranked"]:
            raise KeyError(path)
        column = columns[number_in(number)]
        try:
            setting = index["settings"][column["setting"]]["name"]
            found = ranking(self.store, [setting], (), column["metric"], drawn=self._drawn)
        except TestbedError:
            return {"words": "", "models": [], "ranks": [], "ties": []}
        places = {name: place for place, name in enumerate(index["models"]["name"])}
        order = {row.model: place for place, row in enumerate(found.rows)}
        few = len(found.rows) < column["models"]
        return {
            "words": (f"of the {len(found.rows)} models with samples here, " if few else "") + leading(found),
            "models": [places[row.model] for row in found.rows],
            "ranks": [[row.place.rank, row.place.rank_low, row.place.rank_high] for row in found.rows],
            "ties": [_ranges(sorted(order[name] for name in row.tied_with)) for row in found.rows],
        }


def _ranges(numbers: list[int]) -> list[int]:
    """Ascending numbers as ranges, one after another: the first number of each, and the one after its last."""
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    ends = zip([0, *(breaks + 1)], [*breaks, len(numbers) - 1], strict=True) if numbers else ()
    return [end for first, last in ends for end in (numbers[first], numbers[last] + 1)]
