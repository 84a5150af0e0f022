"""Progress in a notebook: a bar by tqdm."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from testbed.execution.progress import Count, Counting, in_clock
from testbed.graph.cells import Cell

RUN = "{desc} {bar} {n:,.0f}/{total:,.0f} samples{postfix}"  # without tqdm's estimate of the remaining time


class NotebookProgress(Counting):
    """A single bar, for the whole run."""

    def __init__(self) -> None:
        self._bar: Any = None
        super().__init__()

    def start(self, cells: Sequence[Cell]) -> None:
        """Keeps the bars of earlier runs as they are."""
        super().start(cells)
        self.close()

    def begun(self, pass_id: int, count: Count) -> None:
        """Makes the bar longer."""
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
        print(text)

    def close(self) -> None:
        """Keeps the bar as it is."""
        if self._bar is not None:
            self._bar.close()
        self._bar = None

    def _show(self) -> None:
        done, total = self.samples()
        if not total:
            return
        if self._bar is None:
            self._bar = _bar(bar_format=RUN)
        bar, left = self._bar, self.left()
        bar.total = total
        alone = self.cells < 2 and len(self.counts) == 1
        bar.set_description_str(
            next(iter(self.counts.values())).label if alone else self.cells_in_words(), refresh=False
        )
        bar.set_postfix_str("" if left is None else f"{in_clock(left)} left", refresh=False)
        bar.update(done - bar.n)
        bar.refresh()


def _bar(**options: Any) -> Any:
    """A widget where ipywidgets is installed, else text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing ipywidgets
        from tqdm.auto import tqdm

        return tqdm(total=0, **options)
