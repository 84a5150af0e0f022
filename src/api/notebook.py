"""Progress in a notebook: one line that is updated, by tqdm."""

from __future__ import annotations

import warnings
from typing import Any

from testbed.execution.progress import Count, Progress
from testbed.graph.passes import Pass


class NotebookProgress(Progress):
    """A bar for each pass."""

    def __init__(self) -> None:
        self._bars: dict[int, Any] = {}
        self._counts: dict[int, Count] = {}

    def begin(self, one_pass: Pass, total: int, to_do: int) -> None:
        """Adds a bar, or makes it longer; stored samples count as done."""
        if one_pass.id not in self._bars:
            self._bars[one_pass.id] = _bar(one_pass.label, str(one_pass.reads))
            self._counts[one_pass.id] = Count(one_pass.label, str(one_pass.reads))
        bar = self._bars[one_pass.id]
        bar.total = (bar.total or 0) + total
        bar.initial += total - to_do
        bar.update(total - to_do)
        bar.refresh()

    def advance(self, pass_id: int, images: float) -> None:
        """Moves a bar."""
        if (count := self._counts.get(pass_id)) is not None:
            before = count.shown
            count.advance(images)
            self._bars[pass_id].update(count.shown - before)

    def note(self, text: str) -> None:
        """Writes a line."""
        print(text)

    def close(self) -> None:
        """Leaves the bars as they are."""
        for bar in self._bars.values():
            bar.close()


def _bar(label: str, unit: str) -> Any:
    """A widget where ipywidgets is installed, else text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that ipywidgets is missing
        from tqdm.auto import tqdm

        return tqdm(total=0, desc=label, unit=f" {unit}")
