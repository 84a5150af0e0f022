"""Identification of processes, so that others can determine whether they have ended."""

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
    """Identifies a process.

    Attributes:
        machine: The machine's display name.
        place: The namespace of its id; equal for two processes that can see each other.
        process: Its id.
        process_start: Its start time, which distinguishes it from a later process with the same id.
    """

    machine: str
    place: str
    process: int
    process_start: str


def this_process() -> ProcessInfo:
    """Identifies this process."""
    return ProcessInfo(platform.node(), _place(), os.getpid(), _start_of(os.getpid()) or "")


def has_ended(process: ProcessInfo) -> bool:
    """Returns whether a process has ended; False if this cannot be determined from here."""
    if process.place != _place():
        return False
    start = _start_of(process.process)
    return start is None or (start != process.process_start and "" not in (start, process.process_start))


@cache
def _place() -> str:
    """Identifies this boot of this machine, and the container, if any."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return digest(parts)[:32]


def _start_of(process: int) -> str | None:
    """The start time of a process of this place, for comparison only; None if it does not exist.

    An empty text if that cannot be read: on a system without /proc, or for a hidden process of another user.
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
    except OSError:  # it belongs to another user
        return True
    return True
