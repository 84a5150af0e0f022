"""Documents of rankings: the summary of ``testbed rank`` for each column, ranks with intervals, and ties."""

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
    """``leaders/COLUMN``: rankings of columns with stored samples.

    A document has the summary; the models' positions in the index, the best first; the rank of each with the ends of
    its interval; and the ties of each, as `_ranges` of that order.

    Args:
        store: The results store.
        overview: The columns.
    """

    def __init__(self, store: Store, overview: Overview) -> None:
        self.store = store
        self.overview = overview
        self._drawn = Resamples()  # many settings have the same number of samples

    def paths(self) -> Iterator[str]:
        """The path of a document for each such column."""
        columns = self.overview.document("index")["columns"]
        yield from (f"leaders/{number}" for number, column in enumerate(columns) if column["ranked"])

    def document(self, path: str) -> Any:
        """Returns one of these; without summary and models if scores or a direction are missing."""
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
    """Encodes ascending numbers as a flat list of ranges: first number, and the one after the last."""
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    ends = zip([0, *(breaks + 1)], [*breaks, len(numbers) - 1], strict=True) if numbers else ()
    return [end for first, last in ends for end in (numbers[first], numbers[last] + 1)]
