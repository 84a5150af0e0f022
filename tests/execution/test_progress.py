"""What a run says about its progress."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from rich.console import Console
from toy import darker, toy_catalog, toy_model, toy_setting

from testbed.api.notebook import NotebookProgress
from testbed.execution import progress
from testbed.execution.progress import LineProgress, RichProgress
from testbed.graph.cells import Cell
from testbed.graph.options import RunOptions
from testbed.graph.passes import Pass, PassCell
from testbed.runner.run import run


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def one_pass(number: int, model: str) -> Pass:
    cells = (PassCell(number, model, "val", ""),)
    return Pass(number, cells, source=None, positions=range(100), targets=[], batch_size=10, chunk=10)  # type: ignore[arg-type]


def test_the_rate_of_a_pass_is_its_own(clock: Clock) -> None:
    out = io.StringIO()
    lines = LineProgress(out)
    for number, model in enumerate(["first", "second"]):
        lines.begin(one_pass(number, model), 100, 100)
    for number in (0, 1):
        for _ in range(10):  # ten images in a second; the second pass waits for the first one
            clock.now += 1
            lines.advance(number, 10)
    said = out.getvalue().splitlines()
    assert said[-1] == "second × val: 100 of 100 images, 10 images/s, 0:00 left"
    assert next(line for line in said if line.startswith("second")) == "second × val: 10 of 100 images"


def test_lines_come_every_ten_seconds_and_say_how_long_it_takes(clock: Clock) -> None:
    out = io.StringIO()
    lines = LineProgress(out)
    lines.begin(one_pass(0, "first"), 1000, 1000)
    for _ in range(25):
        clock.now += 1
        lines.advance(0, 10)
    assert out.getvalue().splitlines() == [
        "first × val: 100 of 1,000 images, 10 images/s, 1:30 left",
        "first × val: 200 of 1,000 images, 10 images/s, 1:20 left",
    ]


def test_an_interval_counts_samples(clock: Clock) -> None:
    out = io.StringIO()
    lines = LineProgress(out, interval=50)
    lines.begin(one_pass(0, "first"), 100, 100)
    for _ in range(10):
        clock.now += 2
        lines.advance(0, 10)
    assert [line.partition(",")[0] for line in out.getvalue().splitlines()] == [
        "first × val: 50 of 100 images",
        "first × val: 100 of 100 images",
    ]


def cells(*models: str, items: bool = False) -> Any:
    return [SimpleNamespace(model=model, setting="val", items=items) for model in models]


def left_of_run(line: str) -> str:
    return re.sub(r".*samples(, )?(.*)\)", r"\2", line)


def test_the_time_that_the_whole_run_takes_is_told_when_it_is_known(clock: Clock) -> None:
    out = io.StringIO()
    lines = LineProgress(out, interval=50)
    lines.start(cells("fast", "slow"))
    for number, model in enumerate(["fast", "slow"]):
        lines.begin(one_pass(number, model), 100, 100)
    for _ in range(10):
        clock.now += 1
        lines.advance(0, 10)
    lines.ended("fast", "val", "complete", "")
    lines.advance(1, 0)
    for _ in range(10):
        clock.now += 5
        lines.advance(1, 10)
    assert out.getvalue().splitlines() == [
        "fast × val: 50 of 100 images, 10 images/s, 0:05 left (run: 0 of 2 cells, 50 of 200 samples)",
        "fast × val: 100 of 100 images, 10 images/s, 0:00 left (run: 0 of 2 cells, 100 of 200 samples)",
        "slow × val: 50 of 100 images, 2 images/s, 0:25 left (run: 1 of 2 cells, 150 of 200 samples, 0:25 left)",
        "slow × val: 100 of 100 images, 2 images/s, 0:00 left (run: 1 of 2 cells, 200 of 200 samples)",
    ]


def test_a_pass_that_waits_is_taken_to_be_as_fast_as_the_others_of_its_model_and_what_comes_later_is_unknown(
    clock: Clock,
) -> None:
    said = {}
    for items in (False, True):
        out = io.StringIO()
        lines = LineProgress(out, interval=100)
        lines.start(cells("one", "other", items=items))
        for number in range(3):
            lines.begin(one_pass(number, "one"), 100, 100)
        for _ in range(10):
            clock.now += 1
            lines.advance(0, 10)
        said[items] = left_of_run(out.getvalue().splitlines()[-1])
    assert said == {False: "0:20 left", True: ""}


def test_a_speed_is_that_of_whole_batches(clock: Clock) -> None:
    out = io.StringIO()
    lines = LineProgress(out, interval=1)
    lines.begin(one_pass(0, "first"), 100, 100)
    lines.advance(0, 0)
    for _ in range(2):  # batches of ten images for ten cells: the first cell is slow, the others are not
        for part in range(10):
            clock.now += 9.1 if part == 0 else 0.1
            lines.advance(0, 1)
    said = out.getvalue().splitlines()
    assert said[8] == "first × val: 9 of 100 images"
    assert said[9:] == [f"first × val: {n} of 100 images, 1 images/s, {_clock(100 - n)} left" for n in range(10, 21)]


def test_where_a_batch_takes_long_its_speed_is_also_measured_within_it(clock: Clock) -> None:
    out = io.StringIO()
    lines = LineProgress(out)
    lines.begin(one_pass(0, "first"), 100, 100)
    for _ in range(6):  # batches of ten images, of which one takes five seconds
        lines.advance(0, 1)
        clock.now += 5
    assert out.getvalue().splitlines() == [
        "first × val: 3 of 100 images, 0.2 images/s, 8:05 left",
        "first × val: 5 of 100 images, 0.2 images/s, 7:55 left",
    ]


def test_a_notebook_shows_one_line_and_keeps_none(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    changed = []

    class Output:
        """As IPython's handle of an output."""

        def update(self, content: dict[str, str], raw: bool) -> None:
            changed.append(content["text/plain"])

    monkeypatch.setattr("testbed.api.notebook._display", lambda content: made.append(content["text/plain"]) or Output())
    monkeypatch.setattr("testbed.api.notebook.time", clock)
    shown = NotebookProgress()
    shown.start(cells("first", "second"))
    for number, model in enumerate(["first", "second"]):
        shown.begin(one_pass(number, model), 100, 100)
        for _ in range(10):
            clock.now += 1
            shown.advance(number, 10)
        clock.now += 1
        shown.ended(model, "val", "complete", "")
    shown.close()
    assert made == ["0 of 2 cells: 0 of 100 samples"]
    assert changed[-2:] == ["2 of 2 cells: 200 of 200 samples", ""]
    assert len(changed) <= 24


def _clock(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02d}"


def test_bars_move_with_each_cell_of_a_batch_and_count_cells(lab: Any) -> None:
    seen = set()

    class Watched(RichProgress):
        def advanced(self, *told: Any) -> None:
            super().advanced(*told)
            seen.add(self.samples())

    settings = [toy_setting("plain"), toy_setting("dim", perturbation_fn_gpu=darker)]
    made = toy_catalog(toy_model(), *settings, toy_setting("root", perturbation_fn_gpu=torch.sqrt))
    out = io.StringIO()
    bars = Watched(Console(file=out, width=80, force_terminal=True))
    options = RunOptions(db_url=lab.url, executor="inline", batch_size=600)
    assert run(made, options, ["toy"], ["plain", "dim", "root"], bars).ok
    bars.close()
    assert sorted(seen) == [(0, 1800), (600, 1800), (1200, 1800), (1800, 1800)]
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue()).splitlines()
    assert re.search(r"3 of 3 cells .* 1,800/1,800 samples", shown[-1])
    assert max(map(len, shown)) <= 80


def test_on_a_narrow_terminal_labels_give_way_to_numbers(clock: Clock) -> None:
    out = io.StringIO()
    bars = RichProgress(Console(file=out, width=80, force_terminal=True))
    label = "vit_large_patch14_clip_224.openai"
    bars.start([Cell(label, f"val-{number}") for number in range(2)])
    bars.begin(one_pass(0, label), 1_281_167, 1_281_167)
    for _ in range(3):
        clock.now += 1
        bars.advance(0, 1000)
    bars.close()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue()).splitlines()
    assert max(map(len, shown)) <= 80
    assert any("3,000/1,281,167" in line and "1,000 images/s, 21:18 left" in line for line in shown)
    assert any("0 of 2 cells" in line and "3,000/1,281,167 samples, 21:18 left" in line for line in shown)
    assert any(line.startswith("vit_large") and "…" in line for line in shown)
