"""Transports messages between a run and workers that are Ray actors."""

from __future__ import annotations

import contextlib
import logging
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from types import TracebackType
from typing import Any

from sqlalchemy.engine import make_url

from testbed.db.store import Store
from testbed.errors import message_of
from testbed.execution.pool import WorkerEnd, WorkerMessage
from testbed.extensions.ray.actor import ENDED, HERE, OPERATIONS, STORE, RemoteWorker, pack
from testbed.extensions.ray.cluster import environment
from testbed.extensions.ray.head import GIVE_UP_SECONDS, LEAVE_SECONDS, Head
from testbed.graph.passes import Job
from testbed.models.base.capability import NETWORK

log = logging.getLogger("testbed")

FAILED = "cell_failed"  # a message for the run
CALLS = 8  # concurrent methods of a worker: fetch, answer, result, stop
ROOM_SECONDS = 30.0  # delay before the user is notified that a worker does not fit


class RayWorkers:
    """Starts workers as actors. See `testbed.execution.pool.Transport`.

    Args:
        ray: The package, connected to a cluster.
        devices: One worker is started on each.
        room: Ray's reservation for a worker on a device, by option names.
        job: The job.
        store: The store of the job. Workers connect to a server themselves; only this process can write a file.
        note: Called with messages for the user.
    """

    printed = "in Ray's logs on its node"

    def __init__(
        self,
        ray: Any,
        devices: list[str],
        room: Mapping[str, float],
        job: Job,
        store: Store,
        note: Callable[[str], None],
    ) -> None:
        self.devices = devices
        self._ray = ray
        self._room = room
        self._note = note
        self._head = Head(ray, note)
        self._given_up = False  # the head is lost, and the workers were asked to stop
        self._kind = ray.remote(RemoteWorker)
        self._stores = contextlib.ExitStack()
        self._streamed: dict[str, Store] = {}
        if _is_file(job.db_url):
            self._streamed[job.db_url] = store
        if job.check is not None and _is_file(job.check.db_url):
            self._streamed[job.check.db_url] = self._stores.enter_context(Store.open(job.check.db_url))
        self._actors: dict[int, Any] = {}
        self._fetches: dict[Any, tuple[int, Any]] = {}  # a worker's next message → its slot and actor
        self._where: dict[int, str] = {}  # slots with a worker → its node
        self._asked: dict[int, float] = {}  # slots without a worker → time of the request to Ray

    def __enter__(self) -> RayWorkers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stores.close()
        self._head.close()

    def start(self, slot: int) -> None:
        """Asks Ray for an actor, without waiting for it."""
        served = self.devices[slot] == NETWORK
        actor = self._kind.options(
            max_concurrency=CALLS, scheduling_strategy="SPREAD", **({"num_cpus": 0} if served else self._room)
        ).remote(environment(), frozenset(self._streamed), node_name)
        actor.begin.remote("cpu" if served else self.devices[slot])
        self._actors[slot] = actor
        self._asked[slot] = time.monotonic()
        self._fetch(slot)

    def wait(self, seconds: float | None = None) -> Iterator[WorkerMessage | WorkerEnd]:
        """Yields messages of workers; runs operations of streamed stores."""
        self._tell_of_room()
        self._head.look()
        if self._head.lost_for > GIVE_UP_SECONDS:
            yield from self._give_up()
        if not self._fetches:
            return
        ready, _ = self._ray.wait(list(self._fetches), num_returns=1, timeout=seconds)
        for fetch in ready:
            slot, actor = self._fetches.pop(fetch)
            if not self._is_present(slot, actor):
                continue
            try:
                messages = self._ray.get(fetch)
            except self._ray.exceptions.RayError as error:
                log.debug("a worker was lost", exc_info=error)
                yield self._ended(slot, f"{self._where.get(slot, 'it')} was lost: {_cause(error)}")
                continue
            self._asked.pop(slot, None)
            for kind, *arguments in messages:
                if kind == HERE:
                    self._where[slot] = arguments[0]
                elif kind == STORE:
                    self._operate(slot, *arguments)
                elif kind == ENDED:
                    yield self._ended(slot, *arguments)
                elif kind == FAILED:  # for example because of a problem of this node
                    evaluation_id, reason = arguments
                    yield WorkerMessage(slot, kind, (evaluation_id, f"{reason} ({self._where.get(slot, 'a worker')})"))
                else:
                    yield WorkerMessage(slot, kind, tuple(arguments))
            if self._is_present(slot, actor):  # not a successor, which has its own fetch
                self._fetch(slot)

    def send(self, slot: int, answer: Any) -> None:
        """Answers a worker; if it has died, the next fetch shows that."""
        if slot in self._actors:
            self._actors[slot].answer.remote(pack(answer))

    def ask_to_stop(self) -> None:
        """Asks all workers to stop after their current batch."""
        for actor in self._actors.values():
            actor.stop.remote()

    def close(self) -> None:
        """Kills all workers that are still running, or have not begun."""
        for slot in list(self._actors):
            self._ended(slot, None)

    def _give_up(self) -> Iterator[WorkerMessage | WorkerEnd]:
        """Ends the run before Ray kills its process; reachable workers store their results."""
        if not self._given_up:
            self._given_up = True
            for slot in list(self._actors):
                yield WorkerMessage(slot, "fatal", (self._head.reason,))
        late = self._head.lost_for > LEAVE_SECONDS
        for slot in [actor for actor in self._actors if late or actor not in self._where]:
            yield self._ended(slot, None)

    def _is_present(self, slot: int, actor: Any) -> bool:
        return self._actors.get(slot) is actor

    def _fetch(self, slot: int) -> None:
        actor = self._actors[slot]
        self._fetches[actor.fetch.remote()] = slot, actor

    def _operate(self, slot: int, url: str, operation: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Runs a store's operation for a worker, and sends it the value or the error."""
        value, failed = None, None
        try:
            assert operation in OPERATIONS
            value = attrgetter(operation)(self._streamed[url])(*arguments, **named)
        except Exception as error:
            failed = error
        self._actors[slot].result.remote(value, failed)

    def _ended(self, slot: int, cause: str | None) -> WorkerEnd:
        actor = self._actors.pop(slot)
        self._asked.pop(slot, None)
        self._where.pop(slot, None)
        if self._given_up:
            return WorkerEnd(slot, cause)  # Ray would wait for the head
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(actor)  # even if only unreachable: it must not compute alongside its successor
        return WorkerEnd(slot, cause)

    def _tell_of_room(self) -> None:
        late = [slot for slot, since in self._asked.items() if time.monotonic() - since > ROOM_SECONDS]
        if late:
            count = f"{len(late)} of {len(self.devices)} workers"
            meanwhile = "the others take their shards meanwhile" if self._where else "the run waits"
            self._note(f"Ray has no room yet for {count}; {meanwhile}")
        for slot in late:
            del self._asked[slot]


def node_name() -> str:
    """The node of this process: its host name, and its address in Ray."""
    from ray.util import get_node_ip_address

    own_address: Callable[[], str] = get_node_ip_address
    return f"{platform.node()} ({own_address()})"


def _is_file(url: str) -> bool:
    return make_url(url).get_backend_name() == "sqlite"


def _cause(error: Exception) -> str:
    """Summarizes why a worker was lost; -v shows Ray's own long message."""
    name, text = type(error).__name__, message_of(error)
    if "OutOfMemory" in name or "memory pressure" in text:
        return "out of memory"
    if "Unavailable" in name:
        return "it no longer answers"
    return "its node died" if "node has died" in text or "node died" in text else "its process died"
