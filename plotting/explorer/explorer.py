"""Puts the explorer together: the documents of a store, from its parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from testbed.plotting.explorer.documents import Explorer
from testbed.plotting.explorer.samples import SamplesPart
from testbed.tasks.image_embedding import task as image_embedding

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.registry.catalog import Catalog


class Index:
    """The names of the settings.

    Args:
        settings: Their names, by number.
        sampled: Those whose samples are there.
        source: The store's name.
    """

    def __init__(self, settings: Sequence[str], sampled: Collection[str], source: str) -> None:
        self.settings = list(settings)
        self.sampled = set(sampled)
        self.source = source

    def paths(self) -> Iterator[str]:
        """One."""
        yield "index"

    def document(self, path: str) -> Any:
        """The index."""
        if path != "index":
            raise KeyError(path)
        settings = [{"name": name, "samples": name in self.sampled} for name in self.settings]
        return {"settings": settings, "source": self.source}


def make_explorer(
    store: Store, catalog: Catalog, shown: str, chosen: Mapping[str, Sequence[int]] | None = None
) -> Explorer:
    """The documents of a store.

    Args:
        store: The results store.
        catalog: The registry; models and settings may be unknown to it.
        shown: The store's name on the page.
        chosen: For an export, setting → the positions of its samples that are in it; None for all samples of all.
    """
    evaluations = store.evaluations()
    settings = sorted({each.eval_setting for each in evaluations})
    embedded = {name for name, (task, _) in store.tasks().items() if task == image_embedding.name}
    complete = {each.eval_setting for each in evaluations if each.dataset_id is not None and each.status == "complete"}
    sampled = complete - embedded if chosen is None else set(chosen)
    return Explorer([Index(settings, sampled, shown), SamplesPart(store, catalog, settings, chosen)])


def samples_part(explorer: Explorer) -> SamplesPart:
    """The documents of samples."""
    return next(part for part in explorer.parts if isinstance(part, SamplesPart))
