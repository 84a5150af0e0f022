"""A worker: takes passes and shards, runs kernels on them, and passes values to the writer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing

import torch

from testbed.db.store import Store
from testbed.graph.nodes import Reads
from testbed.graph.passes import Job, Pass, Shard
from testbed.process import profiling
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
from testbed.workers.writer import Writer

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
        self.passes = {each.id: each for each in job.passes}

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
