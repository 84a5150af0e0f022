"""The environment of a kernel: the run's options, definitions, stored values and loaded models."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from testbed.calls import catchable
from testbed.contracts.borrowed import Loan
from testbed.db.store import Store
from testbed.errors import StoreError
from testbed.graph.build import Graph
from testbed.graph.nodes import Artifact, Given, Rows
from testbed.graph.passes import Job, PassCell
from testbed.models.base.parameters import parameters_of
from testbed.models.base.weights import note_loaded
from testbed.models.model_base import LoadOptions
from testbed.process.profiling import stage
from testbed.registry.catalog import Catalog
from testbed.tasks.task_base import get_task
from testbed.tracing import access_log
from testbed.workers.channel import Channel

log = logging.getLogger("testbed")


class Context:
    """The environment of a worker's kernels.

    Attributes:
        again: For a check, how many classes of a stored zero-shot head are recomputed; else 0.
        asked: The questions that this worker had answered, by node and text.
        found: Model → the number of answers that were stored already.
        fitted: What was fitted to stored outputs, by the rule and the evaluation.
    """

    def __init__(
        self,
        job: Job,
        catalog: Catalog,
        store: Store,
        channel: Channel,
        device: str,
        checked: Store | None,
        borrows: bool = False,
    ) -> None:
        self.job = job
        self.options = job.options
        self.catalog = catalog
        self.store = store
        self.device = device
        self.again = job.check.classes if job.check is not None else 0
        self.channel = channel
        self._checked = checked
        self._made: set[str] = set()  # fingerprints of artifacts computed by this worker
        self._loaded: dict[str, Any] = {}
        self._borrows = borrows
        self._loans: dict[str, Loan] = {}
        self.asked: set[tuple[str, str]] = set()
        self.found: Counter[str] = Counter()
        self.fitted: dict[tuple[Any, ...], Any] = {}

    def tell_usage(self) -> None:
        """Reports how much served models were used since the last report."""
        for name, loaded in self._loaded.items():
            usage = getattr(getattr(loaded, "generator", None), "usage", None)
            told = [usage.take()] if usage is not None else []
            if found := self.found.pop(name, 0):
                told.append(f"{found:,} answer{'' if found == 1 else 's'} stored already")
            if any(told):
                self.channel.note(f"{name}: {'; '.join(filter(None, told))}")

    def rows(self, cell: PassCell) -> Rows:
        """Returns the rows that are computed for a cell."""
        setting = self.catalog.get_eval_setting(cell.setting)
        built = get_task(setting.task).build(Graph(self.catalog.get_model(cell.model), setting))
        assert isinstance(built.outputs, Rows)
        return built.outputs

    def ones(self, cell: PassCell, rows: Rows, loaded: Any, given: Given) -> dict[str, torch.Tensor]:
        """The heads and probes of a cell, by role: stored ones, or made now and stored."""
        with stage("load", on_device=True):
            return {role: self._one(cell, one, loaded, given) for role, one in rows.ones.items()}

    def _one(self, cell: PassCell, one: Artifact, loaded: Any, given: Given) -> torch.Tensor:
        fingerprint = one.fingerprint(given, loaded.definition)
        if not fingerprint:  # it is in files
            return one.make(loaded, given)[0]
        anew = cell.model in self.job.anew
        found = None if anew and fingerprint not in self._made else self._artifact(fingerprint)
        if found is None:
            value, about = one.make(loaded, given)
            self.store.artifacts.put(fingerprint, one.kind, value, about, replace=anew)
            self._made.add(fingerprint)
            found = self._artifact(fingerprint)  # use the stored one, in case another process made it too
            if found is None:
                return value
        value = torch.from_numpy(np.array(found))
        return one.remake(value, loaded, given, self.again) if self.again else value

    def _artifact(self, fingerprint: str) -> Any | None:
        """A stored head or probe; a check also looks into the store that it checks."""
        found = self.store.artifacts.get(fingerprint)
        return found if found is not None or self._checked is None else self._checked.artifacts.get(fingerprint)

    def given(self, cell: PassCell, kind: str, positions: Sequence[int]) -> list[Any]:
        """The outputs of samples of a cell that other evaluations have; see `PassCell.given`.

        Raises:
            StoreError: If they are gone.
        """
        wanted: dict[int, list[tuple[int, int]]] = {}
        for position in positions:
            evaluation_id, there = cell.given[position]
            wanted.setdefault(evaluation_id, []).append((position, there))
        found: dict[int, Any] = {}
        for evaluation_id, pairs in wanted.items():
            rows = self.store.outputs.read_rows(evaluation_id, kind, [there for _, there in pairs])
            found.update({position: row for (position, _), row in zip(pairs, rows, strict=True)})
        if any(row is None for row in found.values()):
            raise StoreError(f"outputs of {cell.model} on {cell.setting} were removed from the store during the run")
        return [found[position] for position in positions]

    def load(self, names: Sequence[str]) -> dict[str, Any]:
        """Loads models and unloads all others; a model that cannot be loaded is replaced by its error."""
        with stage("load", on_device=True):
            return self._load(names)

    def _load(self, names: Sequence[str]) -> dict[str, Any]:
        for name in list(self._loaded):
            if name not in names:
                self._unload(name)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        run = self.options
        options = LoadOptions(self.device, run.dtype, run.random_seed, run.compile, run.channels_last)
        for name in names:
            if isinstance(self._loaded.get(name), Exception | None):
                try:
                    definition = self.catalog.get_model(name)
                    with catchable(), access_log.watch(access_log.model(name)), self._lent(name):
                        self._loaded[name] = definition.load(options)
                    if run.random_seed is None:
                        note_loaded(name, definition.weights_source)
                except Exception as error:
                    log.debug("%s cannot be loaded", name, exc_info=True)
                    self._loaded[name] = error.with_traceback(None)  # or it keeps parts of the network
                    self._give_back(name)
                else:
                    self._tell_size(name)
        return dict(self._loaded)

    def _lent(self, name: str) -> contextlib.AbstractContextManager[Any]:
        """Notes how the networks that are loaded within the block were found, if they may be the user's own."""
        if not self._borrows:
            return contextlib.nullcontext()
        self._give_back(name)  # after a first attempt that failed
        self._loans[name] = Loan()
        return self._loans[name].taking()

    def unload(self) -> None:
        """Unloads all models; networks of the user's own are then as they were."""
        for name in list(self._loaded):
            self._unload(name)
        for name in list(self._loans):  # of one whose loading was interrupted
            self._give_back(name)

    def _unload(self, name: str) -> None:
        del self._loaded[name]
        self._give_back(name)

    def _give_back(self, name: str) -> None:
        if name in self._loans:
            self._loans.pop(name).end()

    def _tell_size(self, name: str) -> None:
        count = parameters_of(self._loaded[name])
        if count is not None:
            self.store.names.set_parameters(name, count)

    def load_one(self, name: str) -> Any:
        """Loads one model; raises its error if it cannot be loaded."""
        loaded = self.load([name])[name]
        if isinstance(loaded, Exception):
            raise loaded
        return loaded
