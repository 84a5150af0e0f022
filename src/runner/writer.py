"""Writing outputs while the next ones are computed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence

from testbed import reading
from testbed.db.entities import Chunk
from testbed.db.store import Store
from testbed.runner.channel import Channel

# Tasks whose outputs may wait to be stored: one is being written, one is ready. More would only cost memory.
WAITING = 1


class Writer:
    """A thread that stores the outputs of tasks, one transaction each, and then tells that the task is done.

    Args:
        store: Where to; used by this thread alone while it runs.
        channel: Whom to tell.
    """

    def __init__(self, store: Store, channel: Channel) -> None:
        self._store = store
        self._channel = channel
        self._queue: queue.Queue[tuple[int, Sequence[Chunk], Mapping[int, Mapping[int, str]]] | None] = queue.Queue(
            WAITING
        )
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def submit(self, task_id: int, chunks: Sequence[Chunk], errors: Mapping[int, Mapping[int, str]]) -> None:
        """Hands over the outputs of a task; waits while others are waiting.

        Raises:
            StoreError: If earlier outputs could not be stored.
        """
        self.check()
        self._tell_reads()  # before the run is told that the task is done
        self._queue.put((task_id, chunks, errors))

    def _tell_reads(self) -> None:
        if reads := reading.fresh():
            self._channel.read(reads)

    def check(self) -> None:
        """Raises what went wrong in the thread, if anything did."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stores what is waiting, and ends the thread.

        Raises:
            StoreError: If something could not be stored.
        """
        self._tell_reads()
        self._queue.put(None)
        self._thread.join()
        self.check()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._error is not None:
                continue  # take what comes, so that nobody waits for ever
            task_id, chunks, errors = item
            try:
                self._channel.task_done(task_id, self._store.append(chunks, errors))
            except BaseException as error:
                self._error = error
