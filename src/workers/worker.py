"""A worker: takes passes and shards, runs kernels on them, and passes values to the writer."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

import torch

from testbed.db.store import Store
from testbed.entities import Chunk
from testbed.graph.nodes import Reads
from testbed.graph.passes import Job, Pass, Shard
from testbed.process import profiling
from testbed.process.profiling import WRITER, stage
from testbed.registry.catalog import Catalog
from testbed.tracing import access_log
from testbed.workers.channel import Channel
from testbed.workers.context import Context
from testbed.workers.kernels.images import ImageKernel
from testbed.workers.kernels.kernel import Kernel, ShardDone, ShardProgress, ShardStarted
from testbed.workers.kernels.messages import MessageKernel
from testbed.workers.kernels.questions import QuestionKernel
from testbed.workers.kernels.rows import OutputKernel, RowKernel
from testbed.workers.kernels.texts import TextKernel

KERNELS: Mapping[Reads, type[Kernel]] = {
    Reads.IMAGES: ImageKernel,
    Reads.ROWS: RowKernel,
    Reads.OUTPUTS: OutputKernel,
    Reads.MESSAGES: MessageKernel,
    Reads.TEXTS: TextKernel,
    Reads.QUESTIONS: QuestionKernel,
}


class Worker:
    """Works through passes until none are left.

    Args:
        job: What is to be computed.
        store: Where values go.
        channel: To the run.
        device: Such as ``"cuda:0"``.
        checked: The store that a check is about.
        borrows: Whether this is the user's own process, whose networks are put back as they were.
    """

    def __init__(
        self,
        job: Job,
        catalog: Catalog,
        store: Store,
        channel: Channel,
        device: str,
        checked: Store | None = None,
        borrows: bool = False,
    ) -> None:
        self.channel = channel
        self.context = Context(job, catalog, store, channel, device, checked, borrows)
        self.writer = Writer(store, channel, job.options.store_dtype)
        if job.options.profile:
            profiling.start(torch.cuda.synchronize if device.startswith("cuda") else None)
        self.passes = {one_pass.id: one_pass for one_pass in job.passes}

    def run(self) -> None:
        """Works until all is done or the run is stopped.

        Raises:
            StoreError: If values cannot be stored.
            StrictError: If a sample cannot be read and the run is strict.
        """
        try:
            while not self.channel.stopping() and (pass_id := self.channel.next_pass()) is not None:
                began = time.perf_counter()
                with access_log.watch(access_log.SHARED):
                    self._work_on(self.passes[pass_id])
                # Nobody answers a worker that waits for another pass while the run waits for what it failed to store.
                self.writer.drain()
                if self.context.options.profile:
                    self._tell_times(pass_id, began)
        finally:
            self.context.unload()
            self.writer.close()
            if self.context.options.profile:
                profiling.stop()  # this process may do something else next

    def _work_on(self, one_pass: Pass) -> None:
        kernel = KERNELS[one_pass.reads](self.context, one_pass)
        share = 1.0  # of the shard that is being computed
        with closing(kernel.run(self._shards(one_pass))) as events:
            for event in events:
                self.writer.check()
                match event:
                    case ShardStarted(shard):
                        share = shard.share
                        self.channel.shard_begun(shard.id)
                    case ShardProgress(count):
                        self.channel.progress(one_pass.id, count * share)
                    case ShardDone(whole=True):
                        self.writer.submit(event)
                    case ShardDone():
                        self.writer.store(event)
        self.context.tell_usage()

    def _tell_times(self, pass_id: int, began: float) -> None:
        """Reports the time of a pass by stage; time outside the stages is ``other``."""
        total, seconds = time.perf_counter() - began, profiling.take()
        own = sum(value for name, value in seconds.items() if name in profiling.STAGES)
        self.channel.spent(pass_id, {**seconds, "other": max(0.0, total - own)})

    def _shards(self, one_pass: Pass) -> Iterator[Shard]:
        """The shards that the run assigns, requested one by one."""
        while not self.channel.stopping() and (shard := self.channel.next_shard(one_pass.id)) is not None:
            yield shard


# The number of shards that may wait while another is written. More would only cost memory.
WAITING = 1


class Writer:
    """A thread that stores the values of shards and then reports them as done.

    Args:
        channel: The connection to the run.
        dtype: The precision at which outputs of numbers are stored; None for that at which they were computed.
    """

    def __init__(self, store: Store, channel: Channel, dtype: str | None = None) -> None:
        self._dtype = getattr(torch, dtype) if dtype is not None else None
        self._store = store
        self._channel = channel
        self._queue: queue.Queue[ShardDone | None] = queue.Queue(WAITING)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=WRITER, daemon=True)
        self._thread.start()

    def submit(self, done: ShardDone) -> None:
        """Queues the values of a shard; blocks while the queue is full.

        Raises:
            StoreError: If earlier values could not be stored.
        """
        self.check()
        self._tell_reads()  # before the shard is reported as done
        with stage("store"):
            self._queue.put(done)

    def store(self, done: ShardDone) -> int:
        """Stores values immediately; returns the number of bytes of outputs."""
        with stage("store"):
            if done.items is not None:
                each = done.items
                self._store.items.put(each.node, each.requests, each.values, replace=each.replace)
            return self._store.outputs.append([self._as_stored(chunk) for chunk in done.chunks], done.errors)

    def _as_stored(self, chunk: Chunk) -> Chunk:
        """A chunk at the precision at which it is to be stored."""
        values = chunk.values
        if self._dtype is None or not isinstance(values, torch.Tensor) or not values.is_floating_point():
            return chunk
        return replace(chunk, values=values.to(self._dtype))

    def check(self) -> None:
        """Raises the error of the thread, if any."""
        if self._error is not None:
            raise self._error

    def drain(self) -> None:
        """Waits until what is queued is stored."""
        with stage("store"):
            self._queue.join()
        self.check()

    def close(self) -> None:
        """Stores what is queued and ends the thread; raises StoreError if something could not be stored."""
        self._tell_reads()
        self._queue.put(None)
        self._thread.join()
        self.check()

    def _tell_reads(self) -> None:
        if reads := access_log.fresh():
            self._channel.read(reads)

    def _run(self) -> None:
        while (done := self._queue.get()) is not None:
            try:
                if self._error is None:  # else only drain the queue, so that nobody blocks forever
                    self._channel.shard_done(done.shard.id, self.store(done))
            except BaseException as error:
                self._error = error
            finally:
                self._queue.task_done()
