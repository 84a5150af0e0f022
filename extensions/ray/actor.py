"""A worker that a run calls through its methods: the run fetches its messages and answers its requests."""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import queue
import threading
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.reduction import ForkingPickler
from types import TracebackType
from typing import Any, cast

from testbed.calls import reason_of
from testbed.db.connection.engine import Mode
from testbed.db.store import Store
from testbed.workers.channel import RemoteChannel
from testbed.workers.start import open_store, work

# What workers do with a store.
OPERATIONS = frozenset(
    {
        "artifacts.get",
        "artifacts.put",
        "datasets.get",
        "items.put",
        "items.read_answers",
        "names.set_parameters",
        "outputs.append",
        "outputs.read_rows",
        "outputs.read_values",
    }
)

HERE = "here"  # the first message: where the worker is
ENDED = "ended"  # the last message, with the cause of an abnormal end
STORE = "store"  # a message to the transport, which has the stores open that are streamed
FETCH_SECONDS = 20.0  # how long a fetch waits for messages


class QueueChannel(RemoteChannel):
    """A channel whose messages wait in a queue until the run fetches them."""

    def __init__(self) -> None:
        self.messages: queue.Queue[tuple[Any, ...]] = queue.Queue()
        self.answers: queue.Queue[bytes] = queue.Queue(1)
        self.results: queue.Queue[Any] = queue.Queue(1)
        self.stop = threading.Event()
        self._store_lock = threading.Lock()  # the writer thread stores while the main thread reads

    def tell(self, kind: str, *arguments: Any) -> None:
        """Sends a message."""
        self.messages.put((kind, *arguments))

    def ask(self, kind: str, *arguments: Any) -> Any:
        """Sends a message and waits for its answer, which the run itself has packed."""
        self.tell(kind, *arguments)
        return ForkingPickler.loads(self.answers.get())

    def ask_store(self, url: str, operation: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Requests an operation of a store from the run; returns its value, or raises its error."""
        with self._store_lock:
            self.tell(STORE, url, operation, arguments, named)
            value, error = self.results.get()
        if error is not None:
            raise error
        return value

    def stopping(self) -> bool:
        """Returns whether the run is being stopped."""
        return self.stop.is_set()


class RemoteWorker:
    """A worker in a process of its own, whose methods are called from elsewhere, several at a time.

    Args:
        environment: Variables that are set first.
        streamed: The URLs of stores that the run has open for this worker.
        address: Says where the worker is, for people.
    """

    def __init__(
        self, environment: Mapping[str, str], streamed: frozenset[str], address: Callable[[], str] = platform.node
    ) -> None:
        os.environ.update(environment)
        self._streamed = streamed
        self._place = address()
        self._channel = QueueChannel()

    def begin(self, device: str) -> None:
        """Begins to work, in a thread."""
        threading.Thread(target=self._work, args=(device,), name="worker", daemon=True).start()

    def fetch(self) -> list[tuple[Any, ...]]:
        """Returns the worker's messages since the last call; waits for one, but not for long."""
        messages = []
        with contextlib.suppress(queue.Empty):
            messages.append(self._channel.messages.get(timeout=FETCH_SECONDS))
            while True:
                messages.append(self._channel.messages.get_nowait())
        return messages

    def answer(self, packed: bytes) -> None:
        """Answers what the worker has asked the run."""
        self._channel.answers.put(packed)

    def result(self, value: Any, error: Exception | None) -> None:
        """Answers what the worker has asked a store."""
        self._channel.results.put((value, error))

    def stop(self) -> None:
        """Stops the worker after its current batch."""
        self._channel.stop.set()

    def _work(self, device: str) -> None:
        self._channel.tell(HERE, f"process {os.getpid()} on {self._place}")
        cause: str | None = "it exited early"
        try:
            cause = None if work(self._channel, device, self._open) else "an unexpected error"
        except BaseException as error:  # such as SystemExit by a library
            cause = reason_of(error)
        finally:
            self._channel.tell(ENDED, cause)

    def _open(self, url: str, mode: Mode, payload_url: str | None) -> Store:
        if url not in self._streamed:
            return open_store(url, mode, payload_url)
        return StreamedStore.as_store(lambda *asked: self._channel.ask_store(url, *asked))


def pack(answer: Any) -> bytes:
    """An answer as `RemoteWorker.answer` takes it: unpacked by the worker, whose run hears of what goes wrong there."""
    return bytes(ForkingPickler.dumps(answer, pickle.HIGHEST_PROTOCOL))


class _Part:
    """A part of a store, by its name."""

    def __init__(self, name: str, ask: Callable[[str, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self._name, self._ask = name, ask

    def __getattr__(self, name: str) -> Any:
        operation = f"{self._name}.{name}"
        if operation not in OPERATIONS:
            raise AttributeError(f"workers do not use {operation!r} of a store")
        return partial(self._do, operation)

    def _do(self, operation: str, *arguments: Any, **named: Any) -> Any:
        return self._ask(operation, arguments, named)


class StreamedStore:
    """A store whose operations the run's process does.

    Args:
        ask: Has an operation done: its name, such as ``outputs.append``, the arguments by position and by name. Returns
            its value, or raises its error.
    """

    def __init__(self, ask: Callable[[str, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self._ask = ask

    def __getattr__(self, name: str) -> Any:
        return _Part(name, self._ask)

    def close(self) -> None:
        """Does nothing: the run closes the store."""

    def __enter__(self) -> StreamedStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @classmethod
    def as_store(cls, ask: Callable[[str, tuple[Any, ...], dict[str, Any]], Any]) -> Store:
        """One in place of a store."""
        return cast(Store, cls(ask))
