"""Caches identities of loaded networks: loading one only to hash it takes seconds.

The reads of loading a network are cached with its identity, as a record (`testbed.provenance.manifest`). While none of
them has changed, neither has the network: a loader draws the same random numbers each time
(`testbed.models.base.weights.loading`).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from testbed.identity.describe import SCHEME, digest
from testbed.inputs import active
from testbed.models.base.weights import Weights
from testbed.models.model_base import ModelDefinition
from testbed.paths import cache_dir, write_atomically
from testbed.provenance.manifest import Today, Use
from testbed.provenance.uses import Uses
from testbed.tracing import access_log

# How many times as big as the files other than code that its loading read a network may be. The weights of a bigger one
# came from a file that nobody saw, such as one that C code opens by itself.
_GROWTH = 4


class RememberedWeights:
    """The identities of networks whose definition does not identify their weights."""

    def __init__(self, plugins: Sequence[Path]) -> None:
        self._plugins = plugins

    def of(
        self,
        definition: ModelDefinition,
        description: Any,
        files: set[str],
        load: Callable[[], Weights | None],
    ) -> Weights | None:
        """The weights of a model: remembered if nothing of its files has changed, else loaded and identified now."""
        place = cache_dir("networks") / f"{digest([SCHEME, definition.name, description, repr(active())])}.json"
        if (known := self._known(place)) is not None:
            return known
        if definition.needs_torch:
            import torch  # noqa: F401 -- what that reads, and draws, is not the loader's
        had_torch = "torch" in sys.modules
        weights = load()
        if not had_torch and "torch" in sys.modules:  # torch, which seeds itself, was imported on the way
            weights = load()
        uses = self._uses.of(files, [access_log.model(definition.name)])
        if weights is not None and 0 < weights.size_bytes <= _GROWTH * _size(uses):
            # A new one: files that are read now may have been looked at before.
            record = Today(self._plugins).record_of(uses)
            write_atomically(place, json.dumps({"weights": asdict(weights), "record": record}).encode())
        return weights

    def _known(self, place: Path) -> Weights | None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            stored = json.loads(place.read_text(encoding="utf-8"))
            if not self._today.differences(stored["record"]):
                return Weights(**stored["weights"])
        return None

    @cached_property
    def _today(self) -> Today:
        return Today(self._plugins)

    @cached_property
    def _uses(self) -> Uses:
        return Uses(Today(self._plugins).plugins, declared=True)


def _size(uses: Iterable[Use]) -> int:
    """The size of the files among what something depends on, without code."""
    places = [access_log.place_of(name) for kind, name in uses if kind == access_log.FILE and not name.endswith(".py")]
    return sum(os.path.getsize(place) for place in places if os.path.isfile(place))
