"""Progress reports: live bars on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from testbed.graph.passes import Pass
from testbed.visible import visible, visible_line

LINE_SECONDS = 10.0


class Progress:
    """Receives the progress of a run; this one keeps it to itself."""

    def begin(self, one_pass: Pass, total: int, to_do: int) -> None:
        """Announces a pass with its total number of samples (or texts) and the number to compute.

        Called again for a pass over texts when more texts become known.
        """

    def advance(self, pass_id: int, images: float) -> None:
        """Reports that more images were computed, here or by another run; parts of images, where cells share them.

        Of passes that were not announced, since they take seconds, nothing is shown.
        """

    def note(self, text: str) -> None:
        """A message for the user."""

    def ended(self, model: str, setting: str, status: str, reason: str) -> None:
        """A cell has ended, in a way that `testbed.execution.report.Outcome` names; called in any thread."""

    def close(self) -> None:
        """The run has ended."""


class SilentProgress(Progress):
    """Prints nothing and collects notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Collects the note."""
        self.notes.append(text)


class Several(Progress):
    """Passes on what it receives."""

    def __init__(self, *progresses: Progress) -> None:
        for name in ("begin", "advance", "note", "ended", "close"):
            setattr(self, name, partial(_each, [getattr(progress, name) for progress in progresses]))


def _each(functions: Sequence[Callable[..., None]], *arguments: Any) -> None:
    for function in functions:
        function(*arguments)


class LineProgress(Progress):
    """Lines on a stream: every ten seconds or every ``interval`` samples, and when a pass ends.

    Args:
        stream: The output stream.
        interval: The number of samples between lines; None: every ten seconds.
    """

    def __init__(self, stream: Any, interval: int | None = None) -> None:
        self._stream = stream
        self._interval = interval
        self._passes: dict[int, Count] = {}

    def begin(self, one_pass: Pass, total: int, to_do: int) -> None:
        """Registers the pass."""
        self._passes.setdefault(one_pass.id, Count(one_pass.label, str(one_pass.reads))).total += to_do

    def advance(self, pass_id: int, images: float) -> None:
        """Counts, and prints a line when one is due."""
        if (count := self._passes.get(pass_id)) is None:
            return
        before = count.shown
        count.advance(images)
        now = time.monotonic()
        if self._interval is None:
            due = now - count.told >= LINE_SECONDS
        else:
            due = count.shown // self._interval > before // self._interval
        if due or (count.is_complete and count.shown != before):
            count.told = now
            line = f"{count.label}: {count.shown:,} of {count.total:,} {count.unit}"
            if rate := count.rate():
                line += f", {rate:,.0f} {count.unit}/s, {_clock((count.total - count.shown) / rate)} left"
            self.note(line)

    def note(self, text: str) -> None:
        """Writes a line."""
        print(visible(text), file=self._stream, flush=True)


class Count:
    """Counts the samples of a pass. Its time begins with the first ones: before, it waited for other passes."""

    def __init__(self, label: str, unit: str) -> None:
        self.label = visible_line(label)
        self.total = 0
        self.unit = unit
        self._done = 0.0
        self.told = time.monotonic()
        self._began: float | None = None
        self._first = 0.0

    @property
    def shown(self) -> int:
        """How many are done, in whole samples."""
        return round(self._done)

    @property
    def is_complete(self) -> bool:
        """Whether all are done."""
        return self.shown >= self.total

    def advance(self, images: float) -> None:
        """Counts more samples."""
        self._done += images
        if self._began is None:
            self._began, self._first = time.monotonic(), images

    def rate(self) -> float | None:
        """Samples per second after the first ones; None while there is nothing to measure."""
        seconds = 0.0 if self._began is None else time.monotonic() - self._began
        return (self._done - self._first) / seconds if seconds > 0 and self._done > self._first else None


class RichProgress(Progress):
    """A live bar for each pass, with images per second and the remaining time."""

    def __init__(self, console: Any) -> None:
        from rich import progress as rich_progress

        self._bars = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}", markup=False),
            rich_progress.BarColumn(),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TextColumn("{task.fields[rate]}"),
            rich_progress.TimeRemainingColumn(),
            console=console,
            transient=False,
        )
        self._ids: dict[int, Any] = {}
        self._counts: dict[int, Count] = {}
        self._stored: dict[int, int] = {}
        self._bars.start()

    def begin(self, one_pass: Pass, total: int, to_do: int) -> None:
        """Adds a bar; stored samples count as done."""
        if one_pass.id not in self._ids:
            self._ids[one_pass.id] = self._bars.add_task(visible_line(one_pass.label), total=0, rate="", start=False)
            self._counts[one_pass.id] = Count(one_pass.label, str(one_pass.reads))
        stored = self._stored[one_pass.id] = self._stored.get(one_pass.id, 0) + total - to_do
        count = self._counts[one_pass.id]
        count.total += to_do
        self._bars.update(self._ids[one_pass.id], total=stored + count.total, completed=stored + count.shown)

    def advance(self, pass_id: int, images: float) -> None:
        """Moves the bar."""
        if (count := self._counts.get(pass_id)) is None:
            return
        if not count.shown:
            self._bars.start_task(self._ids[pass_id])
        count.advance(images)
        rate = count.rate()
        told = "" if rate is None else f"{rate:,.0f} {count.unit}/s"
        self._bars.update(self._ids[pass_id], completed=self._stored[pass_id] + count.shown, rate=told)

    def note(self, text: str) -> None:
        """Writes a line above the bars."""
        self._bars.console.print(visible(text), markup=False, highlight=False)

    def close(self) -> None:
        """Leaves the bars as they are."""
        self._bars.stop()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
