"""Runs of ``testbed`` in processes of their own, for the parts of the proof."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from findings import Findings

LAST = 2000  # characters of what a run printed that are told if it failed
GRACE = 4.0  # seconds that are kept for what comes after a run


class Run:
    """A ``testbed run`` in a process of its own, with a store, a log file and a text file named after it.

    It stays in this process's group, so that what ends the group ends its workers as well.

    Args:
        name: Of its files.
        words: What follows ``testbed run``.
        folder: Where its files are; its working folder.
        variables: Environment variables to change.
        resume: The run whose store and log it continues.
    """

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        folder: Path,
        variables: Mapping[str, str] | None = None,
        resume: Run | None = None,
    ) -> None:
        self.name = name
        self.db = resume.db if resume else folder / f"{name}.db"
        self.log, self.printed = folder / f"{name}.jsonl", folder / f"{name}.txt"
        self.seconds = 0.0
        command = [sys.executable, "-m", "testbed", "run", *words]
        command += ["--db-url", str(self.db), "--log-file", str(self.log)]
        self._began = time.monotonic()
        with self.printed.open("w", encoding="utf-8") as printed:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, cwd=folder,
                env={**os.environ, **(variables or {})},
            )  # fmt: skip
        self._waiting = threading.Thread(target=self._wait, daemon=True)
        self._waiting.start()

    def _wait(self) -> None:
        self.process.wait()
        self.seconds = time.monotonic() - self._began

    @property
    def ended(self) -> bool:
        """True if the process has ended."""
        return not self._waiting.is_alive()

    def wait(self, seconds: float) -> float:
        """Waits until the run has ended; returns the seconds that it took from its start.

        Raises:
            TimeoutError: If it has not ended after so many seconds; it is killed then.
            RuntimeError: If it failed.
        """
        self._waiting.join(max(1.0, seconds))
        if not self.ended:
            self.kill()
            raise TimeoutError(f"{self.name} did not end within {time.monotonic() - self._began:.0f} s: {self._last}")
        if self.process.returncode != 0:
            raise RuntimeError(f"{self.name} ended with status {self.process.returncode}: {self._last}")
        return round(self.seconds, 2)

    def kill(self) -> list[int]:
        """Kills the run and all its processes at once by SIGKILL; returns those that are alive seconds later."""
        killed = [self.process.pid, *descendants(self.process.pid)]
        for pid in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._waiting.join(10)
        return still_alive(killed, 10)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The lines of its log file about one kind of event."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in found if event["event"] == kind]

    def notes(self) -> list[str]:
        """The messages of the run."""
        return [event["text"] for event in self.events("note")]

    @property
    def _last(self) -> str:
        return self.printed.read_text(encoding="utf-8", errors="replace").strip()[-LAST:]


@contextlib.contextmanager
def ended_at_exit(runs: list[Run]) -> Iterator[None]:
    """Kills the runs of a list that are still at work when the block ends, however it ends."""
    try:
        yield
    finally:
        for run in runs:
            if not run.ended:
                run.kill()


def descendants(pid: int) -> list[int]:
    """The living children of a process, their children, and so on."""
    parents = {each: parent for each, (parent, state) in _processes().items() if state != "Z"}
    found = [pid]
    for event in found:  # which grows
        found += [child for child, parent in parents.items() if parent == event]
    return found[1:]


def still_alive(pids: Sequence[int], seconds: float) -> list[int]:
    """Those of some processes that have not ended after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        states = _processes()
        alive = [pid for pid in pids if pid in states and states[pid][1] != "Z"]
        if not alive or time.monotonic() > end:
            return alive
        time.sleep(0.05)


def _processes() -> dict[int, tuple[int, str]]:
    """The parent and the state of every process."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                found[int(folder.name)] = (int(parent), state)
    return found


def on_device(findings: Findings, processes: int = 1) -> list[str]:
    """The words that put so many evaluation processes on the device of the part."""
    if not findings.on_gpu:
        return ["--cpu-processes", str(processes)]
    return ["--gpus", *[findings.device.partition(":")[2] or "0"] * processes]
