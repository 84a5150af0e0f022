"""Where a process is, so that another one can tell whether it has ended."""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testbed.identity import digest


@dataclass(frozen=True)
class Whereabouts:
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


def here() -> Whereabouts:
    """Of this process."""
    return Whereabouts(platform.node(), _place(), os.getpid(), _start_of(os.getpid()) or "")


def has_ended(process: Whereabouts) -> bool:
    """Whether a process has ended; False where this cannot be seen from here."""
    if process.place != _place():
        return False
    return _start_of(process.process) != process.process_start


@cache
def _place() -> str:
    """This boot of this machine, and its container, if any."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return digest(parts)[:32]


def _start_of(process: int) -> str | None:
    """When a process of this place started, in a form that only serves to be compared; None if there is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
        return _is_there(process)
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # after the program's name, which may contain anything
    return None if fields[0] in "ZX" else fields[19]


def _is_there(process: int) -> str | None:
    """The same on a system without /proc, where the start cannot be read."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return ""
