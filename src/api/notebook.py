"""Progress in a notebook: bars by tqdm."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from testbed.execution.progress import Count, Counting, in_clock
from testbed.graph.cells import Cell

RUN = "{desc} {bar} {n:,.0f}/{total:,.0f} samples{postfix}"  # without tqdm's estimate of the remaining time


class NotebookProgress(Counting):
    """A bar for each pass, and one for the whole run."""

    def __init__(self) -> None:
        self._bars: dict[int | None, Any] = {}
        super().__init__()

    def start(self, cells: Sequence[Cell]) -> None:
        """Keeps the bars of earlier runs as they are."""
        super().start(cells)
        self.close()

    def begun(self, pass_id: int, count: Count) -> None:
        """Adds a bar, or makes it longer; stored samples count as done."""
        if pass_id not in self._bars:
            self._bars[pass_id] = _bar(desc=count.label, unit=f" {count.unit}")
        bar = self._bars[pass_id]
        bar.total, bar.initial = count.stored + count.total, count.stored
        bar.update(count.stored + count.shown - bar.n)
        bar.refresh()

    def advanced(self, pass_id: int, count: Count, before: int) -> None:
        """Moves the bars."""
        self._bars[pass_id].update(count.shown - before)
        self._show_run()

    def ended(self, model: str, setting: str, status: str, reason: str) -> None:
        """Counts a cell."""
        super().ended(model, setting, status, reason)
        self._show_run()

    def note(self, text: str) -> None:
        """Writes a line."""
        print(text)

    def close(self) -> None:
        """Keeps the bars as they are."""
        for bar in self._bars.values():
            bar.close()
        self._bars.clear()

    def _show_run(self) -> None:
        done, total = self.samples()
        if self.cells < 2 or not total:
            return
        if None not in self._bars:
            self._bars[None] = _bar(bar_format=RUN)
        bar, left = self._bars[None], self.left()
        bar.total = total
        bar.set_description_str(self.cells_in_words(), refresh=False)
        bar.set_postfix_str("" if left is None else f"{in_clock(left)} left", refresh=False)
        bar.update(done - bar.n)


def _bar(**options: Any) -> Any:
    """A widget where ipywidgets is installed, else text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing ipywidgets
        from tqdm.auto import tqdm

        return tqdm(total=0, **options)
