"""Passes on images: reading, perturbing and running networks, with one read for many cells."""

from __future__ import annotations

import logging
import os
import re
import signal
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch

from testbed.calls import ExitError, catchable, first_line, reason_of
from testbed.data.decoded import DecodedImages
from testbed.data.reader import Batch, BatchReader, ByName, CpuPerturbation, Item, collate, portable
from testbed.data.source import ImageSource
from testbed.devices import Download, runs_ahead
from testbed.entities import Chunk
from testbed.errors import RunError, StoreError, message_of
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.nodes import Given
from testbed.graph.passes import Pass, PassCell, Shard
from testbed.inputs import active, using
from testbed.models.model_base import ModelDefinition
from testbed.process import profiling
from testbed.process.oom import DeviceError, InPieces, is_device_error
from testbed.process.processes import begin, data_processes
from testbed.registry.plugin_pickle import PluginPickle
from testbed.tracing import access_log, patches
from testbed.workers.context import Context
from testbed.workers.kernels.kernel import (
    Event,
    Kernel,
    ShardBuffer,
    ShardDone,
    ShardProgress,
    ShardStarted,
    StrictError,
)
from testbed.workers.kernels.looks import Look, Looks
from testbed.workers.kernels.variants import ReadyCell, Receiver, Variants, in_whole_batches

log = logging.getLogger("testbed")

_FROM_DATA_WORKER = "in DataLoader worker process"  # in what torch says of an error of our code or the user's


class ImageKernel(Kernel):
    """Reads images once for all cells of a pass, and computes each perturbation and each model's features once."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        assert isinstance(one_pass.source, ImageSource)
        self.source = one_pass.source
        self.options = context.options
        self.buffers: dict[int, ShardBuffer] = {}
        self.failed: set[int] = set()
        self.ready: dict[int, ReadyCell] = {}
        self._shards: Iterator[Shard] = iter(())
        self._pieces: dict[tuple[str, int, bool], InPieces] = {}
        self._copied: list[ShardBuffer] = []  # shards of which nothing is left to be computed
        self._under_way: deque[RunningBatch] = deque()  # batches that the device computes
        self._looks = Looks(context, self._fail)

    def run(self, shards: Iterator[Shard]) -> Generator[Event, None, None]:
        """See `Kernel.run`."""
        first = next(shards, None)
        if first is None:  # other runs compute all of it: no model need be loaded
            return
        self._shards = chain([first], shards)
        self._prepare()
        one_pass = self.one_pass
        variants = Variants(self.source, one_pass.positions, one_pass.targets, self.context.device, self.options.seed)
        try:
            for batch in self._batches():
                yield from self._compute(variants, batch)
                yield from self._copies()
                if self.context.channel.stopping():
                    yield from self._land(0)
                    yield from (ShardDone(each.shard, *self._outputs(each), whole=False) for each in self._begun())
                    return
            yield from self._land(0)
            yield from self._copies()
        except StrictError:
            raise
        except RunError as error:
            if self.options.strict:
                raise
            log.debug("a pass failed", exc_info=True)
            for cell in self.one_pass.cells:  # the samples of the pass cannot be read
                self._fail(cell.evaluation_id, str(error))
        finally:
            self._under_way.clear()
            self.ready.clear()  # frees the networks before the next ones are loaded
        taken = [buffer.shard for buffer in (*self._copied, *self.buffers.values())]
        yield from (ShardDone(shard) for shard in (*taken, *self._shards))

    def _copies(self) -> Iterator[Event]:
        while self._copied:
            buffer = self._copied.pop()
            yield ShardDone(buffer.shard, *self._outputs(buffer))

    def _begun(self) -> list[ShardBuffer]:
        return [buffer for buffer in self.buffers.values() if buffer.read]

    # Preparing ----------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Loads the models and binds the cells; an error fails only the cells that it affects."""
        loaded = self.context.load(self.one_pass.models)
        for cell in self.one_pass.cells:
            model = loaded[cell.model]
            try:
                if isinstance(model, Exception):
                    raise model
                with catchable():
                    self.ready[cell.evaluation_id] = self._bind(cell, model)
            except Exception as error:
                log.debug("%s on %s cannot be prepared", cell.model, cell.setting, exc_info=True)
                self._fail(cell.evaluation_id, reason_of(error))

    def _bind(self, cell: PassCell, loaded: Any) -> ReadyCell:
        setting, rows = self.context.catalog.get_eval_setting(cell.setting), self.context.rows(cell)
        given = Given(cell.model_identity, setting, self.source.class_names, _nothing, _nothing)
        steps = rows.op.steps(loaded, setting, self.context.ones(cell, rows, loaded, given), given.class_names)
        pieces = self._pieces_of(loaded.definition, setting)
        if self.options.compile:
            steps = in_whole_batches(steps, pieces)
        return ReadyCell(cell, loaded.definition, setting, rows.op.kind, steps, pieces)

    def _pieces_of(self, model: ModelDefinition, setting: EvalSetting) -> InPieces:
        """The pieces that fit into memory, shared by the cells of a model; attacks find out their own."""
        attacked = setting.perturbation.needs_model
        key = model.name, model.batch_size(setting.adversarial_attack is not None, self.options.batch_size), attacked
        if key not in self._pieces:
            self._pieces[key] = InPieces(key[1], lambda text: self.context.channel.note(f"{model.name}: {text}"))
        return self._pieces[key]

    # Reading ------------------------------------------------------------------------------------------------------

    def _reader(self) -> BatchReader:
        one_pass = self.one_pass
        settings = {cell.setting.name: cell.setting for cell in self.ready.values()}
        travels = self.context.job.data_workers > 0
        plugins = self.options.plugins
        first = next(iter(self.ready.values()))
        perturbations = [
            CpuPerturbation(
                name,
                portable(setting.perturbation_fn_cpu, ByName("setting", name, "perturbation_fn_cpu", plugins), travels),
                setting.perturbation.noise_key,
            )
            for name, setting in settings.items()
            if setting.perturbation_fn_cpu is not None
        ]
        return BatchReader(
            self.source,
            one_pass.positions,
            portable(first.model.transform, ByName("model", first.model.name, "transform", plugins), travels),
            portable(first.setting.transform, ByName("setting", first.setting.name, "transform", plugins), travels),
            perturbations,
            plain=any(setting.perturbation_fn_cpu is None for setting in settings.values()),
            seed=self.options.seed,
            decoded=DecodedImages(one_pass.pixels, self.options.decoded_cache) if one_pass.pixels else None,
            digests=one_pass.digests,
        )

    def _batches(self) -> Iterator[Batch]:
        """The batches of the assigned shards, prefetched by the data workers."""
        if not self.ready:
            return
        workers = self.context.job.data_workers
        loader: Any = torch.utils.data.DataLoader(
            PicklableDataset(self._reader(), self.options.plugins),
            batch_sampler=self._sampler(),
            num_workers=workers,
            collate_fn=collate,
            pin_memory=self.context.device.startswith("cuda"),
            multiprocessing_context=data_processes() if workers else None,
            worker_init_fn=partial(_begin_data_worker, dict(os.environ), self.options.profile),
        )
        iterator = None
        while True:
            try:
                with profiling.stage("wait"):
                    if iterator is None:
                        iterator = iter(loader)  # starts the data workers
                    batch = next(iterator, None)
            except StoreError:  # of the run, which was asked for the next shard
                raise
            except Exception as error:
                if workers and _FROM_DATA_WORKER not in message_of(error):  # one was killed, maybe by the system
                    raise DataWorkerLostError(reason_of(error)) from error
                raise RunError(f"reading failed: {_told(error)}") from error
            if batch is None:
                return
            yield batch

    def _sampler(self) -> Iterator[list[tuple[int, int]]]:
        """The positions of each batch. Prefetching takes shards while others are computed."""
        for shard in self._shards:
            buffer = ShardBuffer(shard)
            places = shard.positions
            if not places:
                self._copied.append(buffer)
                continue
            self.buffers[shard.id] = buffer
            for start in range(0, len(places), self.one_pass.batch_size):
                yield [(shard.id, place) for place in places[start : start + self.one_pass.batch_size]]

    # Computing ----------------------------------------------------------------------------------------------------

    def _compute(self, variants: Variants, batch: Batch) -> Iterator[Event]:
        """Starts a batch on the device, and collects the outputs of the batch before it."""
        buffer = self.buffers[batch.shard]
        access_log.note(batch.reads)
        profiling.note(batch.seconds, profiling.DATA_WORKERS)
        if batch.errors and self.options.strict:
            raise StrictError(f"{next(iter(batch.errors.values()))} (--strict stops the run)")
        if not buffer.begun:
            buffer.begun = True
            yield ShardStarted(buffer.shard)
            yield ShardProgress(0)  # from now on it is computed
        ahead = runs_ahead(self.context.device) and not buffer.shard.careful
        if not ahead:
            yield from self._land(0)
        launched = RunningBatch(buffer, batch)
        self._under_way.append(launched)
        try:
            yield from self._launch(variants, launched, exact=not ahead)
        except DeviceError:
            yield ShardStarted(self._under_way[0].buffer.shard)  # the first one that the error may be of
            raise
        yield from self._land(1 if ahead else 0)

    def _launch(self, variants: Variants, launched: RunningBatch, exact: bool) -> Iterator[Event]:
        buffer, batch = launched.buffer, launched.batch
        cells = [
            self.ready[evaluation_id]
            for evaluation_id in buffer.shard.cells
            if evaluation_id in self.ready and evaluation_id not in self.failed
        ]
        cells = self._looks.at_images(cells, batch)
        if not (batch.good and cells):
            yield ShardProgress(len(batch.indices))
            return

        def deliver(cell: ReadyCell, outputs: torch.Tensor) -> None:
            download = Download(outputs)
            if exact:
                download.wait()
            launched.outputs.append((cell.cell.evaluation_id, download))

        def fail(cell: ReadyCell, reason: str) -> None:
            self._fail(cell.cell.evaluation_id, reason)

        for done in variants.compute(
            cells, batch, Receiver(deliver, fail, partial(self._looks.at_perturbed, launched.looks), exact)
        ):
            yield ShardProgress(len(batch.indices) * done / len(cells))

    def _land(self, ahead: int) -> Iterator[Event]:
        """Takes the outputs of batches until only so many are under way."""
        while len(self._under_way) > ahead:
            launched = self._under_way[0]
            buffer = launched.buffer
            try:
                with profiling.stage("forward"):
                    for evaluation_id, download in launched.outputs:
                        outputs = download.wait()
                        buffer.put(evaluation_id, launched.batch.good, outputs)
                        self._looks.at_outputs(self.ready.get(evaluation_id), outputs)
                    self._looks.at_ranges(launched.looks, self.ready.values())
            except RuntimeError as error:
                if not is_device_error(error):
                    raise
                yield ShardStarted(buffer.shard)
                raise DeviceError(first_line(error)) from error
            self._under_way.popleft()
            buffer.note_read(launched.batch)
            if buffer.complete:
                del self.buffers[launched.batch.shard]
                yield ShardDone(buffer.shard, *self._outputs(buffer))

    def _outputs(self, buffer: ShardBuffer) -> tuple[list[Chunk], dict[int, dict[int, str]]]:
        alive = [evaluation_id for evaluation_id in buffer.shard.cells if evaluation_id in self.ready]
        kinds = {each: self.ready[each].kind for each in alive}
        if given := [position for position in buffer.shard.given if position < buffer.end]:
            for each, kind in kinds.items():
                rows = self.context.given(self.ready[each].cell, kind, given)
                buffer.put(each, given, torch.from_numpy(np.stack(rows)))
        return buffer.chunks(kinds)

    def _fail(self, evaluation_id: int, reason: str) -> None:
        if evaluation_id not in self.failed:
            self.failed.add(evaluation_id)
            self.ready.pop(evaluation_id, None)
            self.context.channel.cell_failed(evaluation_id, reason)


class DataWorkerLostError(Exception):
    """A data worker ended, or what it had read could not be fetched; a new worker may succeed."""


def _told(error: Exception) -> str:
    """The error of a transform as its last line; from a data worker, the message is a traceback as text."""
    if _FROM_DATA_WORKER not in message_of(error):
        return reason_of(error)
    last = message_of(error).strip().splitlines()[-1].removeprefix(f"{ExitError.__module__}.{ExitError.__name__}: ")
    return re.sub(r"^(?:\w+\.)+(?=\w+: )", "", last)


def _nothing(role: str) -> Any:
    raise AssertionError(f"a cell that reads images takes no embeddings, but {role} were asked for")


@dataclass
class RunningBatch:
    """A batch that was given to the device.

    Attributes:
        buffer: Where its outputs go.
        batch: The samples.
        outputs: Evaluation id and outputs [len(batch.good), …] of the cells that have been launched.
        looks: Settings and the ranges of the images that they have perturbed.
    """

    buffer: ShardBuffer
    batch: Batch
    outputs: list[tuple[int, Download]] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)


class PicklableDataset(torch.utils.data.Dataset[Item]):
    """A reader as a data set of torch's; unpacked in a data worker after the plug-ins have been loaded there.

    It reads with the inputs that are active where it is made.
    """

    def __init__(self, reader: BatchReader, plugins: tuple[str, ...]) -> None:
        self.reader = reader
        self.plugins = plugins
        self.inputs = active()

    def __getitem__(self, key: tuple[int, int]) -> Item:
        """Reads a sample."""
        with using(self.inputs):
            return self.reader[key]

    def __getstate__(self) -> dict[str, Any]:
        return {"reader": PluginPickle(self.reader, self.plugins), "plugins": self.plugins, "inputs": self.inputs}


def _begin_data_worker(environment: Mapping[str, str], profile: bool, number: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # which ends it
    begin(environment)
    patches.begin()
    if profile:
        profiling.start()
