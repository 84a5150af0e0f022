"""Puts the explorer together: the documents of a store, from its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from testbed.plotting.explorer.documents import Explorer
from testbed.plotting.explorer.samples import SamplesPart

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.registry.catalog import Catalog


class Index:
    """The names of the settings.

    Args:
        settings: Their names, by number.
        source: The store's name.
    """

    def __init__(self, settings: Sequence[str], source: str) -> None:
        self.settings = list(settings)
        self.source = source

    def paths(self) -> Iterator[str]:
        """One."""
        yield "index"

    def document(self, path: str) -> Any:
        """The index."""
        if path != "index":
            raise KeyError(path)
        return {"settings": [{"name": name} for name in self.settings], "source": self.source}


def make_explorer(
    store: Store, catalog: Catalog, metric: str | None, shown: str, chosen: Mapping[str, Sequence[int]] | None = None
) -> Explorer:
    """The documents of a store.

    Args:
        store: The results store.
        catalog: The registry; models and settings may be unknown to it.
        metric: The metric that is shown first; None for each setting's main one.
        shown: The store's name on the page.
        chosen: For an export, setting → the positions of its samples that are in it; None for all samples of all.
    """
    settings = sorted({each.eval_setting for each in store.evaluations()})
    return Explorer([Index(settings, shown), SamplesPart(store, catalog, settings, chosen)])


def samples_part(explorer: Explorer) -> SamplesPart:
    """The documents of samples."""
    return next(part for part in explorer.parts if isinstance(part, SamplesPart))
