"""Communication between a worker and the run: one interface, over a pipe or by direct calls."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from multiprocessing.connection import Connection
from typing import Any

from testbed.graph.passes import Job, Shard
from testbed.tracing.access_log import Read


class Channel(ABC):
    """The requests and messages of a worker."""

    @abstractmethod
    def tell(self, kind: str, *arguments: Any) -> None:
        """Sends a message."""

    @abstractmethod
    def next_pass(self) -> int | None:
        """The next pass; waits for one; None if all is done."""

    @abstractmethod
    def next_shard(self, pass_id: int) -> Shard | None:
        """The next shard of a pass; None if none is left."""

    @abstractmethod
    def stopping(self) -> bool:
        """Returns whether the run is being stopped."""

    def shard_begun(self, shard_id: int) -> None:
        """The samples of a shard are being computed."""
        self.tell("shard_begun", shard_id)

    def shard_done(self, shard_id: int, stored_bytes: int) -> None:
        """The outputs of a shard are stored."""
        self.tell("shard_done", shard_id, stored_bytes)

    def progress(self, pass_id: int, images: float) -> None:
        """Reports as how many images count what was computed in a pass; see `Shard.counted`."""
        self.tell("progress", pass_id, images)

    def cell_failed(self, evaluation_id: int, reason: str) -> None:
        """A cell cannot be finished."""
        self.tell("cell_failed", evaluation_id, reason)

    def unreached(self, evaluation_id: int, reasons: Mapping[int, str]) -> None:
        """Samples did not get through to the model, by position."""
        self.tell("unreached", evaluation_id, dict(reasons))

    def read(self, reads: Iterable[Read]) -> None:
        """Files and variables that users' code has read for the first time."""
        self.tell("read", sorted(reads))

    def spent(self, pass_id: int, seconds: Mapping[str, float]) -> None:
        """Reports the seconds by stage that this worker spent on its part of a pass."""
        self.tell("spent", pass_id, dict(seconds))

    def note(self, text: str) -> None:
        """Something the user should know."""
        self.tell("note", text)


class RemoteChannel(Channel):
    """A channel to another process, with messages and requests."""

    @abstractmethod
    def ask(self, kind: str, *arguments: Any) -> Any:
        """Sends a message and waits for its answer."""

    def job(self) -> Job:
        """The job of the run; unpacking it loads plug-ins."""
        answer: Job = self.ask("job")
        return answer

    def next_pass(self) -> int | None:
        """The next pass; waits for one; None if all is done."""
        answer: int | None = self.ask("next_pass")
        return answer

    def next_shard(self, pass_id: int) -> Shard | None:
        """The next shard of a pass; None if none is left."""
        answer: Shard | None = self.ask("next_shard", pass_id)
        return answer

    def fatal(self, reason: str) -> None:
        """The worker cannot continue, and neither could another."""
        self.tell("fatal", reason)

    def broken(self, reason: str) -> None:
        """The worker failed with an unexpected error; another may succeed."""
        self.tell("broken", reason)


class PipeChannel(RemoteChannel):
    """A channel over a pipe."""

    def __init__(self, connection: Connection[Any, Any], stop: Any) -> None:
        self._connection = connection
        self._stop = stop
        self._lock = threading.Lock()  # the writer thread reports shards while the main thread requests more

    def tell(self, kind: str, *arguments: Any) -> None:
        """Sends a message."""
        with self._lock:
            self._connection.send((kind, *arguments))

    def ask(self, kind: str, *arguments: Any) -> Any:
        """Sends a message and waits for its answer."""
        self.tell(kind, *arguments)
        return self._connection.recv()

    def stopping(self) -> bool:
        """Returns whether the run is being stopped."""
        return bool(self._stop.is_set())
