"""Where a process is, so that another one can tell whether it has ended."""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testbed.identity.describe import digest


@dataclass(frozen=True)
class ProcessInfo:
    """Of a process.

    Attributes:
        machine: Its name, for people.
        place: Where its number means something: the same for two processes that see each other.
        process: Its number.
        process_start: When it started, so that a later process with the same number is not taken for it.
    """

    machine: str
    place: str
    process: int
    process_start: str


def this_process() -> ProcessInfo:
    """Of this process."""
    return ProcessInfo(platform.node(), _place(), os.getpid(), _start_of(os.getpid()) or "")


def has_ended(process: ProcessInfo) -> bool:
    """Whether a process has ended; False where this cannot be seen from here."""
    if process.place != _place():
        return False
    start = _start_of(process.process)
    return start is None or (start != process.process_start and "" not in (start, process.process_start))


@cache
def _place() -> str:
    """This boot of this machine, and its container, if any."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return digest(parts)[:32]


def _start_of(process: int) -> str | None:
    """When a process of this place started, in a form that only serves to be compared; None if there is none.

    An empty text where that cannot be read: on a system without /proc, or of another user's process where these are
    hidden.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "" if _is_there(process) else None
    fields = stat.rpartition(")")[2].split()  # after the program's name, which may contain anything
    return None if fields[0] in "ZX" else fields[19]


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True
