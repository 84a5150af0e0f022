"""Where the values of columns come from: runs of this store, imported tables, or sources of published values."""

from __future__ import annotations

from functools import cached_property

from testbed.db.store import Store
from testbed.entities import OVERALL, PUBLISHED
from testbed.plotting.frame import TEN_PERCENT, in_averages

MEASURED = "measured"  # where a value is from that its publisher has measured
AVERAGE = "average"


class Origins:
    """Origins of values.

    Args:
        store: The results store.
        measured: Whether published values were measured by whom the pages are of.
    """

    def __init__(self, store: Store, measured: bool) -> None:
        self.store = store
        self.measured = measured

    def of_result(self, model: str, setting: str, metric: str, origin: str) -> str:
        """Returns the origin of a stored result, with the source of a published one.

        Args:
            model: Its model.
            setting: Its eval setting.
            metric: Its metric.
            origin: As stored; empty for a value that stands for one of ten percent of the samples.
        """
        if not origin:
            setting, origin = f"{setting}{TEN_PERCENT}", PUBLISHED
        if origin != PUBLISHED:
            return origin
        if self.measured:
            return MEASURED
        source = self._sources.get((model, setting, metric))
        return PUBLISHED if source is None else f"{PUBLISHED} ({source})"

    def of_average(self, model: str) -> str:
        """Returns the origin of ImageNet-testbed's averages, with the sources of the published values in them."""
        own, sources = self._averaged.get(model, (True, set()))
        if self.measured or not sources:
            return AVERAGE
        return f"{AVERAGE} of {'own and ' if own else ''}published values ({'; '.join(sorted(sources))})"

    @cached_property
    def _sources(self) -> dict[tuple[str, str, str], str]:
        """Model, setting and metric of a published result → its source."""
        return self.store.claims.sources_of_results()

    @cached_property
    def _averaged(self) -> dict[str, tuple[bool, set[str]]]:
        """Model → whether some components of averages are its own, and the sources of the others."""
        settings = [name for name in self.store.results.metric_specs() if in_averages(name)]
        cells: dict[tuple[str, str], bool] = {}  # → whether it is published
        fields = ("model", "eval_setting", "origin")
        for model, setting, origin in self.store.results.rows(fields, None, settings, ["top1"], [OVERALL]):
            cells[model, setting] = cells.get((model, setting), True) and origin == PUBLISHED
        found: dict[str, tuple[bool, set[str]]] = {}
        for (model, setting), published in cells.items():
            own, sources = found.get(model, (False, set()))
            source = self._sources.get((model, setting, "top1")) if published else None
            found[model] = (own or not published, sources | ({source} if source else set()))
        return found
