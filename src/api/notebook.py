"""Progress in a notebook: one line with a bar, which disappears when the run ends."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Sequence
from typing import Any

from testbed.execution.progress import Count, Counting, in_clock
from testbed.graph.cells import Cell
from testbed.visible import visible

SECONDS = 0.1  # between two changes of the line
NOTHING = {"text/plain": ""}


class NotebookProgress(Counting):
    """A single line, for the whole run. It is one output of the notebook's cell, which is emptied at the end."""

    def __init__(self) -> None:
        self._line: Any = None
        self._shown = 0.0
        super().__init__()

    def start(self, cells: Sequence[Cell]) -> None:
        """Ends the line of an earlier run."""
        super().start(cells)
        self.close()

    def begun(self, pass_id: int, count: Count) -> None:
        """Shows the line."""
        self._show()

    def advanced(self, pass_id: int, count: Count, before: int) -> None:
        """Moves the bar."""
        self._show()

    def ended(self, model: str, setting: str, status: str, reason: str) -> None:
        """Counts a cell."""
        super().ended(model, setting, status, reason)
        self._show()

    def note(self, text: str) -> None:
        """Writes a line."""
        print(visible(text))

    def close(self) -> None:
        """Empties the line."""
        if self._line is not None:
            self._line.update(NOTHING, raw=True)
        self._line = None

    def _show(self) -> None:
        done, total = self.samples()
        now = time.monotonic()
        if not total or (self._line is not None and now - self._shown < SECONDS):
            return
        self._shown = now
        alone = self.cells < 2 and len(self.counts) == 1
        about = next(iter(self.counts.values())).label if alone else self.cells_in_words()
        left = self.left()
        text = f"{about}: {done:,} of {total:,} samples{'' if left is None else f', {in_clock(left)} left'}"
        bar = f'<progress value="{done}" max="{total}"></progress> {html.escape(text)}'
        shown = {"text/plain": text, "text/html": bar}
        if self._line is None:
            self._line = _display(shown)
        else:
            self._line.update(shown, raw=True)


def _display(content: dict[str, str]) -> Any:
    """Adds an output to the notebook's cell; returns the handle that changes it."""
    return sys.modules["IPython.display"].display(content, raw=True, display_id=True)  # a notebook has it
