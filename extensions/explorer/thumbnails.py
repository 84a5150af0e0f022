"""Thumbnails in the store, so that a page has pictures without the data: ``testbed run --thumbnails``.

They are keyed by the content of a picture, are shared by all settings with it, and are not part of any identity.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.errors import TestbedError
from testbed.inputs import active, use_in_this_thread
from testbed.stored_results.evaluated import SettingSamples
from testbed.stored_results.pictures import CLEAN, NODE, OWN, Pictures, key_of, thumbnail_of

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.registry.catalog import Catalog

_TOGETHER = 256  # thumbnails in a transaction


@dataclass
class ThumbnailCounts:
    """The outcome of storing thumbnails.

    Attributes:
        number: Number of new thumbnails.
        size: Total bytes.
        skipped: Number of unreadable pictures.
    """

    number: int = 0
    size: int = 0
    skipped: int = 0


def store_thumbnails(
    store: Store, catalog: Catalog, settings: Iterable[str], tell: Callable[[str], None] = lambda note: None
) -> ThumbnailCounts:
    """Stores a thumbnail of every sample without one; for perturbed settings also the perturbed images.

    Args:
        store: Open for writing.
        catalog: Catalog with the data sets.
        settings: Names of settings in the store.
        tell: Called with notes on settings without pictures.
    """
    pictures, done = Pictures(store, catalog), ThumbnailCounts()
    for name in dict.fromkeys(settings):
        samples = SettingSamples.of(store, name)
        if samples is None:
            continue
        problem = pictures.problem(samples)
        if problem is not None:
            tell(f"no thumbnails of {name}: {problem}")
            continue
        for which, wanted in _lacking(store, catalog, samples):
            _store(store, pictures, samples, which, wanted, done)
    return done


def _lacking(store: Store, catalog: Catalog, samples: SettingSamples) -> Iterator[tuple[str, dict[str, Any]]]:
    """The pictures of a setting without thumbnails: key → sample, for unperturbed and perturbed pictures."""
    infos = store.datasets.get(samples.dataset).samples
    perturbation = catalog.get_eval_setting(samples.name).perturbation
    whole = {key_of(samples, info, False): info for info in infos}
    changed = {key_of(samples, info, True): info for info in infos} if perturbation else {}
    if perturbation.attacks or perturbation.needs_targets:
        changed = {}
    for which, every in ((CLEAN if perturbation else OWN, whole), (OWN, changed)):
        yield which, {key: every[key] for key in store.items.lacking(NODE, every)}


def _store(
    store: Store, pictures: Pictures, samples: SettingSamples, which: str, wanted: dict[str, Any], done: ThumbnailCounts
) -> None:
    keys = list(wanted)
    make = partial(_thumbnail, pictures, samples, which)
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1), initializer=use_in_this_thread, initargs=(active(),)) as pool:
        for start in range(0, len(keys), _TOGETHER):
            part = keys[start : start + _TOGETHER]
            made = dict(zip(part, pool.map(make, [wanted[key] for key in part]), strict=True))
            known = {key: value for key, value in made.items() if value is not None}
            values = tuple(np.frombuffer(value, dtype=np.uint8) for value in known.values())
            store.items.put(NODE, list(known), values)
            done.number += len(known)
            done.size += sum(len(value) for value in known.values())
            done.skipped += len(made) - len(known)


def _thumbnail(pictures: Pictures, samples: SettingSamples, which: str, info: Any) -> bytes | None:
    try:
        return thumbnail_of(pictures.image(samples, info, which))
    except TestbedError:
        return None
