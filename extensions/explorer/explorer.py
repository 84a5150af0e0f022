"""Assembles the explorer of a store from its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from testbed.extensions.explorer.breakdown import Breakdowns
from testbed.extensions.explorer.cells import Cells
from testbed.extensions.explorer.claims import Claims
from testbed.extensions.explorer.disagreements import Disagreements
from testbed.extensions.explorer.documents import Explorer
from testbed.extensions.explorer.leaders import Leaders
from testbed.extensions.explorer.overview import Overview
from testbed.extensions.explorer.samples import SamplesPart
from testbed.extensions.explorer.training import Training
from testbed.registry.references import is_part
from testbed.tasks.image_embedding import task as image_embedding

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.registry.catalog import Catalog


def make_explorer(
    store: Store,
    catalog: Catalog,
    metric: str | None,
    shown: str,
    chosen: Mapping[str, Sequence[int]] | None = None,
    parts: bool = False,
    measured: bool = False,
    pinned: Sequence[str] | None = None,
) -> Explorer:
    """Creates the explorer of a store.

    Args:
        store: The results store.
        catalog: The registry; models and settings may be unknown to it.
        metric: The metric to show first; None for each setting's main one.
        shown: The store's name on the page.
        chosen: For an export, setting → the positions of included samples; None for all samples of all settings.
        parts: Whether to show parts of settings, such as ``val.random-500``, that are not in ``chosen``.
        measured: Whether published values were measured by whom the pages are of, and are not marked.
        pinned: The pinned models; None for the newest one of this store's own beside published values.
    """
    found = store.results.sampled_settings()
    settings = sorted(name for name in found if parts or not is_part(name) or name in (chosen or ()))
    embedded = {name for name, (task, _) in store.names.tasks().items() if task == image_embedding.name}
    complete = {name for name, there in found.items() if there}
    sampled = complete - embedded if chosen is None else set(chosen)
    overview = Overview(store, catalog, settings, shown, metric, sampled, complete - embedded, measured, pinned)
    leaders = Leaders(store, overview)
    samples = SamplesPart(store, catalog, settings, chosen)
    cells, disagreements, claims = Cells(store, settings), Disagreements(store), Claims(store, overview)
    breakdowns, training = Breakdowns(store, cells), Training(store, settings, metric)
    return Explorer([overview, leaders, cells, breakdowns, disagreements, claims, training, samples])


def samples_part(explorer: Explorer) -> SamplesPart:
    """Creates the documents of samples."""
    return next(part for part in explorer.parts if isinstance(part, SamplesPart))
