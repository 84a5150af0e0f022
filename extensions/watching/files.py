"""Decides which checkpoint files are complete, and in which order to evaluate them; uses neither disk nor clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass

from testbed.stored_results.checkpoint_steps import CheckpointFile, clash, sort_key

TRIES = 5  # attempts to read a file before it is given up
SECONDS_BETWEEN = 30.0

WAITING, DONE, GIVEN_UP, REFUSED = "waiting", "evaluated", "given up", "left out"

Stamp = tuple[int, float]  # size in bytes, and the time of the last change in seconds


@dataclass
class _State:
    stamp: Stamp
    since: float  # when its current state was first seen
    status: str = WAITING
    tries: int = 0
    again_at: float = 0.0


class Files:
    """The files of a watched pattern.

    Args:
        settle: Number of seconds without a change after which a file is complete.
        latest: Whether the newest step comes first when several files wait.

    Attributes:
        gone: Number of files deleted before they were evaluated.
        changed: When a file last appeared or changed.
    """

    def __init__(self, settle: float, latest: bool = False) -> None:
        self.settle = settle
        self.latest = latest
        self.gone = 0
        self.changed = 0.0
        self._states: dict[CheckpointFile, _State] = {}

    def look(
        self, now: float, stamps: Mapping[CheckpointFile, Stamp], stored: Container[CheckpointFile] = ()
    ) -> list[str]:
        """Updates the state of files. If two new files have the same step, the later one is left out.

        Args:
            now: The time.
            stamps: The files.
            stored: Files with results, which count as older than the others.

        Returns:
            Messages about files that were overwritten or deleted, or that cannot be distinguished from others.
        """
        lines = []
        for found in [entry for entry in self._states if entry not in stamps]:
            if self._states.pop(found).status == WAITING:
                self.gone += 1
                lines.append(f"{found.path} was deleted before it was evaluated")
        for found in sorted(stamps, key=lambda each: (each not in stored, stamps[each][1], sort_key(each), each.path)):
            stamp, state = stamps[found], self._states.get(found)
            if state is not None and state.stamp == stamp:
                continue
            self.changed = now
            if state is not None and state.status == DONE:
                lines.append(f"{found.path} was written again: it is evaluated again if its content is another one")
            why = clash([file for file, of in self._states.items() if of.status != REFUSED], found)
            self._states[found] = _State(stamp, now, REFUSED if why else WAITING)
            if why and state is None:
                lines.append(f"{found.path} is left out: {why}")
        return lines

    def next(self, now: float, marked: Container[str] | None = None) -> CheckpointFile | None:
        """Returns the next file to evaluate; None if there is none.

        Args:
            now: The time.
            marked: The complete files, if markers are used instead of `settle`.
        """
        ready = self.ready(now, marked)
        return (ready[-1] if self.latest else ready[0]) if ready else None

    def ready(self, now: float, marked: Container[str] | None = None) -> list[CheckpointFile]:
        """All files that could be evaluated now, by step."""
        return sorted(
            (
                found
                for found, state in self._states.items()
                if state.status == WAITING and now >= state.again_at and self._is_complete(found, state, now, marked)
            ),
            key=sort_key,
        )

    def _is_complete(self, found: CheckpointFile, state: _State, now: float, marked: Container[str] | None) -> bool:
        if marked is not None:
            return found.path in marked
        # By this machine's clock, or by that of the file server.
        return now - state.since >= self.settle or now - state.stamp[1] >= self.settle

    def done(self, found: CheckpointFile) -> None:
        """Marks a file as evaluated in the state seen last; `look` detects later changes."""
        self._states[found].status = DONE

    def failed(self, found: CheckpointFile, now: float) -> bool:
        """Marks a file as failed; returns whether it will be retried before it changes."""
        state = self._states[found]
        state.tries += 1
        state.again_at = now + SECONDS_BETWEEN
        if state.tries >= TRIES:
            state.status = GIVEN_UP
        return state.status == WAITING

    @property
    def counts(self) -> Counter[str]:
        """The number of files with each status."""
        return Counter(state.status for state in self._states.values())
