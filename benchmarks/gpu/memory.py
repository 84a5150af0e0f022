"""How much of a card is used, looked at in a thread."""

from __future__ import annotations

import threading
import time

import torch

MIB = 2**20
RELEASED = 64 * MIB  # how much more of the card may be used after a run than before it
LOOK = 0.01  # seconds between two looks at the memory


class Memory:
    """Looks at how much of a card is used, in a thread.

    Args:
        device: Such as ``"cuda:0"``.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.before = self.used()
        self.looks: list[tuple[float, int]] = []  # seconds of the monotonic clock, bytes
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def used(self) -> int:
        """Bytes of the card that all processes use together."""
        free, total = torch.cuda.mem_get_info(self.device)
        return total - free

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(LOOK):
            self.looks.append((time.monotonic(), self.used()))

    def peak(self) -> int:
        """The most that was used above what was used before, in bytes."""
        return max((used for _, used in self.looks), default=self.before) - self.before

    def least_since(self, moment: float) -> int:
        """The least that was used since a moment above what was used before, in bytes."""
        return min((used for when, used in self.looks if when >= moment), default=self.before) - self.before

    def left(self, seconds: float = 5.0) -> int:
        """The increase in used bytes, measured when it is small or the time is over."""
        end = time.monotonic() + seconds
        while (more := self.used() - self.before) > RELEASED and time.monotonic() < end:
            time.sleep(0.05)
        return more
