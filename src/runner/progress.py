"""Progress reports: live bars on a terminal, lines elsewhere."""

from __future__ import annotations

import time
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

    def advance(self, pass_id: int, images: int) -> None:
        """Reports that more images were computed."""

    def note(self, text: str) -> None:
        """A message for the user."""

    def ended(self, model: str, setting: str, status: str, reason: str) -> None:
        """A cell has ended, in a way that `testbed.runner.report.Outcome` names; called in any thread."""

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
    """Passes on what it receives.

    Args:
        progresses: To each of these.
    """

    def __init__(self, *progresses: Progress) -> None:
        self._all = progresses

    def begin(self, one_pass: Pass, total: int, to_do: int) -> None:
        """To all."""
        for each in self._all:
            each.begin(one_pass, total, to_do)

    def advance(self, pass_id: int, images: int) -> None:
        """To all."""
        for each in self._all:
            each.advance(pass_id, images)

    def note(self, text: str) -> None:
        """To all."""
        for each in self._all:
            each.note(text)

    def ended(self, model: str, setting: str, status: str, reason: str) -> None:
        """To all."""
        for each in self._all:
            each.ended(model, setting, status, reason)

    def close(self) -> None:
        """To all."""
        for each in self._all:
            each.close()


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

    def advance(self, pass_id: int, images: int) -> None:
        """Counts, and prints a line when one is due."""
        count = self._passes[pass_id]
        count.advance(images)
        now = time.monotonic()
        if self._interval is None:
            due = now - count.told >= LINE_SECONDS
        else:
            due = count.done // self._interval > (count.done - images) // self._interval
        if count.done >= count.total or due:
            count.told = now
            line = f"{count.label}: {count.done:,} of {count.total:,} {count.unit}"
            if rate := count.rate():
                line += f", {rate:,.0f} {count.unit}/s, {_clock((count.total - count.done) / rate)} left"
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
        self.done = 0
        self.told = time.monotonic()
        self._began: float | None = None
        self._first = 0

    def advance(self, images: int) -> None:
        """Counts more samples."""
        self.done += images
        if self._began is None:
            self._began, self._first = time.monotonic(), images

    def rate(self) -> float | None:
        """Samples per second after the first ones; None while there is nothing to measure."""
        seconds = 0.0 if self._began is None else time.monotonic() - self._began
        return (self.done - self._first) / seconds if seconds > 0 and self.done > self._first else None


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
        self._totals: dict[int, int] = {}
        self._bars.start()

    def begin(self, one_pass: Pass, total: int, to_do: int) -> None:
        """Adds a bar; stored samples count as done."""
        if one_pass.id not in self._ids:
            self._ids[one_pass.id] = self._bars.add_task(visible_line(one_pass.label), total=0, rate="", start=False)
            self._counts[one_pass.id] = Count(one_pass.label, str(one_pass.reads))
        self._totals[one_pass.id] = self._totals.get(one_pass.id, 0) + total
        self._counts[one_pass.id].total += to_do
        self._bars.update(self._ids[one_pass.id], total=self._totals[one_pass.id], advance=total - to_do)

    def advance(self, pass_id: int, images: int) -> None:
        """Moves the bar."""
        bar, count = self._ids[pass_id], self._counts[pass_id]
        if not count.done:
            self._bars.start_task(bar)
        count.advance(images)
        rate = count.rate()
        self._bars.update(bar, advance=images, rate="" if rate is None else f"{rate:,.0f} {count.unit}/s")

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
