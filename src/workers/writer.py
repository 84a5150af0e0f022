"""Stores values while the next ones are computed."""

from __future__ import annotations

import queue
import threading
from dataclasses import replace

import torch

from testbed.db.store import Store
from testbed.entities import Chunk
from testbed.process.profiling import WRITER, stage
from testbed.tracing import access_log
from testbed.workers.channel import Channel
from testbed.workers.kernels.kernel import ShardDone

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
        """Stores what is queued and ends the thread.

        Raises:
            StoreError: If something could not be stored.
        """
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
