"""Monitors the head of a Ray cluster: without it, Ray kills the run's own process after a minute."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

LOOK_SECONDS = 2.0
ANSWER_SECONDS = 5.0
GIVE_UP_SECONDS = 40.0  # a restarted head is back by then
LEAVE_SECONDS = 52.0  # Ray's own patience is 60


class Head:
    """Checks the head every few seconds, in a thread.

    Args:
        ray: The package, connected to a cluster.
        note: Called by `look` with messages for the user.
    """

    def __init__(self, ray: Any, note: Callable[[str], None]) -> None:
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        self.address = f"{host}:{port}"
        self._place = host.strip("[]"), int(port)
        self._note = note
        self._lost_at: float | None = None
        self._told = False
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="head", daemon=True).start()

    def look(self) -> None:
        """Notifies the user once when the head is lost, and when it is back."""
        lost = self._lost_at is not None
        if lost and not self._told:
            self._note(
                f"the head of the Ray cluster, {self.address}, does not answer; the remaining workers continue, and"
                " if"
                f" it is not back in {GIVE_UP_SECONDS:.0f} s, the run ends"
            )
        elif self._told and not lost:
            self._note(f"the head of the Ray cluster, {self.address}, answers again")
        self._told = lost

    @property
    def lost_for(self) -> float:
        """The number of seconds without an answer; 0 if it answers."""
        return 0.0 if (since := self._lost_at) is None else time.monotonic() - since

    @property
    def reason(self) -> str:
        """The reason why the run ends."""
        return (
            f"the head of the Ray cluster, {self.address}, no longer answers. Stored results are kept: when"
            " the"
            " cluster is back, run the same command again to resume"
        )

    def close(self) -> None:
        """Ends the thread."""
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            try:
                socket.create_connection(self._place, ANSWER_SECONDS).close()
            except OSError:
                self._lost_at = self._lost_at or time.monotonic()
            else:
                self._lost_at = None
