"""A worker: takes passes and tasks, loads models, computes outputs, hands them to the writer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from testbed import reading
from testbed.data.reader import Batch, ByName, CpuPerturbation, Item, Reader, collate, portable
from testbed.data.source import ImageSource
from testbed.db.entities import Chunk
from testbed.db.store import Store
from testbed.errors import RunError
from testbed.models.model_base import LoadOptions
from testbed.registry.catalog import Catalog
from testbed.registry.parcel import Parcel
from testbed.runner.cells import Job, Pass, PassCell, PassKind, Task
from testbed.runner.channel import Channel
from testbed.runner.memory import InPieces
from testbed.runner.on_embeddings import EmbeddingRun
from testbed.runner.on_messages import GenerationRun
from testbed.runner.on_texts import TextRun
from testbed.runner.variants import ReadyCell, Variants
from testbed.runner.writer import Writer
from testbed.tasks.task_base import PrepareContext, get_task

log = logging.getLogger("testbed")


class Worker:
    """Works through passes until there are none left.

    Args:
        job: The run.
        catalog: Where definitions are looked up.
        store: Where outputs go.
        channel: The run's other end.
        device: Such as ``"cpu"`` or ``"cuda:0"``.
    """

    def __init__(self, job: Job, catalog: Catalog, store: Store, channel: Channel, device: str) -> None:
        self.job = job
        self.catalog = catalog
        self.store = store
        self.channel = channel
        self.device = device
        self.writer = Writer(store, channel)
        self.passes = {each.id: each for each in job.passes}
        self.again = job.check.classes if job.check is not None else 0
        self._prepared = Store.open(job.check.db_url) if job.check is not None else None
        self._made: set[str] = set()  # fingerprints of what was prepared here
        self._loaded: dict[str, Any] = {}

    def run(self) -> None:
        """Works until all is done or the run is stopped.

        Raises:
            StoreError: If outputs cannot be stored.
            RunError: If a sample cannot be read and the run is strict.
        """
        try:
            while not self.channel.stopping() and (pass_id := self.channel.next_pass()) is not None:
                one_pass = self.passes[pass_id]
                with reading.watch(reading.SHARED):
                    _RUNS[one_pass.kind](self, one_pass).run()
        finally:
            self.writer.close()
            if self._prepared is not None:
                self._prepared.close()

    def artifacts(self, model: str) -> tuple[Callable[[str], Any | None], Callable[..., None]]:
        """How to look up and how to store what is prepared for a model.

        A check of stored outputs looks into the store that has these, too. For a model of which everything is to be
        made anew, only what this worker has made counts.
        """
        anew = model in self.job.anew

        def get(fingerprint: str) -> Any | None:
            if anew and fingerprint not in self._made:
                return None
            found = self.store.get_artifact(fingerprint)
            return found if found is not None or self._prepared is None else self._prepared.get_artifact(fingerprint)

        def put(fingerprint: str, kind: str, values: Any, spec: dict[str, Any]) -> None:
            self.store.put_artifact(fingerprint, kind, values, spec, replace=anew)
            self._made.add(fingerprint)

        return get, put

    def load(self, names: Sequence[str]) -> dict[str, Any]:
        """The models of these names; others are dropped first. In place of one that cannot be loaded is its error."""
        for name in list(self._loaded):
            if name not in names:
                del self._loaded[name]
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        options = LoadOptions(self.device, self.job.options.dtype, self.job.options.random_seed)
        for name in names:
            if isinstance(self._loaded.get(name), Exception | None):
                try:
                    with reading.watch(reading.model(name)):
                        self._loaded[name] = self.catalog.get_model(name).load(options)
                except Exception as error:
                    log.debug("%s cannot be loaded", name, exc_info=True)
                    self._loaded[name] = error.with_traceback(None)  # which would keep half of a network alive
        return dict(self._loaded)


class PassRun:
    """A worker's part of a pass."""

    def __init__(self, worker: Worker, one_pass: Pass) -> None:
        assert isinstance(one_pass.source, ImageSource)
        self.worker = worker
        self.one_pass = one_pass
        self.source = one_pass.source
        self.options = worker.job.options
        self.tasks: dict[int, TaskBuffer] = {}
        self.failed: set[int] = set()
        self.ready: dict[int, ReadyCell] = {}

    def run(self) -> None:
        """Computes tasks of the pass until none is left."""
        self._prepare()
        one_pass = self.one_pass
        variants = Variants(self.source, one_pass.positions, one_pass.targets, self.worker.device, self.options.seed)
        try:
            for batch in self._batches():
                self._compute(variants, batch)
                if self.worker.channel.stopping():
                    self._store_begun()
                    return
        except RunError as error:
            if self.options.strict:
                raise
            log.debug("a pass failed", exc_info=True)
            self._fail_rest(str(error))
        finally:
            self.ready.clear()  # so that the networks are gone before the next ones are loaded

    # Preparing ----------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Loads the models and binds every cell; what fails here fails for its own cells."""
        loaded = self.worker.load(self.one_pass.models)
        for cell in self.one_pass.cells:
            model = loaded[cell.model]
            try:
                if isinstance(model, Exception):
                    raise model
                self.ready[cell.evaluation_id] = self._bind(cell, model)
            except Exception as error:
                log.debug("%s on %s cannot be prepared", cell.model, cell.setting, exc_info=True)
                first = (str(error).strip().splitlines() or [""])[0]
                self._fail(cell.evaluation_id, f"{type(error).__name__}: {first}")

    def _bind(self, cell: PassCell, loaded: Any) -> ReadyCell:
        setting = self.worker.catalog.get_eval_setting(cell.setting)
        prepared = self.worker.artifacts(cell.model)
        context = PrepareContext(cell.model_identity, self.source.class_names, *prepared, again=self.worker.again)
        bound = get_task(setting.task).bind(loaded, setting, context)
        size = loaded.definition.batch_size(setting.adversarial_attack is not None, self.options.batch_size)
        channel = self.worker.channel
        pieces = InPieces(size, lambda text: channel.note(f"{cell.model} on {cell.setting}: {text}"))
        return ReadyCell(cell, loaded.definition, setting, bound, pieces)

    # Reading ------------------------------------------------------------------------------------------------------

    def _reader(self) -> Reader:
        settings = {cell.setting.name: cell.setting for cell in self.ready.values()}
        travels = self.worker.job.data_workers > 0
        plugins = self.options.plugins
        first = next(iter(self.ready.values()))
        perturbations = [
            CpuPerturbation(
                name,
                portable(setting.perturbation_fn_cpu, ByName("setting", name, "perturbation_fn_cpu", plugins), travels),
                setting.noise_key,
            )
            for name, setting in settings.items()
            if setting.perturbation_fn_cpu is not None
        ]
        return Reader(
            self.source,
            self.one_pass.positions,
            portable(first.model.transform, ByName("model", first.model.name, "transform", plugins), travels),
            portable(first.setting.transform, ByName("setting", first.setting.name, "transform", plugins), travels),
            perturbations,
            plain=any(setting.perturbation_fn_cpu is None for setting in settings.values()),
            seed=self.options.seed,
        )

    def _batches(self) -> Iterator[Batch]:
        """The batches of the tasks that the run hands out, read ahead by the data workers."""
        if not self.ready:
            self._give_back()
            return
        workers = self.worker.job.data_workers
        loader: Any = torch.utils.data.DataLoader(
            Travelling(self._reader(), self.options.plugins),
            batch_sampler=self._sampler(),
            num_workers=workers,
            collate_fn=collate,
            pin_memory=self.worker.device.startswith("cuda"),
            multiprocessing_context=_data_worker_context() if workers else None,
        )
        iterator = iter(loader)
        while True:
            try:
                batch = next(iterator, None)
            except Exception as error:  # what a transform raises comes out of the loader
                # From a data worker it comes with its traceback as text; the last line says what it was.
                if "DataLoader worker" in str(error):  # killed, by the system perhaps: a new worker may do better
                    raise
                last = (str(error).strip().splitlines() or [""])[-1]
                raise RunError(f"reading failed: {type(error).__name__}: {last}") from error
            if batch is None:
                return
            yield batch

    def _sampler(self) -> Iterator[list[tuple[int, int]]]:
        """The places of each batch. Asked for ahead of time, so that tasks are taken while others are computed."""
        while not self.worker.channel.stopping():
            task = self.worker.channel.next_task(self.one_pass.id)
            if task is None:
                return
            self.tasks[task.id] = TaskBuffer(task)
            places = range(task.start, task.stop)
            for start in range(0, len(places), self.one_pass.batch_size):
                yield [(task.id, place) for place in places[start : start + self.one_pass.batch_size]]

    # Computing ----------------------------------------------------------------------------------------------------

    def _compute(self, variants: Variants, batch: Batch) -> None:
        buffer = self.tasks[batch.task]
        reading.note(batch.reads)
        if batch.errors and self.options.strict:
            raise RunError(f"{next(iter(batch.errors.values()))} (and --strict is given)")
        cells = [
            self.ready[evaluation_id]
            for evaluation_id in buffer.task.cells
            if evaluation_id in self.ready and evaluation_id not in self.failed
        ]
        if buffer.read == 0:
            self.worker.channel.task_begun(batch.task)
        if batch.good:
            variants.compute(
                cells,
                batch,
                deliver=lambda cell, outputs: buffer.put(cell.cell.evaluation_id, batch.good, outputs),
                fail=lambda cell, reason: self._fail(cell.cell.evaluation_id, reason),
            )
        buffer.note_read(batch)
        self.worker.channel.progress(self.one_pass.id, len(batch.indices))
        if buffer.complete:
            del self.tasks[batch.task]
            self.worker.writer.submit(buffer.task.id, *self._outputs(buffer))

    def _outputs(self, buffer: TaskBuffer) -> tuple[list[Chunk], dict[int, dict[int, str]]]:
        alive = [evaluation_id for evaluation_id in buffer.task.cells if evaluation_id in self.ready]
        return buffer.chunks({each: get_task(self.ready[each].setting.task).output_kind for each in alive})

    def _store_begun(self) -> None:
        """Stores the beginnings of tasks when the run is stopped; the rest of each is for another run."""
        for buffer in self.tasks.values():
            if buffer.read:
                self.worker.store.append(*self._outputs(buffer))

    # Failing ------------------------------------------------------------------------------------------------------

    def _fail(self, evaluation_id: int, reason: str) -> None:
        if evaluation_id not in self.failed:
            self.failed.add(evaluation_id)
            self.ready.pop(evaluation_id, None)
            self.worker.channel.cell_failed(evaluation_id, reason)

    def _fail_rest(self, reason: str) -> None:
        """The samples of the pass cannot be read: all its cells have failed."""
        for cell in self.one_pass.cells:
            self._fail(cell.evaluation_id, reason)
        self._give_back()

    def _give_back(self) -> None:
        """Takes and drops the tasks that are left, whose cells have all failed."""
        for buffer in self.tasks.values():
            self.worker.writer.submit(buffer.task.id, [], {})
        while not self.worker.channel.stopping():
            task = self.worker.channel.next_task(self.one_pass.id)
            if task is None:
                return
            self.worker.writer.submit(task.id, [], {})


_RUNS: dict[PassKind, type[Any]] = {
    PassKind.IMAGES: PassRun,
    PassKind.EMBEDDINGS: EmbeddingRun,
    PassKind.MESSAGES: GenerationRun,
    PassKind.TEXTS: TextRun,
}


class TaskBuffer:
    """The outputs of a task while its batches come in."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.read = 0
        self.errors: dict[int, str] = {}
        self.arrays: dict[int, torch.Tensor] = {}

    @property
    def complete(self) -> bool:
        """Whether all samples of the task were read."""
        return self.read == self.task.count

    def put(self, evaluation_id: int, places: Sequence[int], outputs: torch.Tensor) -> None:
        """Puts outputs [len(places), …] at their places; rows that never come stay NaN."""
        if evaluation_id not in self.arrays:
            shape = (self.task.count, *outputs.shape[1:])
            self.arrays[evaluation_id] = torch.full(shape, float("nan"), dtype=outputs.dtype)
        rows = torch.tensor([place - self.task.start for place in places])
        self.arrays[evaluation_id][rows] = outputs

    def note_read(self, batch: Batch) -> None:
        """Counts the samples of a batch."""
        self.read += len(batch.indices)
        self.errors.update(batch.errors)

    def chunks(self, kinds: Mapping[int, str]) -> tuple[list[Chunk], dict[int, dict[int, str]]]:
        """What was read so far.

        Args:
            kinds: Evaluation id → the kind of its outputs.

        Returns:
            The outputs of these evaluations, and the errors of unreadable samples for each.
        """
        chunks = [
            Chunk(evaluation_id, kind, self.task.start, self.arrays[evaluation_id][: self.read])
            for evaluation_id, kind in kinds.items()
            if evaluation_id in self.arrays
        ]
        return chunks, {evaluation_id: dict(self.errors) for evaluation_id in kinds} if self.errors else {}


class Travelling(torch.utils.data.Dataset[Item]):
    """A reader as a data set of torch's; unpacked in a data worker after the plug-ins have been loaded there."""

    def __init__(self, reader: Reader, plugins: tuple[str, ...]) -> None:
        self.reader = reader
        self.plugins = plugins

    def __getitem__(self, key: tuple[int, int]) -> Item:
        """Reads a sample."""
        return self.reader[key]

    def __getstate__(self) -> dict[str, Any]:
        return {"reader": Parcel(self.reader, self.plugins), "plugins": self.plugins}


def _data_worker_context() -> Any:
    """Processes that inherit neither threads nor the GPU: from a fork server that has imported torch, else spawned."""
    import multiprocessing

    if "forkserver" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torch", "torchvision.transforms", "PIL.Image", "testbed.data.reader"])
        return context
    return multiprocessing.get_context("spawn")
