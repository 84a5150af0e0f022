"""Progress reports: live bars on a terminal, lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from testbed.graph.cells import Cell
from testbed.graph.passes import Pass
from testbed.visible import visible, visible_line

LINE_SECONDS = 10.0
FEW = 10  # in a second; fewer have a decimal
WIDE, NARROW_LABEL = 110, 28  # characters of a terminal for whole labels of bars; of a label on a narrower one


class Progress:
    """Receives the progress of a run; this one keeps it to itself."""

    def start(self, cells: Sequence[Cell]) -> None:
        """Announces all cells that are asked for; what was counted before them is over."""

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
        for name in ("start", "begin", "advance", "note", "ended", "close"):
            setattr(self, name, partial(_each, [getattr(progress, name) for progress in progresses]))


def _each(functions: Sequence[Callable[..., None]], *arguments: Any) -> None:
    for function in functions:
        function(*arguments)


class Count:
    """Counts the samples of a pass. Its time begins with the first ones: before, it waited for other passes.

    Its speed is measured after each whole batch, for cells that take different times share a batch; where a batch takes
    long, as on a loaded machine, also every ten seconds within it.
    """

    def __init__(self, one_pass: Pass) -> None:
        self.label = visible_line(one_pass.label)
        self.unit = str(one_pass.reads)
        self.models = one_pass.models
        self.cells = len(one_pass.cells)
        self.total = 0
        self.stored = 0
        self.told = time.monotonic()
        self.rate: float | None = None
        self._batch = one_pass.batch_size
        self._done = 0.0
        self.first = 0.0  # of what came when the time began
        self._began: float | None = None
        self._measured, self._measured_at = 0, 0.0

    @property
    def shown(self) -> int:
        """Returns the number of whole samples done."""
        return int(self._done + 1e-6)

    @property
    def is_complete(self) -> bool:
        """Returns whether all samples are done."""
        return self.shown >= self.total

    def advance(self, images: float) -> bool:
        """Counts more samples; returns whether the speed was measured anew."""
        self._done += images
        now = time.monotonic()
        if self._began is None:
            self._began, self._measured_at, self.first = now, now, images
        batches = self.shown // self._batch
        due = batches > self._measured or self.is_complete or now - self._measured_at >= LINE_SECONDS
        if not due or now <= self._began or self._done <= self.first:
            return False
        self._measured, self._measured_at = batches, now
        self.rate = (self._done - self.first) / (now - self._began)
        return True

    def speed(self) -> str:
        """Returns the speed in samples per second as text; empty if it is not known yet."""
        if not self.rate:
            return ""
        return f"{self.rate:,.0f} {self.unit}/s" if self.rate >= FEW else f"{self.rate:.2g} {self.unit}/s"

    def left(self) -> float | None:
        """The seconds that the rest takes."""
        return (self.total - self.shown) / self.rate if self.rate else None


class Counting(Progress):
    """Counts passes, the samples of each cell, and cells; those that inherit show it.

    Attributes:
        counts: The passes that were announced, by id.
        cells: The number of cells that are asked for.
    """

    def __init__(self) -> None:
        self.start([])

    def start(self, cells: Sequence[Cell]) -> None:
        """Begins to count."""
        # The cells that have not ended, and whether they need more than the passes that are announced at first.
        self._open = {(cell.model, cell.setting): bool(cell.items) for cell in cells}
        self.cells = len(self._open)
        self.counts: dict[int, Count] = {}
        self._began: float | None = None
        self._ends: float | None = None

    def begin(self, one_pass: Pass, total: int, to_do: int) -> None:
        """Counts a pass."""
        count = self.counts.setdefault(one_pass.id, Count(one_pass))
        count.total += to_do
        count.stored += total - to_do
        self.begun(one_pass.id, count)

    def advance(self, pass_id: int, images: float) -> None:
        """Counts samples."""
        if (count := self.counts.get(pass_id)) is None:
            return
        self._began = self._began or time.monotonic()
        before = count.shown
        if count.advance(images):
            self._ends = self._end()
        self.advanced(pass_id, count, before)

    def ended(self, model: str, setting: str, status: str, reason: str) -> None:
        """Counts a cell."""
        self._open.pop((model, setting), None)

    def begun(self, pass_id: int, count: Count) -> None:
        """A pass was announced, or became longer."""

    def advanced(self, pass_id: int, count: Count, before: int) -> None:
        """Samples of a pass were counted; ``before`` were shown before them."""

    def samples(self) -> tuple[int, int]:
        """Returns the numbers of samples done and in total, counted once for each cell."""
        counts = list(self.counts.values())
        return sum(count.shown * count.cells for count in counts), sum(count.total * count.cells for count in counts)

    def cells_in_words(self) -> str:
        """Returns a text with the number of cells that have ended."""
        return f"{self.cells - len(self._open):,} of {self.cells:,} cells"

    def left(self) -> float | None:
        """The seconds that the whole run still takes; None where that is not known."""
        return None if self._ends is None else max(0.0, self._ends - time.monotonic())

    def _end(self) -> float | None:
        """Returns the time at which the run is expected to end.

        A pass that has not begun takes as long as others of the same models. As long as there are none, or more will be
        computed from what this run stores, nobody knows.
        """
        if any(list(self._open.values())):
            return None
        counts, now = list(self.counts.values()), time.monotonic()
        seconds = {count.models: 1 / count.rate / count.cells for count in counts if count.rate}
        done = rest = 0.0
        for each in counts:
            each_takes = 1 / each.rate if each.rate else each.cells * seconds.get(each.models, math.nan)
            done += (each.shown - each.first) * each_takes
            rest += (each.total - each.shown) * each_takes
        assert self._began is not None
        return now + rest * (now - self._began) / done if done > 0 and rest > 0 else None  # neither if it is NaN


class LineProgress(Counting):
    """Lines on a stream: every ten seconds or every ``interval`` samples, and when a pass ends.

    Args:
        stream: The output stream.
        interval: The number of samples between lines; None: every ten seconds.
    """

    def __init__(self, stream: Any, interval: int | None = None) -> None:
        super().__init__()
        self._stream = stream
        self._interval = interval

    def advanced(self, pass_id: int, count: Count, before: int) -> None:
        """Prints a line when one is due."""
        now = time.monotonic()
        if self._interval is None:
            due = now - count.told >= LINE_SECONDS
        else:
            due = count.shown // self._interval > before // self._interval
        if due or (count.is_complete and count.shown != before):
            count.told = now
            line = _listed(
                f"{count.label}: {count.shown:,} of {count.total:,} {count.unit}", count.speed(), _left(count.left())
            )
            if self.cells > 1:
                done, total = self.samples()
                line += (
                    f" (run: {_listed(self.cells_in_words(), f'{done:,} of {total:,} samples', _left(self.left()))})"
                )
            self.note(line)

    def note(self, text: str) -> None:
        """Writes a line."""
        print(visible(text), file=self._stream, flush=True)


class RichProgress(Counting):
    """Live bars, one for each pass and one for the whole run, with the time that is left."""

    def __init__(self, console: Any) -> None:
        from rich import progress as rich_progress
        from rich.table import Column

        super().__init__()
        narrow = console.width < WIDE
        label = Column(overflow="ellipsis")  # the one that can be narrower, for numbers stay whole
        self._bars = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}", markup=False, table_column=label),
            rich_progress.BarColumn(bar_width=8 if narrow else 16),
            rich_progress.TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
            rich_progress.TextColumn("{task.fields[told]}"),
            console=console,
            transient=False,
        )
        self._label = NARROW_LABEL if narrow else console.width
        self._ids: dict[int, Any] = {}
        self._run: Any = None
        self._bars.start()

    def start(self, cells: Sequence[Cell]) -> None:
        """Leaves the bars of what came before as they are."""
        super().start(cells)
        self._ids, self._run = {}, None

    def begun(self, pass_id: int, count: Count) -> None:
        """Adds a bar; stored samples count as done."""
        if pass_id not in self._ids:
            label = count.label
            if len(label) > self._label:
                label = f"{label[: self._label // 2]}…{label[1 - self._label // 2 :]}"
            self._ids[pass_id] = self._bars.add_task(label, total=0, told="")
        self._show(pass_id, count)

    def advanced(self, pass_id: int, count: Count, before: int) -> None:
        """Moves the bars."""
        self._show(pass_id, count)

    def ended(self, model: str, setting: str, status: str, reason: str) -> None:
        """Counts a cell."""
        super().ended(model, setting, status, reason)
        self._show_run()

    def note(self, text: str) -> None:
        """Writes a line above the bars."""
        self._bars.console.print(visible(text), markup=False, highlight=False)

    def close(self) -> None:
        """Leaves the bars as they are."""
        self._bars.stop()

    def _show(self, pass_id: int, count: Count) -> None:
        total, done = count.stored + count.total, count.stored + count.shown
        told = _listed(count.speed(), _left(count.left()))
        self._bars.update(self._ids[pass_id], total=total, completed=done, told=told)
        self._show_run()

    def _show_run(self) -> None:
        done, total = self.samples()
        if self.cells < 2 or not total:
            return
        if self._run is None:
            self._run = self._bars.add_task("", total=0, told="")
        told = _listed("samples", _left(self.left()))
        self._bars.update(self._run, description=self.cells_in_words(), total=total, completed=done, told=told)


def _listed(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f"{in_clock(seconds)} left"


def in_clock(seconds: float) -> str:
    """Seconds as a clock shows them: ``"1:02:03"``."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
